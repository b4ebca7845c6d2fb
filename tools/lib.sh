# Shared by the scripts here: where the tree is, and steps that say how long they took. Source it, do not run it.
# shellcheck shell=bash
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit 1
logs=$top/build/logs
mkdir -p "$logs"
# shellcheck disable=SC2034  # for the scripts that source this
jobs=${JOBS:-$(nproc)}
PYTHON=${PYTHON:-python3}
export PYTHONPATH=$top/lab:$top/bench${PYTHONPATH:+:$PYTHONPATH}

# step NAME COMMAND…: runs it with its output in build/logs/NAME.log, prints one line with the time; on failure prints the log's end.
step() {
    local name=$1 start=$SECONDS status
    shift
    printf '%-28s ' "$name"
    "$@" >"$logs/$name.log" 2>&1
    status=$?
    if [ $status -eq 0 ]; then
        printf 'ok      %4d s\n' $((SECONDS - start))
    else
        printf 'FAILED  %4d s   (exit %d, end of %s:)\n' $((SECONDS - start)) $status "build/logs/$name.log"
        tail -n "${LOG_LINES:-60}" "$logs/$name.log" | sed 's/^/    | /'
    fi
    return $status
}
