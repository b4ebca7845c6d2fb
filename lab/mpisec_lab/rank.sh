#!/bin/sh
# Starts one rank: takes the node's environment from the node's own file, then becomes the program. What is
# set here is set on the far side: no launcher has carried it over the network.
read -r node < /proc/sys/kernel/hostname
. "${0%/*}/$node.env"
exec "$@"
