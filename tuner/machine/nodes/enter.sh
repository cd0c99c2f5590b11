#!/bin/sh
# enter COMMAND...: runs it in this directory beside the switch of the virtual nodes, where mpiexec belongs.
# nsenter passes on no signal: the command is terminated once nsenter is gone.
read -r switch options <"$(dirname "$0")/switch.pid"
# shellcheck disable=SC2086
exec nsenter --target "$switch" $options --mount --net --uts --ipc --pid="/proc/$switch/ns/pid_for_children" -- \
  setpriv --pdeathsig TERM sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
