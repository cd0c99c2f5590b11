"""A Slurm with several virtual nodes on one machine, without systemd and beside any other.

Everything lies in one directory: configuration, keys, sockets, logs, state. The daemons listen on
free ports of the loopback address, and each virtual node is a slurmd of its own name.
"""

import itertools
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.processes import is_running, wait_for
from tests.slurm import accounting

DAEMONS = ("munged", "slurmctld", "slurmd")
START_S = 120.0
END_S = 10.0
PRIVILEGED = 1024  # ports below this are
CONFIGURATION = """\
ClusterName=switchpoint
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool-%n
TmpFS={place}/spool-%n
TaskProlog={place}/task_prolog
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
{accounting}SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=5
MpiDefault=pmi2
SwitchType=switch/none
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
ReturnToService=2
KillWait=5
SlurmdTimeout=20
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{slurmd_ports}] \
CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 State=UNKNOWN
PartitionName=cpu Nodes=ALL Default=YES MaxTime=30 State=UP OverSubscribe=NO
"""
# Nodes of one host name: Open MPI 4 would give their segments of memory the same names.
TASK_PROLOG = """\
#!/bin/sh
for part in btl_vader osc_sm; do
  echo "export OMPI_MCA_${{part}}_backing_directory={place}/spool-$SLURMD_NODENAME"
done
"""


class ClusterError(Exception):
    """An error of a Slurm that does not come up; the text says why."""


def missing(names: Sequence[str] = DAEMONS) -> list[str]:
    """Return the programs that this machine lacks."""
    return [name for name in names if _daemon(name) is None]


@dataclass(frozen=True)
class Cluster:
    """A Slurm in a directory."""

    place: Path
    nodes: int = 4
    cpus: int = 2
    accounts: bool = False

    @property
    def configuration(self) -> Path:
        return self.place / "slurm.conf"

    @property
    def env(self) -> dict[str, str]:
        """Return the environment in which Slurm's commands speak to this one."""
        return os.environ | {"SLURM_CONF": str(self.configuration)}

    def up(self) -> None:
        """Start all daemons, and return when every node takes jobs. Raise ClusterError."""
        self.place.mkdir(parents=True, exist_ok=True)
        self.place.chmod(0o755)  # munge requires a directory that others cannot write
        ports = _free_ports(self.nodes + 3)
        self._configure(ports)
        try:
            self._start_munge()
            if self.accounts:
                accounting.start(self.place, ports[1], self._start, self.env, _user_name())
            self._start("slurmctld", "-c", "-f", str(self.configuration))
            for number in range(1, self.nodes + 1):
                self.start_node(f"n{number}")
            self.wait_for_nodes()
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """End all jobs and daemons; missing ones are no error."""
        if self._alive("slurmctld"):
            for _ in range(2):  # twice, for jobs that were just submitted
                subprocess.run(
                    ["scancel", f"--user={_user_name()}", "--quiet"], env=self.env, timeout=20
                )
        pids = [pid for file in self.place.glob("*.pid") if (pid := _running(file))]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        with suppress(TimeoutError):
            wait_for(lambda: not any(map(is_running, pids)), END_S)
        for pid in filter(is_running, pids):
            os.kill(pid, signal.SIGKILL)

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        (self.place / f"spool-{name}").mkdir(exist_ok=True)
        self._start("slurmd", "-N", name, "-f", str(self.configuration))

    def runs_node(self, name: str) -> bool:
        """Return whether the slurmd of a node is running."""
        return self._alive(f"slurmd-{name}")

    def kill_node(self, name: str) -> None:
        """Kill the slurmd of a node; its jobs go on, and Slurm soon notices that it is gone."""
        if pid := _running(self.place / f"slurmd-{name}.pid"):
            os.kill(pid, signal.SIGKILL)

    def _configure(self, ports: list[int]) -> None:
        dbd_port, database_port, *ports = ports
        accounts = "AccountingStorageType=accounting_storage/none\n"
        if self.accounts:
            accounts = accounting.configure(self.place, (dbd_port, database_port), _user_name())
        (self.place / "state").mkdir(exist_ok=True)
        self.configuration.write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0],
                user=_user_name(),
                place=self.place,
                ports=ports,
                slurmd_ports=",".join(map(str, ports[1:])),
                nodes=self.nodes,
                cpus=self.cpus,
                accounting=accounts,
            )
        )
        (self.place / "cgroup.conf").touch()
        prolog = self.place / "task_prolog"
        prolog.write_text(TASK_PROLOG.format(place=self.place))
        prolog.chmod(0o755)
        key = self.place / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)

    def _start_munge(self) -> None:
        files = {
            "key-file": "munge.key",
            "socket": "munge.socket",
            "pid-file": "munge.pid",
            "log-file": "munge.log",
            "seed-file": "munge.seed",
        }
        options = [f"--{name}={self.place / file}" for name, file in files.items()]
        self._start("munged", "--force", *options)

    def _start(self, name: str, *options: str) -> None:
        command = [_daemon(name) or name, *options]
        answer = subprocess.run(command, capture_output=True, text=True, env=self.env)
        if answer.returncode != 0:
            raise ClusterError(f"{' '.join(command)}: {(answer.stderr or answer.stdout).strip()}")

    def wait_for_nodes(self) -> None:
        """Wait until every node takes jobs. Raise ClusterError."""
        deadline = time.monotonic() + START_S
        command = ["sinfo", "--noheader", "--states=idle", "--format=%D"]
        said = ""
        while time.monotonic() < deadline:
            answer = subprocess.run(command, capture_output=True, text=True, env=self.env)
            said = (answer.stdout + answer.stderr).strip()
            if said == str(self.nodes):
                return
            time.sleep(0.2)
        raise ClusterError(f"{said or 'no'} of {self.nodes} nodes idle; logs are in {self.place}")

    def _alive(self, name: str) -> bool:
        return _running(self.place / f"{name}.pid") is not None


def _user_name() -> str:
    """Return the name of who runs this, whatever the environment says. Raise ClusterError."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:  # as in a container
        raise ClusterError("this user has no name") from error


def _daemon(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _running(pid_file: Path) -> int | None:
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return None
    return pid if is_running(pid) else None


def _free_ports(count: int) -> list[int]:
    """Return unused ports that the kernel gives to no connection meanwhile."""
    lowest_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = list(range(PRIVILEGED, lowest_given))
    random.shuffle(candidates)
    return list(itertools.islice(filter(_is_free, candidates), count))


def _is_free(port: int) -> bool:
    with socket.socket() as asking, suppress(OSError):
        asking.bind(("", port))
        return True
    return False
