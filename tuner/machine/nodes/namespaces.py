"""Sets of virtual nodes: made, found again, and ended.

A set hangs on one process, the switch (switch.sh). All its namespaces and everything that runs in
them end with that process, so nothing can be left behind, and no name can collide.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from tuner import atomic
from tuner.errors import SwitchpointError
from tuner.files import open_lock, read_json
from tuner.machine.directories import cache_directory
from tuner.machine.ending import Process
from tuner.machine.processes import start_of

SCRIPTS = Path(__file__).resolve().parent
PROGRAMS = {
    **dict.fromkeys(["ip", "tc"], "iproute2"),
    **dict.fromkeys(["unshare", "nsenter", "setpriv"], "util-linux"),
}
MOST_NODES = 64
UNLIMITED = "unlimited"
RATE = re.compile(r"[1-9][0-9]*(kbit|mbit|gbit)")
DEFAULT_COUNT = 4
DEFAULT_RATE = "1gbit"
NETWORK = "tcp-"  # before the rate in ReFrame's name of a partition
# The variable names the set to use; several can be up at once.
SET_VARIABLE = "SWITCHPOINT_NODES"
RECORD = "nodes.json"
START_TIMEOUT_S = 60.0
END_TIMEOUT_S = 10.0


class NodesError(SwitchpointError):
    """Error raised when virtual nodes cannot be made, found or used; the message says why."""


@dataclass(frozen=True)
class Nodes:
    """A set of virtual nodes that is up."""

    name: str
    count: int
    rate: str  # of each network card, as "1gbit", or "unlimited"
    pid: int  # of the switch
    started: str  # when that process started, in the kernel's ticks: a reused pid has a later one

    @property
    def directory(self) -> Path:
        """Return the directory of the scripts that enter the nodes."""
        return _own_directory() / self.name

    @property
    def partition(self) -> str:
        """Return ReFrame's name of these nodes: another rate is another network."""
        return f"{NETWORK}{self.rate}"

    @property
    def hosts(self) -> list[str]:
        """Return the names of the nodes."""
        return [f"vnode{number}" for number in range(self.count)]

    def beside_switch(self) -> list[str]:
        """Return the command prefix that runs a command where launchers of MPI programs run."""
        return [str(self.directory / "enter")]

    def on_node(self, host: str) -> list[str]:
        """Return the command prefix that makes a node's shell run a command, given as one string.

        Raises:
            NodesError: there is no such node.
        """
        if host not in self.hosts:
            raise NodesError(
                f"no virtual node {host}; the nodes are {self.hosts[0]} to {self.hosts[-1]}"
            )
        return [*self.beside_switch(), str(self.directory / "rsh"), host]


def name_meant() -> str:
    """Return the name of the set that SWITCHPOINT_NODES names, "default" when it names none."""
    return os.environ.get(SET_VARIABLE) or "default"


def find(name: str) -> Nodes | None:
    """Return this user's set with a name, or None when it is not up.

    Raises:
        NodesError: its record is damaged.
    """
    record = _place(name) / RECORD
    try:
        nodes = read_json(record, Nodes)
        _require_possible(nodes, name)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise NodesError(
            f"{record}: not a record of virtual nodes: {error}; end the processes of switch.sh, "
            "if any, and delete it"
        ) from error
    return nodes if start_of(nodes.pid) == nodes.started else None


def _require_possible(nodes: Nodes, name: str) -> None:
    """Raise ValueError if no set with this name can be so: its process is killed, its name run."""
    possible = {
        "name": nodes.name == name,
        "count": 1 <= nodes.count <= MOST_NODES,
        "rate": _is_rate(nodes.rate),
        "pid": 1 < nodes.pid < 2**31,  # others are groups of processes, or all
        "started": re.fullmatch("[0-9]{1,20}", nodes.started) is not None,
    }
    if wrong := [each for each, is_possible in possible.items() if not is_possible]:
        raise ValueError(f"impossible {', '.join(wrong)}")


def meant(name: str | None = None) -> Nodes:
    """Return the set with a name, by default the one that SWITCHPOINT_NODES names.

    Raises:
        NodesError: it is not up.
    """
    name = name or name_meant()
    nodes = find(name)
    if nodes is None:
        raise NodesError(f'no virtual nodes "{name}" are up; run `switchpoint nodes up`')
    return nodes


def up(name: str, count: int, rate: str) -> Nodes:
    """Make a persistent set of nodes, or return the existing one if it has the same shape.

    Raises:
        NodesError: the set is up in another shape, or this machine or user can have none.
    """
    with _lock():
        there = find(name)
        if there is not None:
            if (there.count, there.rate) != (count, rate):
                shape = f"{there.count} nodes at {there.rate} are up"
                raise NodesError(f'"{name}": {shape}; `switchpoint nodes down` stops them')
            return there
        nodes, switch = _start(name, count, rate)
        switch.write("stay\n")
        switch.close()
    return nodes


def down(name: str) -> bool:
    """End a set and all that runs in it; return whether there was one.

    Raises:
        NodesError: its processes do not end.
    """
    with _lock():
        nodes = find(name)
        if nodes is not None:
            switch = Process(nodes.pid, nodes.started)
            switch.kill()
            if not switch.has_ended(END_TIMEOUT_S):
                raise NodesError(f"process {nodes.pid}, the switch of {nodes.name}, does not end")
        shutil.rmtree(_place(name), ignore_errors=True)
    return nodes is not None


@contextmanager
def temporary(name: str, count: int = DEFAULT_COUNT, rate: str = DEFAULT_RATE) -> Iterator[Nodes]:
    """Make a set that SWITCHPOINT_NODES names in the context; it ends with that or this process.

    Raises:
        NodesError: the name is taken, or nodes are impossible on this machine or for this user.
    """
    with _lock():
        if find(name) is not None:
            raise NodesError(f'"{name}" is already up')
        nodes, switch = _start(name, count, rate)
    before = os.environ.get(SET_VARIABLE)
    os.environ[SET_VARIABLE] = name
    try:
        with switch:  # without a request to stay, it ends with this process
            yield nodes
    finally:
        os.environ.pop(SET_VARIABLE)
        if before is not None:
            os.environ[SET_VARIABLE] = before
        down(name)


@contextmanager
def available(partition: str = "", count: int = 0, *, made: int = DEFAULT_COUNT) -> Iterator[Nodes]:
    """Yield the set that SWITCHPOINT_NODES means where it is up, else a temporary one.

    Where results of a partition are continued, their network is needed, and as many nodes, if their
    number is known; otherwise `made` are made.

    Raises:
        NodesError: another network or number is up, or nodes are impossible.
    """
    there = find(name_meant())
    if there is None:
        rate = partition.removeprefix(NETWORK) or DEFAULT_RATE
        with temporary(f"process-{os.getpid()}", count or made, rate) as nodes:
            yield nodes
        return
    count, partition = count or there.count, partition or there.partition
    if (count, partition) != (there.count, there.partition):
        raise NodesError(
            f"the virtual nodes that are up are {there.count} of {there.partition}, not {count} of "
            f"{partition}; end them with `switchpoint nodes down`, or name others by {SET_VARIABLE}"
        )
    yield there


def _check(count: int, rate: str) -> None:
    if not 1 <= count <= MOST_NODES:
        raise NodesError(f"{count} virtual nodes: 1 to {MOST_NODES} are possible")
    if not _is_rate(rate):
        raise NodesError(f'rate "{rate}": write 100mbit, 1gbit or {UNLIMITED}')
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=_search_path()) is None:
            raise NodesError(f"virtual nodes need {program}: install {package}")


def _is_rate(rate: str) -> bool:
    return rate == UNLIMITED or RATE.fullmatch(rate) is not None


def _start(name: str, count: int, rate: str) -> tuple[Nodes, IO[str]]:
    """Make a set, under the lock. The set ends when its input, which is returned, is closed."""
    _check(count, rate)
    place = _place(name)
    for stale in place.parent.iterdir():
        if stale.is_dir() and find(stale.name) is None:
            shutil.rmtree(stale)
    place.mkdir()
    for script in ("node", "enter", "rsh"):
        shutil.copyfile(SCRIPTS / f"{script}.sh", place / script)
        (place / script).chmod(0o755)
    input_end, tether = os.pipe()
    output, output_end = os.pipe()
    process: subprocess.Popen[bytes] | None = None
    try:
        try:
            process = _start_switch(place, count, rate, input_end, output_end)
        finally:
            os.close(input_end)
            os.close(output_end)
        with os.fdopen(output) as said:
            _await_ready(process, said)
        started = start_of(process.pid)
        if not started:
            raise NodesError("virtual nodes cannot be made: their switch has ended")
        nodes = Nodes(name, count, rate, process.pid, started)
        atomic.write(place / RECORD, json.dumps(asdict(nodes)))
    except BaseException:
        os.close(tether)
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(place)
        raise
    return nodes, os.fdopen(tether, "w")


def _start_switch(
    place: Path, count: int, rate: str, stdin: int, stdout: int
) -> subprocess.Popen[bytes]:
    """Start switch.sh in new namespaces, and record how they are entered."""
    qdisc = "noqueue" if rate == UNLIMITED else f"tbf rate {rate} burst 32kb latency 100ms"
    root = os.geteuid() == 0
    own = [] if root else ["--user", "--map-root-user"]
    spaces = ["--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc"]
    script = ["bash", str(SCRIPTS / "switch.sh"), str(count), qdisc, str(place)]
    process = subprocess.Popen(
        [str(shutil.which("unshare", path=_search_path())), *own, *spaces, "--kill-child", *script],
        stdin=stdin,
        stdout=stdout,
        stderr=stdout,
        env=os.environ | {"PATH": _search_path()},
        start_new_session=True,  # a Ctrl-C must not reach it
    )
    options = "" if root else "--user --preserve-credentials"
    (place / "switch.pid").write_text(f"{process.pid} {options}\n")
    return process


def _search_path() -> str:
    """Return PATH, extended by the directories of tc and ip that only root has on some systems."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _await_ready(process: subprocess.Popen[bytes], output: IO[str]) -> None:
    """Wait until the switch is ready. Raise NodesError if it ends first."""
    deadline = threading.Timer(START_TIMEOUT_S, process.kill)
    deadline.start()
    complaints = []
    try:
        for line in output:
            if line == "ready\n":
                return
            complaints.append(line.strip())
    finally:
        deadline.cancel()
    raise NodesError(_reason(complaints))


def _reason(complaints: list[str]) -> str:
    """Return one line on why there are no nodes."""
    reason = ": ".join(complaints[:2]) or f"nothing happened within {START_TIMEOUT_S:.0f} s"
    advice = ""
    if reason.startswith("unshare: "):
        root = os.geteuid() == 0
        advice = (
            " (this container lacks the right CAP_SYS_ADMIN)"
            if root
            else " (not root, and this system has no unprivileged user namespaces)"
        )
    return f"virtual nodes cannot be made: {reason}{advice}"


def _place(name: str) -> Path:
    """Return the directory of a set; nobody else can write there."""
    if not name.replace("-", "").isalnum():
        raise NodesError(f'"{name}" is not a name for virtual nodes: use letters, digits, dashes')
    return _own_directory() / name


def _own_directory() -> Path:
    """Return the directory of this user's sets, where their scripts can be executed.

    Its name is that of one boot and one space of process numbers: hosts and containers may share
    temporary directories, and would take the others' sets for ended ones.
    """
    # Not XDG_RUNTIME_DIR: it ends at logout, and jobs inherit its name on nodes that lack it.
    parent = Path(tempfile.gettempdir())
    if os.statvfs(parent).f_flag & os.ST_NOEXEC:
        parent = cache_directory()
        parent.mkdir(parents=True, exist_ok=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    numbers = Path("/proc/self/ns/pid").stat().st_ino
    directory = parent / f"switchpoint-nodes-{os.geteuid()}-{boot}-{numbers}"
    directory.mkdir(mode=0o700, exist_ok=True)
    owner = directory.stat(follow_symlinks=False)
    if owner.st_uid != os.geteuid() or owner.st_mode & 0o022:
        raise NodesError(
            f"{directory} belongs to another user, or others can write there; name another "
            "directory by TMPDIR"
        )
    return directory


@contextmanager
def _lock() -> Iterator[None]:
    """Let only one process at a time make or end sets."""
    with open_lock(_own_directory() / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
