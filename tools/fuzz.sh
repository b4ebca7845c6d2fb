#!/usr/bin/env bash
# fuzz.sh [SECONDS [PRESET]]: runs every libFuzzer target of build/PRESET (fuzz, which is fast, if not said) for SECONDS (default 60) each, as
# many at once as there are cores.
set -u
. "$(dirname "$0")/lib.sh"
each=${1:-60}
export build=build/${2:-fuzz}
mapfile -t targets < <(find "$build" -type f -executable -name 'fuzz_*' | sort)
if [ ${#targets[@]} -eq 0 ]; then
    echo "no fuzz targets were built under $build"
    exit 1
fi

fuzz_one() {
    local name
    name=$(basename "$1")
    mkdir -p "$build/corpus/$name" "$build/crashes"
    "$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/crashes/$name-" "$build/corpus/$name" >"$build/$name.log" 2>&1
    local status=$?
    echo "$name: exit $status, $(grep -o 'number_of_executed_units: *[0-9]*' "$build/$name.log" | grep -o '[0-9]*$') executions in $2 s"
    [ $status -eq 0 ] || tail -n 40 "$build/$name.log"
    return $status
}
export -f fuzz_one
# shellcheck disable=SC2016  # expanded by the inner shell
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'fuzz_one "$1" "$2"' _ {} "$each"
