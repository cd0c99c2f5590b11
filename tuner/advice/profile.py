"""Profiles of applications, as the profiling library writes them (docs/reference/profile.md)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Annotated, NamedTuple

import msgspec
import numpy as np

from tuner.domain.operations import COLLECTIVES, DISPATCHED, EXCHANGED, NO_DATA, NO_DATA_BYTES
from tuner.errors import SwitchpointError
from tuner.files import one_line, printable

MOST_LINE_BYTES = 16 << 20
"""The longest line that is read; the preload writes less than half of it for a process."""

NEAR_RATIO = 1.125
"""Ratio of sizes of different ranks from which on they are of different calls."""

MOST_BYTES = 2**31 - 1
"""The largest block, or sum of an allgatherv's blocks, that the preload dispatches."""

Natural = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
MOST_S = 1e12
ProfiledSeconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_S)]
Name = Annotated[str, msgspec.Meta(max_length=128)]
LongName = Annotated[str, msgspec.Meta(max_length=1024)]
CallSample = tuple[Natural, ProfiledSeconds, ProfiledSeconds, int]
"""The number of a collective call, when it began, how long it took, and the index of its tally."""


class ProfileError(SwitchpointError):
    """Error raised when a file is no profile; the message says where and why."""


class UnwrittenError(ProfileError):
    """Error raised when no process has written its calls."""

    def __init__(self, where: str = "") -> None:
        super().__init__(f"{where}no process has written its calls: did the program call MPI_Init?")


class _Tally(msgspec.Struct):
    call: Name
    group: int
    type: Name
    bytes: Natural
    calls: Natural
    seconds: ProfiledSeconds


class _Group(msgspec.Struct):
    group: int
    members: Name
    procs: Natural
    nodes: Natural
    ppn: Natural
    samples: list[CallSample]


class _Process(msgspec.Struct):
    """A line of the file."""

    profile: Annotated[int, msgspec.Meta(ge=1, le=1)]
    rank: Natural
    procs: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    finalized: bool
    program: LongName
    node: LongName
    seconds: ProfiledSeconds
    lost: Natural
    calls: list[_Tally]
    groups: list[_Group]
    aborted: bool = False


class Shape(NamedTuple):
    """The calls of one function at one size on communicators of one layout.

    `nodes` is 0 where the layout is unknown, `procs` too where a call has no communicator.
    """

    call: str
    procs: int
    nodes: int
    ppn: int
    bytes: int

    @property
    def operation(self) -> str:
        """Return the operation of tables; "" for calls that no table is about."""
        name = self.call.lower()
        is_dispatched = name in DISPATCHED and self.nodes > 0 and 0 < self.bytes <= self.most_bytes
        return name if is_dispatched else ""

    @property
    def most_bytes(self) -> int:
        """Return the size up to which calls are dispatched."""
        return MOST_BYTES // (max(self.procs, 1) if self.call.lower() == "allgatherv" else 1)

    @property
    def promised(self) -> str:
        """Return the operation of tables to which a promise of the program may lead; else ""."""
        name = self.call.lower()
        if not self.nodes:
            return ""
        if _is_exchange(name):
            return "exchange"
        return _tabled(name) if name == "alltoallv" or name.endswith("_init") else ""

    @property
    def tabled(self) -> bool:
        """Return whether a table may be about the calls: also where their layout is not known."""
        if self.procs:
            return self.procs > 1 and bool(self.operation or self.promised)
        name = self.call.lower()
        return bool(_tabled(name)) or _is_exchange(name)


def _tabled(name: str) -> str:
    """Return the operation of tables of a plain or persistent function, else ""."""
    operation = name.removesuffix("_init")
    return operation if operation in COLLECTIVES else ""


def _is_exchange(name: str) -> bool:
    """Return whether rules for exchanges may be about a function; the name is in lower case."""
    return name.removesuffix("_init") in EXCHANGED or name.startswith("neighbor_")


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one shape. `count` is of one process, `seconds` the mean of all processes.

    `own_s` are those that another method may change: from the last arrival to the last departure,
    as methods are measured. Where no call of all its processes was sampled, they are those of the
    process that spends the least, and `spread_s` is None: the median time between the first and the
    last arrival on a node.
    """

    shape: Shape
    types: tuple[str, ...]
    count: int
    seconds: float
    own_s: float
    spread_s: float | None


@dataclass(frozen=True, slots=True)
class Profile:
    """The calls of one run, those with the most time first. `seconds` are from init to finalize.

    Times of several threads are added up, to no more than the time of their process.
    `communication_s` are those in MPI, the mean of all processes.

    `bound_s` are the seconds in calls of operations with tables, of the process that spends the
    least in them: if they took no time, the program would still take all others of that process.
    Those that need a promise are among them.
    """

    program: str
    procs: int
    reported: int  # processes
    cut: int  # lines of processes that were killed while they wrote
    finalized: bool
    aborted: bool
    seconds: float
    lost: int
    communication_s: float
    bound_s: float
    calls: tuple[Calls, ...]
    notes: tuple[str, ...] = ()  # what the file does not say, and what is taken for it


def in_turn(profiles: Sequence[Profile]) -> Profile:
    """Return the profiles of programs that ran one after the other as one."""
    if len(profiles) == 1:
        return profiles[0]
    names = dict.fromkeys(its.program for its in profiles)
    widest = max(profiles, key=lambda its: its.procs)
    of_shapes: dict[Shape, list[Calls]] = defaultdict(list)
    for its in profiles:
        for calls in its.calls:
            of_shapes[calls.shape].append(calls)
    return Profile(
        program=" + ".join(names),
        procs=widest.procs,
        reported=widest.procs - max(its.procs - its.reported for its in profiles),
        cut=sum(its.cut for its in profiles),
        finalized=all(its.finalized for its in profiles),
        aborted=any(its.aborted for its in profiles),
        seconds=sum(its.seconds for its in profiles),
        lost=sum(its.lost for its in profiles),
        communication_s=sum(its.communication_s for its in profiles),
        bound_s=sum(its.bound_s for its in profiles),
        calls=by_time(map(_added, of_shapes.values())),
        notes=tuple(dict.fromkeys(note for its in profiles for note in its.notes)),
    )


def _added(calls: Sequence[Calls]) -> Calls:
    """Return the calls of one shape in several programs; they spread as where most time went."""
    spreads = [(its.seconds, its.spread_s) for its in calls if its.spread_s is not None]
    return Calls(
        calls[0].shape,
        tuple(sorted({name for its in calls for name in its.types})),
        sum(its.count for its in calls),
        sum(its.seconds for its in calls),
        sum(its.own_s for its in calls),
        max(spreads)[1] if spreads else None,
    )


def by_time(calls: Iterable[Calls]) -> tuple[Calls, ...]:
    """Return calls, those with the most time first."""
    return tuple(sorted(calls, key=lambda each: (-each.seconds, each.shape)))


def parse(file: IO[bytes]) -> Profile:
    """Return the profile that a file holds, without lines that were cut. Raise ProfileError."""
    decoder = msgspec.json.Decoder(_Process)
    processes: dict[int, _Process] = {}
    cut = 0
    for number, ended in lines_of(file):
        line = ended.removesuffix(b"\n")
        try:
            its = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            why = printable(str(error))
            begun = line.startswith(b'{"profile":')
            at_its_end = ("truncated", f"(byte {len(line)})")  # the latter behind "1."
            if begun and why.endswith(at_its_end):  # of a process that was killed while it wrote
                cut += 1
                continue
            raise ProfileError(f"line {number} is not a line of a profile: {why}") from error
        first = next(iter(processes.values()), its)
        if its.rank in processes or its.procs != first.procs:
            raise ProfileError(
                f"line {number} is of another run: name a directory for programs that run at once"
            )
        processes[its.rank] = its
    if not processes:
        raise UnwrittenError
    first = next(iter(processes.values()))
    shapes = _shapes(processes.values())
    return Profile(
        program=one_line(first.program),
        procs=first.procs,
        reported=len(processes),
        cut=cut,
        finalized=all(its.finalized for its in processes.values()),
        aborted=any(its.aborted for its in processes.values()),
        seconds=max(its.seconds for its in processes.values()),
        lost=sum(its.lost for its in processes.values()),
        communication_s=float(np.mean([*map(_communication_s, processes.values())])),
        bound_s=min(_tabled_s(its, shapes[rank]) for rank, its in processes.items()),
        calls=_calls(processes, shapes),
    )


def lines_of(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers. Raise ProfileError for one without an end."""
    for number, line in enumerate(iter(lambda: file.readline(MOST_LINE_BYTES + 1), b""), 1):
        if len(line) > MOST_LINE_BYTES:
            raise ProfileError(f"line {number} is longer than {MOST_LINE_BYTES >> 20} MiB")
        yield number, line


def _communication_s(process: _Process) -> float:
    return min(sum(tally.seconds for tally in process.calls), process.seconds)


def _tabled_s(process: _Process, shapes: Sequence[Shape]) -> float:
    """Return the seconds of a process in calls of operations with tables."""
    own = tabled(shapes)
    tallies = zip(shapes, process.calls, strict=True)
    seconds = sum(tally.seconds for shape, tally in tallies if shape in own)
    return min(seconds, process.seconds)


def tabled(shapes: Collection[Shape]) -> set[Shape]:
    """Return the shapes of calls in which time of operations with tables is spent.

    Persistent calls take theirs where requests are started, tested and waited for.
    """
    own = {its for its in shapes if its.tabled}
    if any(its.call.endswith("_init") for its in own):
        own |= {its for its in shapes if its.call.startswith(("Start", "Test", "Wait"))}
    return own


def _calls(
    processes: Mapping[int, _Process], shapes: Mapping[int, Sequence[Shape]]
) -> tuple[Calls, ...]:
    seconds: dict[Shape, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    counts: dict[Shape, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    types: dict[Shape, set[str]] = defaultdict(set)
    for rank, its in processes.items():
        for tally, shape in zip(its.calls, shapes[rank], strict=True):
            seconds[shape][rank] += tally.seconds
            counts[shape][rank] += tally.calls
            types[shape] |= {printable(tally.type)} - {""}
    meetings = _meetings(processes, shapes)
    found = []
    for shape, spent in seconds.items():
        of_ranks = {rank: min(its_s, processes[rank].seconds) for rank, its_s in spent.items()}
        count, mean_s = max(counts[shape].values()), sum(of_ranks.values()) / len(processes)
        own_s, spread_s = min(of_ranks.values()), None
        if its_meetings := meetings.get(shape):
            own_s = count * float(np.mean([meeting.own_s for meeting in its_meetings]))
            spread_s = float(np.median([meeting.spread_s for meeting in its_meetings]))
        its_types = tuple(sorted(types[shape]))
        found.append(Calls(shape, its_types, count, mean_s, min(own_s, mean_s), spread_s))
    return by_time(found)


def _shapes(processes: Iterable[_Process]) -> dict[int, list[Shape]]:
    """Return the shape of each tally of a process, by rank.

    Ranks may have sizes that are slightly apart, by the remainder of a division: for such sizes, of
    which no rank has two, the smallest stands.
    """
    exact = {its.rank: _exact_shapes(its) for its in processes}
    ranks: dict[Shape, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for rank, shapes in exact.items():
        for shape in shapes:
            ranks[shape._replace(bytes=0)][shape.bytes].add(rank)
    joined: dict[Shape, Shape] = {}
    for unsized, of_sizes in ranks.items():
        low, members = 0, set[int]()
        for size in sorted(of_sizes):
            if size >= NEAR_RATIO * low or members & of_sizes[size]:
                low, members = size, set()
            members |= of_sizes[size]
            joined[unsized._replace(bytes=size)] = unsized._replace(bytes=low)
    return {rank: [joined[shape] for shape in shapes] for rank, shapes in exact.items()}


def _exact_shapes(process: _Process) -> list[Shape]:
    groups = {group.group: group for group in process.groups}
    none = _Group(-1, "", 0, 0, 0, [])
    return [
        Shape(
            printable(its.call),
            group.procs,
            group.nodes,
            group.ppn,
            tabled_bytes(its.call, its.bytes),
        )
        for its in process.calls
        for group in [groups.get(its.group, none)]
    ]


def tabled_bytes(call: str, size_bytes: int) -> int:
    """Return the size of a call as tables count it, which is not 0 where there are no data."""
    return NO_DATA_BYTES if call.lower() in NO_DATA else size_bytes


class _Arrival(NamedTuple):
    node: str
    started_s: float
    seconds: float


class _Meeting(NamedTuple):
    """A call of all processes of a communicator: see `Calls`."""

    own_s: float
    spread_s: float

    @classmethod
    def of(cls, arrivals: Iterable[_Arrival]) -> "_Meeting":
        """Return the largest times of a node: clocks of several nodes differ."""
        of_nodes: dict[str, list[_Arrival]] = defaultdict(list)
        for arrival in arrivals:
            of_nodes[arrival.node].append(arrival)
        own_s = spread_s = 0.0
        for its in of_nodes.values():
            last_s = max(arrival.started_s for arrival in its)
            ended_s = max(arrival.started_s + arrival.seconds for arrival in its)
            spread_s = max(spread_s, last_s - min(arrival.started_s for arrival in its))
            own_s = max(own_s, ended_s - last_s)
        if len(of_nodes) > 1:  # where the last of one node may still wait for another
            own_s = min(arrival.seconds for its in of_nodes.values() for arrival in its)
        return cls(own_s, spread_s)


def _meetings(
    processes: Mapping[int, _Process], shapes_of: Mapping[int, Sequence[Shape]]
) -> dict[Shape, list[_Meeting]]:
    """Return the sampled calls of every shape of which all processes have written their times."""
    met: dict[tuple[str, int, Shape], list[_Arrival]] = defaultdict(list)
    for rank, its in processes.items():
        shapes = shapes_of[rank]
        for group in its.groups:
            for number, started_s, seconds, tally in group.samples:
                if 0 <= tally < len(shapes) and shapes[tally].procs > 1:
                    arrival = _Arrival(its.node, started_s, seconds)
                    met[group.members, number, shapes[tally]].append(arrival)
    found: dict[Shape, list[_Meeting]] = defaultdict(list)
    for (_, _, shape), arrivals in met.items():
        if len(arrivals) == shape.procs:
            found[shape].append(_Meeting.of(arrivals))
    return found
