#!/bin/bash
# switch.sh NODES QDISC DIRECTORY: makes virtual nodes and keeps them. It is the first process of new namespaces, which
# end with it: after a failure at any line, a closed standard input or a kill nothing is left. DIRECTORY gets the
# number, as seen from here, of the process that stands for each node.
set -euo pipefail
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
nodes=$1 qdisc=$2 directory=$3
quiet=/proc/sys/net/ipv6/conf/default/disable_ipv6 # IPv6 announces itself, which would be counted as traffic
mount -t sysfs sysfs /sys
hostname vswitch
[ ! -e $quiet ] || echo 1 >$quiet
ip link set lo up
ip link add switch0 type bridge
ip address add 10.77.0.1/24 dev switch0
ip link set switch0 up

{
  echo 127.0.0.1 localhost
  echo 10.77.0.1 vswitch
  for ((i = 0; i < nodes; i++)); do echo "10.77.0.$((i + 2)) vnode$i"; done
} >"$directory/hosts"
mount --bind "$directory/hosts" /etc/hosts

for ((i = 0; i < nodes; i++)); do
  exec {output}< <(exec unshare --net "$directory/node" "vnode$i" "10.77.0.$((i + 2))" "port$i" "$qdisc")
  echo $! >"$directory/vnode$i.pid"
  read -r _ <&"$output"
  exec {output}<&-
  ip link set "port$i" master switch0 up
  tc qdisc add dev "port$i" root $qdisc
done

echo ready
read -r _ # whoever asked for the nodes knows where they are
exec </dev/null >/dev/null 2>&1
sleep infinity &
wait
