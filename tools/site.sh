#!/usr/bin/env bash
# site.sh: the documentation site, build/site, by tools/site.py. Builds the program first: the commands' pages are made of its help.
# MPISEC_LAB_SITE_VENV is the virtual environment with Sphinx (.deps/site-venv); once it is there, no network is needed.
set -u
. "$(dirname "$0")/lib.sh"
venv=${MPISEC_LAB_SITE_VENV:-.deps/site-venv}
step site-tools tools/venv.sh "$venv" docs/site/requirements.txt || exit 1
step site-program tools/build.sh release mpisec || exit 1
step site "$venv/bin/python" tools/site.py || exit 1
echo "open build/site/index.html"
