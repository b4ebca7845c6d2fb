#!/usr/bin/env bash
# venv.sh DIRECTORY REQUIREMENTS: a virtual environment with these requirements; nothing to do when it has them already.
set -eu
directory=$1 requirements=$2
stamp=$directory/.requirements
if [ -x "$directory/bin/python" ] && cmp -s "$requirements" "$stamp"; then exit 0; fi
"${PYTHON:-python3}" -m venv "$directory"
"$directory/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
cp "$requirements" "$stamp"
