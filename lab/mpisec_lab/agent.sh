#!/bin/sh
# The lab's ssh: `ssh [options] NODE command…` runs the command on that node, with as little environment as
# a real ssh leaves: what a launcher has set here does not get there. cluster.py fills in the nodes.
while [ $# -gt 0 ]; do
    case $1 in
    -[BbcDEeFIiJLlmOopQRSWw]) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
node=$1
shift
case $node in
@NODES@
    *) echo "lab: there is no node '$node'" >&2; exit 255 ;;
esac
exec ${cores:+taskset -c "$cores"} nsenter -t "$pid" -m -n -u -i -- env -i \
    HOME="$HOME" PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin TMPDIR="@DIRECTORY@/$node.tmp" \
    /bin/sh -c "$*"
