#!/bin/sh
# node.sh WHEEL [COMMAND [ARGUMENT …]]: makes MPIsec part of this machine, as root: when an image is made, or when a machine starts (docs/cloud.md).
#
#     node.sh /tmp/mpisec-0.2.0-py3-none-manylinux_2_28_x86_64.whl
#     node.sh s3://my-files/mpisec-….whl fetch-secret mpisec-site-key
#
# WHEEL: a file, an address from which pip can fetch it, or an object of S3, which `aws` fetches. COMMAND prints the site's key file, which then is
# /etc/mpisec/site.key, for root alone; nothing else prints it, and a key that cannot be used is an error, after which the key of before is still
# there. Needs python3 (3.9 or newer) and its venv module, and glibc 2.28 or newer.
set -eu
umask 022
wheel=${1:?usage: node.sh WHEEL [COMMAND [ARGUMENT …]]}
shift
case $wheel in s3://*)
    fetched=$(mktemp -d)  # where no other user can put a wheel
    trap 'rm -rf "$fetched"' EXIT
    aws s3 cp --only-show-errors "$wheel" "$fetched/"
    wheel=$fetched/${wheel##*/}
    ;;
esac
python3 -m venv /opt/mpisec
/opt/mpisec/bin/pip install --quiet --no-cache-dir --force-reinstall --no-deps "$wheel"
mkdir -p /usr/local/bin
ln -sf /opt/mpisec/bin/mpisec /usr/local/bin/mpisec
[ $# -gt 0 ] || exit 0
umask 077
key=$("$@")  # less the ends of lines that a store may add
mkdir -p /etc/mpisec
printf '%s\n' "$key" >/etc/mpisec/site.key.new
MPISEC_KEY_FILE=/etc/mpisec/site.key.new /opt/mpisec/bin/mpisec key check || {
    rm -f /etc/mpisec/site.key.new
    echo "node.sh: what \"$1\" printed is no key file; /etc/mpisec/site.key is as it was" >&2
    exit 1
}
mv -f /etc/mpisec/site.key.new /etc/mpisec/site.key
