#!/usr/bin/env bash
# keep_fuzz_inputs.sh: of what tools/fuzz.sh has found in build/fuzz/corpus, inputs that together reach all that was reached become
# tests/fuzz/found.tar.xz, which every build unpacks and runs (tests/fuzz/CMakeLists.txt).
set -eu
. "$(dirname "$0")/lib.sh"
kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT
while IFS= read -r target; do
    name=$(basename "$target")
    name=${name#fuzz_}
    mkdir "$kept/$name"
    "$target" -merge=1 "$kept/$name" "tests/fuzz/corpus/$name" "build/fuzz/corpus/fuzz_$name" 2>"$logs/fuzz-merge-$name.log"
    printf '%-22s %6d inputs\n' "$name" "$(find "$kept/$name" -type f | wc -l)"
done < <(find build/fuzz -type f -executable -name 'fuzz_*' | sort)
tar --create --xz --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --file tests/fuzz/found.tar.xz --directory "$kept" .
