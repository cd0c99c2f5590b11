#!/bin/sh
# rsh [OPTION]... NODE COMMAND...: what MPI launchers start their daemons with; runs the command on a virtual node.
while :; do
  case $1 in
    -l | -p) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
read -r node <"$(dirname "$0")/$1.pid" || exit 1
shift
exec nsenter --target "$node" --mount --net --uts --ipc --pid="/proc/$node/ns/pid_for_children" -- sh -c "$*"
