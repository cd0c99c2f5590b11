#!/bin/bash
# node.sh NAME ADDRESS PORT QDISC: one virtual node, started in a network of its own. Its cable leads to PORT beside the
# switch, which is process 1. The rest of what a node has to itself follows the network, because behind new process
# numbers there is no process 1 to be seen.
set -euo pipefail
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
name=$1 address=$2 port=$3 qdisc=$4
quiet=/proc/sys/net/ipv6/conf/default/disable_ipv6
[ ! -e $quiet ] || echo 1 >$quiet
ip link set lo up
ip link add eth0 type veth peer name "$port" netns 1
ip address add "$address/24" dev eth0
ip link set eth0 up
tc qdisc add dev eth0 root $qdisc
# The process that makes the namespaces keeps its own number, by which it is found; its child is the first of the node,
# and reaps what loses its parent there.
exec unshare --uts --ipc --mount --pid --fork --kill-child --mount-proc bash -euc '
  hostname "$0"
  mount -t sysfs sysfs /sys
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  echo ready
  exec </dev/null >/dev/null 2>&1
  sleep infinity &
  wait' "$name"
