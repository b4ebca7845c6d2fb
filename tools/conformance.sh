#!/usr/bin/env bash
# conformance.sh [SUITE…]: builds MPIsec and runs programs that others wrote, plain and sealed (tests/conformance/run.py); writes
# docs/conformance.md and docs/results/conformance.json. Non-zero when anything differs.
set -u
. "$(dirname "$0")/lib.sh"
step build tools/build.sh release programs || exit 1
exec nice .deps/test-venv/bin/python tests/conformance/run.py "$@"
