#!/usr/bin/env bash
# lint.sh: layout of the C and C++ sources, includes that point upward, functions that are too long, dead links in the documentation,
# Python that compiles and that ruff and mypy accept, shell scripts that shellcheck accepts. What needs a tool that is not installed is left out, and said so.
set -u
. "$(dirname "$0")/lib.sh"
failed=0
files() { git ls-files -z --cached --others --exclude-standard "$@"; } # new ones too, before `git add`
venv=$top/.deps/test-venv/bin/python # has what tests/requirements.txt names
format=$(command -v clang-format-14 || command -v clang-format || true)
if [ -n "$format" ]; then
    files '*.cpp' '*.hpp' '*.c' '*.h' '*.cu' | xargs -0 -r "$format" --dry-run -Werror || failed=1
else
    echo "clang-format is not installed: layout not checked"
fi
"$PYTHON" tools/layers.py || failed=1
"$PYTHON" tools/links.py || failed=1
if "$venv" -c 'import lizard' 2>/dev/null; then
    "$venv" tools/sizes.py || failed=1
else
    echo "lizard is not installed: sizes of functions not checked"
fi
files '*.py' | xargs -0 -r "$PYTHON" -m py_compile || failed=1
ruff=$(command -v ruff || ls .deps/test-venv/bin/ruff 2>/dev/null)
if [ -n "$ruff" ]; then
    "$ruff" check --quiet . || failed=1
else
    echo "ruff is not installed: Python only compiled"
fi
if "$venv" -c 'import mypy' 2>/dev/null; then
    "$venv" -m mypy || failed=1
else
    echo "mypy is not installed: types of the Python not checked"
fi
# The lab's scripts are templates, not whole before they are filled in.
if command -v shellcheck >/dev/null; then
    files '*.sh' .ci/run ':!lab/mpisec_lab/*.sh' | xargs -0 -r shellcheck -x -P SCRIPTDIR || failed=1
else
    echo "shellcheck is not installed: scripts not checked"
fi
[ $failed -eq 0 ] && echo "lint: clean"
exit $failed
