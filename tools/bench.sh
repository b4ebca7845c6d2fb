#!/usr/bin/env bash
# bench.sh: the crypto libraries on this machine, then sealed against plain MPI on two lab nodes.
set -u
. "$(dirname "$0")/lib.sh"
step build tools/build.sh release programs || exit 1
build/release/bin/mpisec bench crypto && build/release/bin/mpisec bench pingpong
