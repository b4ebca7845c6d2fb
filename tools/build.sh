#!/usr/bin/env bash
# build.sh PRESET [TARGET…]: configures and builds one preset of CMakePresets.json under build/PRESET.
set -eu
. "$(dirname "$0")/lib.sh"
preset=$1
shift
options=()
if [[ " asan tsan fuzz " == *" $preset "* ]] && ! command -v clang++-14 >/dev/null; then  # newer releases have another clang
    options+=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
fi
cmake --preset "$preset" "${options[@]}"
cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
