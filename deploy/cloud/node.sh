#!/bin/sh
# node.sh WHEEL [COMMAND [ARGUMENT …]]: makes MPIsec part of this machine, as root: when an image is made, or when a machine starts (docs/cloud.md).
#
#     node.sh /tmp/mpisec-0.2.0-py3-none-manylinux_2_28_x86_64.whl
#     node.sh https://files.example/mpisec-….whl fetch-secret mpisec-site-key
#
# WHEEL: a file, or an address from which pip can fetch it. COMMAND prints the site's key file, which then is /etc/mpisec/site.key, for root alone;
# nothing else prints it, and a key that cannot be used is an error. Needs python3 (3.9 or newer) and its venv module.
set -eu
wheel=$1
shift
python3 -m venv /opt/mpisec
/opt/mpisec/bin/pip install --quiet --no-cache-dir "$wheel"
ln -sf /opt/mpisec/bin/mpisec /usr/local/bin/mpisec
[ $# -gt 0 ] || exit 0
umask 077
key=$("$@")  # less the ends of lines that a store may add
mkdir -p /etc/mpisec
printf '%s\n' "$key" >/etc/mpisec/site.key
MPISEC_KEY_FILE=/etc/mpisec/site.key mpisec key check
