"""A site's scheduler, with its partitions and their nodes."""

import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tuner.errors import SwitchpointError
from tuner.machine.mpi import available_cores
from tuner.machine.processes import answer
from tuner.units import is_digits

SLURM = ("slurm", "squeue")
"""Slurm by ReFrame's names: with accounting, and without."""

LSF = ("lsf-span", "lsf")
"""LSF by ReFrame's names: any, and with CSM."""


ODD = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""The errors of parsing an answer of another form."""


class SchedulerError(SwitchpointError):
    """Error raised when a scheduler's answer is missing or unknown; it names the command."""


@dataclass(frozen=True)
class Processors:
    """The processors of a node: hardware threads, threads per core, sockets (0: unknown)."""

    cpus: int
    cpus_per_core: int = 1
    sockets: int = 0


@dataclass(frozen=True)
class Partition:
    """A partition or queue, with the most frequent kind of its nodes."""

    name: str
    nodes: int
    shape: Processors
    kinds: int = 1  # of nodes


@dataclass(frozen=True)
class Scheduler:
    """A scheduler: how ReFrame uses it, and how its partitions are queried."""

    name: str  # ReFrame's
    launcher: str  # ReFrame's
    commands: tuple[str, ...]  # what ReFrame and we call
    ask: Callable[[], list[Partition]]  # raises the errors of parsing a text
    access: tuple[str, ...]  # options of a job; {partition} is its name
    account: str  # the option that charges an account
    options: dict[str, object] = field(default_factory=dict)  # ReFrame's sched_options
    caution: str = ""
    module: str = ""  # makes the name known to ReFrame

    def partitions(self) -> list[Partition]:
        """Return the partitions. Raise SchedulerError for a missing or unknown answer."""
        try:
            return self.ask()
        except ODD as error:
            asked = ", ".join(self.commands)
            reason = f"{type(error).__name__}: {error}"
            raise SchedulerError(
                f"{self.name} was not detected: cannot parse the output of {asked}: {reason}"
            ) from error


def detect() -> Scheduler:
    """Return the scheduler whose commands are on the path and answer, else this machine's own.

    Raises:
        SchedulerError: there are commands, and none answers.
    """
    silent: list[str] = []
    for each in SCHEDULERS.values():
        if not each.commands or not all(map(shutil.which, each.commands)):
            continue
        try:
            each.partitions()
            return accounting_or_not() if each.name == "slurm" else each
        except SchedulerError as error:
            silent.append(str(error))
    if silent:
        raise SchedulerError(f"{silent[0]}; --scheduler local measures this machine alone")
    return SCHEDULERS["local"]


def accounting_or_not() -> Scheduler:
    """Return Slurm with sacct for ReFrame's finished jobs, or without accounting with squeue."""
    settings = ask("scontrol", "show", "config")
    stored = [line for line in settings.splitlines() if line.startswith("AccountingStorageType")]
    has_none = all("none" in line or "(null)" in line for line in stored)
    return SCHEDULERS["squeue" if has_none else "slurm"]


def srun_type(family: str) -> str:
    """Return the value of `srun --mpi` for an MPI family; "" if it is the default, or unknown."""
    try:
        settings = ask("scontrol", "show", "config")
        there = ask("srun", "--mpi=list").split()
    except SchedulerError:
        return ""
    wanted = _PMI.get(family, "")
    is_default = re.search(rf"^MpiDefault\s*=\s*{wanted}$", settings, re.MULTILINE)
    return wanted if wanted in there and not is_default else ""


def _slurm_partitions() -> list[Partition]:
    lines = ask(
        "sinfo", "--noheader", "--noconvert", "--exact", "--format=%R|%a|%T|%D|%s|%c|%X|%Y|%Z"
    ).splitlines()
    nodes: dict[str, Counter[Processors]] = {}
    most_nodes: dict[str, int | None] = {}
    for line in lines:
        try:
            name, state, of_nodes, count, job_nodes, *processors = line.split("|")
            cpus, sockets, cores, threads = map(int, processors)
            number = int(count)
        except ValueError as error:
            raise SchedulerError(f"sinfo: cannot parse the line: {line}") from error
        if state == "up" and number and not re.search(_SLURM_AWAY, of_nodes):
            # Slurm may count cores as CPUs, whose threads it does not give to jobs.
            shape = Processors(cpus, threads if cpus > sockets * cores else 1, sockets)
            nodes.setdefault(name, Counter())[shape] += number
            most = job_nodes.split("-")[-1]  # of "1-4", "4", "1-infinite"
            most_nodes[name] = int(most) if is_digits(most) else None
    return [_partition(name, shapes, most_nodes[name]) for name, shapes in nodes.items()]


def _partitions(
    shapes: Mapping[str, Counter[Processors]], most_nodes: Mapping[str, Any] | None = None
) -> list[Partition]:
    """Return the queues that have nodes. Raise SchedulerError where there are only others."""
    found = {name: its for name, its in shapes.items() if its} or shapes
    return [_partition(name, its, (most_nodes or {}).get(name)) for name, its in found.items()]


def _pbs_partitions() -> list[Partition]:
    vnodes = json.loads(ask("pbsnodes", "-a", "-F", "json"))["nodes"]
    queues = json.loads(ask("qstat", "-Q", "-f", "-F", "json"))["Queue"]
    cpus: Counter[tuple[str, str]] = Counter()  # by queue, if vnodes belong to one, and host
    for name, each in vnodes.items():
        if {state.strip() for state in each.get("state", "").split(",")} <= _PBS_USABLE:
            resources = each.get("resources_available", {})
            place = each.get("queue", ""), resources.get("host", name)
            cpus[place] += int(resources.get("ncpus", 0))
    shapes: dict[str, Counter[Processors]] = defaultdict(Counter)
    for (queue, _), number in cpus.items():
        if number:  # else no compute node
            shapes[queue][Processors(number)] += 1
    owning = {each.get("queue") for each in vnodes.values()}
    usable = {
        name: facts
        for name, facts in queues.items()
        if (facts["queue_type"], facts["enabled"], facts["started"])
        == ("Execution", "True", "True")
    }
    return _partitions(
        {name: shapes[name if name in owning else ""] for name in usable},
        {name: facts.get("resources_max", {}).get("nodect") for name, facts in usable.items()},
    )


def _lsf_partitions() -> list[Partition]:
    # HOST_NAME type model cpuf ncpus maxmem maxswp server RESOURCES; "-" is unknown
    cpus = {row[0]: int(row[4]) for row in _rows("lshosts") if row[4:] and is_digits(row[4])}
    # QUEUE_NAME PRIO STATUS …
    queues = [row[0] for row in _rows("bqueues") if row[2:3] == ["Open:Active"]]
    described = dict(re.findall(_LSF_QUEUE, ask("bqueues", "-l"), re.MULTILINE))
    shapes = {}
    for name in queues:
        slots = _lsf_slots(described[name].split())
        its = (min(cpus[host], slots[host] or cpus[host]) for host in slots if host in cpus)
        shapes[name] = Counter(map(Processors, its))
    return _partitions(shapes)


def _lsf_slots(hosts: list[str]) -> dict[str, int | None]:
    """Return the slots of usable hosts, None if not limited.

    The words of lsb.queues say which: names as in `hostA+1 group/`, or all; less those after ~.
    """
    if hosts == ["none"]:
        return {}
    names = [word.split("+")[0].rstrip("/!") for word in hosts]
    named = [name for name in names if not name.startswith("~")]
    but = [name.removeprefix("~") for name in names if name.startswith("~")]
    without = {row[0] for row in _rows("bhosts", "-X", *but)} if but else set()
    # HOST_NAME STATUS JL/U MAX …
    return {
        row[0]: None if row[3] == "-" else int(row[3])
        for row in _rows("bhosts", "-X", *([] if _LSF_ALL.intersection(named) else named))
        if row[1] not in _LSF_AWAY and row[3] != "0" and row[0] not in without
    }


def _rows(command: str, *options: str) -> list[list[str]]:
    """Return the words of each line that an LSF command prints, but of the heading."""
    lines = ask(command, "-w", *options).splitlines()[1:]
    return [line.split() for line in lines if line.strip()]


def _flux_partitions() -> list[Partition]:
    lines = ask("flux", "resource", "list", "-no", "{nnodes} {ncores}").splitlines()
    counts = [tuple(map(int, line.split())) for line in lines if line.strip()]  # by state
    nodes, cores = sum(count[0] for count in counts), sum(count[1] for count in counts)
    shapes = Counter({Processors(cores // nodes): nodes} if nodes else {})
    queues = ask("flux", "queue", "list", "-no", "{queue}").split()
    return [_partition(name, shapes) for name in queues or ["default"]]


def _this_machine() -> list[Partition]:
    return [Partition("cpu", 1, Processors(available_cores()))]


def _partition(
    name: str, shapes: Counter[Processors], most_nodes: str | int | None = None
) -> Partition:
    """Return a partition whose jobs may have at most so many nodes."""
    if not shapes:
        raise SchedulerError(f"partition {name}: the scheduler reports no nodes")
    shape, nodes = shapes.most_common(1)[0]
    return Partition(name, min(nodes, int(most_nodes or nodes)), shape, len(shapes))


def ask(*command: str) -> str:
    """Return what a command prints. Raise SchedulerError when it fails or takes a minute."""
    its = answer(command, 60, SchedulerError)
    if its.returncode != 0:
        said = (its.stderr or its.stdout).strip().splitlines() or ["no reason given"]
        raise SchedulerError(f"{' '.join(command)}: {said[0]}")
    return its.stdout or its.stderr  # srun lists on stderr


# A job that starts again would find raw files of its first start: the campaign is resumed instead.
_SLURM_ACCESS = ("--partition={partition}", "--exclusive", "--no-requeue")
_SLURM_AWAY = r"^(down|drain|fail|maint|future|planned)|[*$-]$"  # the last: flags
_LSF_ACCESS = ("-q {partition}", "-x", "-rn")
_LSF_QUEUE = r"^QUEUE: (\S+)$(?:\n(?!QUEUE: |HOSTS:).*)*\nHOSTS:(.*)$"
_LSF_ALL = {"all", "others"}
_LSF_AWAY = {"unavail", "unreach", "closed_Adm", "closed_EGO", "closed_LIM", "closed_Lock"}
_PBS_USABLE = {"free", "busy", "job-busy", "job-exclusive", "job-sharing", "resv-exclusive"}
_PMI = {
    "mpich": "pmi2",
    "openmpi": "pmix",
    "intelmpi": "pmi2",
}  # the protocol of each MPI family with srun


_SLURM = Scheduler(
    "slurm",
    "srun",
    ("sinfo", "sbatch", "sacct"),
    _slurm_partitions,
    _SLURM_ACCESS,
    "--account={account}",
    # A job whose nodes are reserved or in maintenance waits; ReFrame would cancel it.
    {"use_nodes_option": True, "ignore_reqnodenotavail": True},
)
_LSF = Scheduler(  # with CSM
    "lsf",
    "mpirun",
    ("lshosts", "bhosts", "bqueues", "bsub"),
    _lsf_partitions,
    _LSF_ACCESS,
    "-P {account}",
)

SCHEDULERS = {
    each.name: each
    for each in (
        _SLURM,
        replace(_SLURM, name="squeue", commands=("sinfo", "sbatch", "squeue")),
        Scheduler(
            "pbs",
            "mpiexec",
            ("pbsnodes", "qstat", "qsub"),
            _pbs_partitions,
            ("-q {partition}", "-l place=scatter:exclhost", "-r n"),
            "-A {account}",
        ),
        replace(_LSF, name="lsf-span", module="tuner.machine.sites.lsf"),
        _LSF,
        Scheduler(
            "flux",
            "mpiexec",
            ("flux",),
            _flux_partitions,
            (),
            "--bank={account}",
            caution="ReFrame asks Flux for one core per job: measure inside `flux alloc` with "
            "--scheduler local instead, which measures one node",
        ),
        Scheduler("local", "mpiexec", (), _this_machine, (), ""),
    )
}
"""The schedulers by ReFrame's names, in the order in which they are looked for."""
