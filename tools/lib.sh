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

# On a terminal: the last line of the log beside the step's name, as long as this shell lives.
show_progress() {
    local name=$1 log=$2 columns
    columns=$(tput cols 2>/dev/null || echo 80)
    while sleep 1 && kill -0 $$ 2>/dev/null; do
        printf '\r%-28s \033[K%.*s' "$name" $((columns - 30)) "$(tail -c 400 "$log" | tr '\r' '\n' | grep -v '^ *$' | tail -n 1)"
    done
}

# step NAME COMMAND…: runs it with its output in build/logs/NAME.log, prints one line with the time; on failure prints the log's end.
step() {
    local name=$1 start=$SECONDS status shower=
    shift
    printf '%-28s ' "$name"
    : >"$logs/$name.log"
    if [ -t 1 ]; then
        show_progress "$name" "$logs/$name.log" &
        shower=$!
    fi
    "$@" >"$logs/$name.log" 2>&1
    status=$?
    if [ -n "$shower" ]; then
        kill "$shower" && wait "$shower" 2>/dev/null
        printf '\r\033[K%-28s ' "$name"
    fi
    if [ $status -eq 0 ]; then
        printf 'ok      %4d s\n' $((SECONDS - start))
    else
        printf 'FAILED  %4d s   (exit %d, end of %s:)\n' $((SECONDS - start)) $status "build/logs/$name.log"
        tail -n "${LOG_LINES:-60}" "$logs/$name.log" | sed 's/^/    | /'
    fi
    return $status
}
