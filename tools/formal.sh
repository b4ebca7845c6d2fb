#!/usr/bin/env bash
# formal.sh: runs the formal models of docs/formal/ and their broken variants. Installs Verifpal (from crates.io, under .deps/) and
# Spin (a Debian package) where they are missing. Arguments go to docs/formal/check.py.
set -u
. "$(dirname "$0")/lib.sh"
verifpal_version=1.6.7
verifpal=$top/.deps/verifpal/bin/verifpal

install_spin() {
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    "${as_root[@]}" apt-get -q update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y --no-install-recommends install spin gcc libc6-dev && return 0
    echo "Spin is missing and could not be installed; ask for: apt-get install spin gcc libc6-dev"
    return 1
}

# The crate asks for a newer compiler than it needs. Several checkouts may share .deps: the lock lets one build it.
install_verifpal() {
    if ! command -v cargo >/dev/null; then
        echo "Verifpal is missing, and so is cargo to build it with: install Rust 1.95 or newer"
        return 1
    fi
    mkdir -p .deps
    flock .deps/verifpal.lock cargo install verifpal --version "$verifpal_version" --locked --ignore-rust-version \
        --no-default-features --features cli --root .deps/verifpal
}

command -v spin >/dev/null && command -v gcc >/dev/null || step formal-spin install_spin || exit 1
[ "$("$verifpal" --version 2>/dev/null)" = "verifpal $verifpal_version" ] || step formal-verifpal install_verifpal || exit 1
exec "$PYTHON" docs/formal/check.py --verifpal "$verifpal" -j "$jobs" "$@"
