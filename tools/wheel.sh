#!/usr/bin/env bash
# wheel.sh [DIRECTORY]: makes the wheel in dist (or DIRECTORY), checks that nothing in it needs more than glibc 2.28, and puts the debug
# files beside it. pyproject.toml says what is in it.
set -u
. "$(dirname "$0")/lib.sh"
output=${1:-dist}
venv=$top/.deps/wheel-venv
build=build/wheel

make_wheel() {
    rm -rf build/wheel-unchecked
    pip wheel --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir build/wheel-unchecked --verbose \
        --config-settings=cmake.toolchain-file=cmake/ZigToolchain.cmake --config-settings=build-dir=$build .
}

# What it may ask of the machine: the C library of the platform's name, and OpenSSL, without which only that plug-in is left out.
check_wheel() {
    mkdir -p "$output" && rm -f "$output"/mpisec-*.whl "$output"/mpisec-*-debug.tar &&
        auditwheel repair --plat manylinux_2_28_x86_64 --only-plat --exclude libcrypto.so.3 --wheel-dir "$output" build/wheel-unchecked/*.whl
}

# As debuggers look for them: by the build id that the stripped file has, too.
keep_debug_files() {
    local file id name
    rm -rf build/wheel-debug
    for file in "$build"/bin/mpisec "$build"/lib/*.so "$build"/lib/mpisec/*.so; do
        id=$(readelf --notes "$file" | sed -n 's/.*Build ID: //p')
        mkdir -p "build/wheel-debug/.build-id/${id:0:2}" &&
            objcopy --only-keep-debug --compress-debug-sections "$file" "build/wheel-debug/.build-id/${id:0:2}/${id:2}.debug" || return 1
    done
    name=$(basename "$output"/mpisec-*.whl .whl)
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        --file "$output/$name-debug.tar" --directory build/wheel-debug .build-id
}

step wheel-tools tools/venv.sh "$venv" tools/wheel-requirements.txt || exit 1
export PATH=$venv/bin:$PATH
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)} # 1980, where zip files begin
# Without a base directory ccache hands absolute paths on, which -ffile-prefix-map knows; relative ones would stay in the files.
export SOURCE_DATE_EPOCH CMAKE_BUILD_PARALLEL_LEVEL=$jobs CCACHE_BASEDIR=
step wheel-build make_wheel || exit 1
step wheel-check check_wheel || exit 1
step wheel-debug keep_debug_files || exit 1
# Without what libcrypto.so.3 of this machine asks of its own C library.
auditwheel show --ldpaths "$top/build/wheel-unchecked" "$output"/mpisec-*.whl
ls -s --block-size=kB "$output"/mpisec-*
