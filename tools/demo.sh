#!/usr/bin/env bash
# demo.sh [OPTION…]: builds what a job needs and runs demo/run.py.
set -u
. "$(dirname "$0")/lib.sh"
step build tools/build.sh release programs || exit 1
echo
exec .deps/demo-venv/bin/python demo/run.py "$@"
