#!/usr/bin/env bash
# deb.sh [DIRECTORY]: Debian packages in dist/deb (or DIRECTORY): first a source package of the tree and of what tools/sources.sh collects, then
# the packages of it, built where there is no network (as root), then what lintian says of them: errors and warnings are failures.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
output=${1:-dist/deb}
version=$(sed -n 's/^project(mpisec VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
work=$top/build/deb
tree=$work/mpisec-$version
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

need() { command -v "$1" >/dev/null || { echo "deb.sh: $1 is missing: apt-get install --no-install-recommends $2"; exit 1; }; }
need dh debhelper
need dh_python3 dh-python
need lintian lintian
need dpkg-buildpackage dpkg-dev

# The two archives as dpkg-source wants them, and the tree that is unpacked from them.
make_source() {
    rm -rf "$work" && mkdir -p "$tree" && tools/sources.sh "$work" || return 1
    mv "$work/mpisec-$version-sources.tar.xz" "$work/mpisec_$version.orig-sources.tar.xz"
    git ls-files -z --cached --others --exclude-standard | tar --create --exclude=debian --ignore-failed-read --null --files-from=- |
        tar --extract --directory "$tree" || return 1
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --directory "$work" "mpisec-$version" |
        xz -T1 -2 >"$work/mpisec_$version.orig.tar.xz" || return 1
    tar --extract --directory "$tree" --file "$work/mpisec_$version.orig-sources.tar.xz" && cp -r debian "$tree/"
}

packages() {
    local alone=()
    # dh gives the build a home directory of its own, where ccache would begin anew each time.
    command -v ccache >/dev/null && CCACHE_DIR=$(ccache --get-config cache_dir) && export CCACHE_DIR
    export CCACHE_BASEDIR=  # as in tools/wheel.sh
    [ "$(id -u)" -eq 0 ] && alone=(unshare --net)
    (cd "$tree" && env -u MAKEFLAGS "${alone[@]}" dpkg-buildpackage --unsigned-source --unsigned-changes --build=full --jobs="$jobs" --no-check-builddeps)
}

judge() { lintian --fail-on error,warning --suppress-tags-from-file tools/lintian-not-for-us.txt --allow-root "$work"/mpisec_*_amd64.changes; }

step deb-source make_source || exit 1
step deb-build packages || exit 1
step deb-lintian judge || exit 1
rm -rf "$output" && mkdir -p "$output"
find "$work" -maxdepth 1 -type f -name 'mpisec*' -exec cp {} "$output" \;
ls -s --block-size=kB "$output"/*.deb
