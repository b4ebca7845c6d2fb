#!/usr/bin/env bash
# setup.sh demo|test|conformance|gpu: installs what MPIsec needs to be built and run (Debian packages, then the MPIs and tools from
# PyPI and crates under .mpis/ and .deps/); gpu: only NVIDIA's compiler, which test has too. Does nothing that has been done before.
set -u
. "$(dirname "$0")/lib.sh"
kind=${1:-test}

wanted() {
    local lists=("$top/tools/apt-packages-demo.txt")
    [ "$kind" != demo ] && lists+=("$top/tools/apt-packages-test.txt")
    [ "$kind" = conformance ] && lists+=("$top/tools/apt-packages-conformance.txt")
    grep -hv '^#' "${lists[@]}"
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Of "a|b" the one that is installed, else the first that apt can install, else nothing.
choose() {
    local name
    for name in ${1//|/ }; do installed "$name" && return 0; done
    for name in ${1//|/ }; do
        if apt-cache show "$name" >/dev/null 2>&1; then
            echo "$name"
            return 0
        fi
    done
    echo "$1"
}

missing() {
    local names command
    while read -r names _ command; do
        [ -n "$command" ] && command -v "$command" >/dev/null && continue
        choose "$names"
    done < <(wanted)
}

install_packages() {
    if ! command -v apt-get >/dev/null; then
        echo "no apt-get here: install the equivalents of tools/apt-packages-*.txt yourself"
        return 0
    fi
    local as_root=() names
    mapfile -t names < <(missing)
    [ ${#names[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            echo "these packages are missing and this user may not install them; ask for: apt-get install ${names[*]}"
            return 1
        fi
        as_root=(sudo -n)
    fi
    "${as_root[@]}" apt-get -q update || return 1
    mapfile -t names < <(missing)  # once more: names that the old lists did not know
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${names[@]}"
}

mpis() {
    local group=test
    [ "$kind" = demo ] && group=demo
    "$PYTHON" -m mpisec_lab setup "$group"
}

nvcc() { step setup-gpu tools/venv.sh .deps/gpu-venv tools/gpu-requirements.txt; }
if [ "$kind" = gpu ]; then
    nvcc
    exit
fi
step setup-packages install_packages || exit 1
step setup-mpis mpis || exit 1
step setup-demo tools/venv.sh .deps/demo-venv demo/requirements.txt || exit 1
if [ "$kind" != demo ]; then
    step setup-pytest tools/venv.sh .deps/test-venv tests/requirements.txt || exit 1
    nvcc || echo "without nvcc libmpisec-gpu.so is not built, and its tests are left out (docs/gpu.md)"
fi
