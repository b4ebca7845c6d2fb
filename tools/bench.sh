#!/usr/bin/env bash
# bench.sh: the crypto libraries on this machine, then sealed against plain MPI on lab nodes.
set -u
. "$(dirname "$0")/lib.sh"
step build tools/build.sh release programs || exit 1
mpisec=build/release/bin/mpisec
$mpisec bench crypto && $mpisec bench pingpong --own-cost && $mpisec bench startup
