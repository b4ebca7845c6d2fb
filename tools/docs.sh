#!/usr/bin/env bash
# docs.sh: renders docs/procedures.md from gen/classes.toml.
set -eu
. "$(dirname "$0")/lib.sh"
cmake --preset release >"$logs/docs.log"
cmake --build --preset release --target docs
