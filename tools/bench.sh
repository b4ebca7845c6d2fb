#!/usr/bin/env bash
# bench.sh [OPTION…]: `mpisec bench all` (--quick unless --full is given) into build/bench, and its report.
set -u
. "$(dirname "$0")/lib.sh"
step build tools/build.sh release programs || exit 1
PATH=$top/.deps/test-venv/bin:$PATH # its python3 has matplotlib and jinja2
exec build/release/bin/mpisec bench all -o build/bench --resume "$@"
