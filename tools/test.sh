#!/usr/bin/env bash
# test.sh: everything `make test` does after set-up. Every step runs; any that fails makes a non-zero exit. pytest comes last, so that
# its summary line is the last one. SKIP="asan tsan fuzz unit pytest" leaves steps out; PYTEST_ARGS goes to pytest.
set -u
. "$(dirname "$0")/lib.sh"
export MPISEC_LAB_TEST_REQUIRED=1  # what set-up should have brought and has not is a failure, not a skipped test
failed=()
run() { [[ " ${SKIP:-} " == *" ${1%%-*} "* ]] || step "$@" || failed+=("$1$(failed_tests "$1")"); }

# Which tests of a step failed, from the list at the end of ctest's output: " (NAME, NAME)".
failed_tests() {
    local names
    names=$(sed -n '/^The following tests FAILED:/,$ s/^[[:space:]]*[0-9]* - \(.*\) (.*/\1/p' "$logs/$1.log" | head -n 10 | paste -sd, | sed 's/,/, /g')
    echo "${names:+ ($names)}"
}

unit_tests() { ctest --test-dir "build/$1" -j "$jobs" --output-on-failure --no-tests=error --timeout 300 "${@:2}"; }

# A failed build is said once; its tests are not run on what an earlier build left.
built_then() {
    local kind=$1 preset=$2
    shift 2
    [[ " ${SKIP:-} " == *" $kind "* ]] && return
    local before=${#failed[@]}
    run "$kind-build" tools/build.sh "$preset"
    [ ${#failed[@]} -eq "$before" ] && run "$kind-tests" "$@"
}

start=$SECONDS
if [ "${MPISEC_LAB_TEST_ALL:-}" = 1 ]; then
    step build tools/build.sh release || exit 1
    run unit-tests unit_tests release
else # the algorithms of collectives are tested under sanitizers
    step build tools/build.sh release programs optimized_tests || exit 1
    run unit-tests unit_tests release --label-exclude '^sim$' --exclude-regex _NOT_BUILT
fi
built_then asan asan unit_tests asan --label-exclude '^fuzz$'
built_then tsan tsan unit_tests tsan --label-regex '^(engine|keys)$' # what has threads; the shim's jobs come with pytest
if [ "${MPISEC_LAB_TEST_ALL:-}" = 1 ]; then
    built_then fuzz fuzz tools/fuzz.sh "${FUZZ_SECONDS:-60}"
else # for seconds, what was built above will do
    run fuzz-tests tools/fuzz.sh "${FUZZ_SECONDS:-5}" asan
fi
echo "the above took $((SECONDS - start)) s; next: tests of the program, the lab and MPI jobs (pytest)"

if [[ " ${SKIP:-} " != *" pytest "* ]]; then
    # Half of a job's time is waiting: one process more than there are cores. Each has nodes of its own.
    processes=$((jobs < 4 ? jobs + 1 : 4))
    # shellcheck disable=SC2086  # PYTEST_ARGS is a list of words
    .deps/test-venv/bin/python -m pytest tests -n "$processes" --dist worksteal --timeout=600 --durations=10 ${PYTEST_ARGS:-} || failed+=(pytest)
fi
if [ ${#failed[@]} -gt 0 ]; then
    echo "make test: failed: ${failed[*]}"
    exit 1
fi
