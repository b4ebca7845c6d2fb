#!/usr/bin/env bash
# demo.sh [OPTION…]: builds what a job needs and runs demo/run.py. Without options that is a job of MPICH 5.
set -u
. "$(dirname "$0")/lib.sh"
target=demo_programs
[ $# -gt 0 ] && target=programs
step build tools/build.sh release $target || exit 1
echo
exec .deps/demo-venv/bin/python demo/run.py "$@"
