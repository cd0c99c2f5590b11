"""Borrow from the nearest system in the catalogue: settled rules, and an order of methods."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tuner.catalogue.bundle import Bundle
from tuner.domain.cases import Layout, NodeCores
from tuner.domain.operations import ALGORITHM, BY_ENVIRONMENT, DEFAULT_METHODS
from tuner.domain.tables import OPEN, Point, Table
from tuner.errors import SwitchpointError
from tuner.machine.mpi import LABELS, available_cores, library_of, mpis_named
from tuner.machine.systems import node_cores
from tuner.models import fitting
from tuner.models.system import SystemModel
from tuner.selection import tuning
from tuner.selection.rules import compile_rules
from tuner.selection.soaks import SoakedMethod, failed
from tuner.store.store import Store

_UNKNOWN_NETWORK = 1.0
"""Octaves that stand for the difference of a lender's unknown network from a known one."""


class BorrowingError(SwitchpointError):
    """Error raised when there is nothing to borrow; the message says why and what to do."""


class Borrower(NamedTuple):
    """A system without a table of its own: its MPI library, a node's cores, and its network.

    `failed` are the methods that failed a soak on it.
    """

    name: str
    family: str
    version: str
    cores: NodeCores
    model: SystemModel | None = None
    failed: frozenset[SoakedMethod] = frozenset()

    def __str__(self) -> str:
        library = f"{LABELS.get(self.family, 'an unknown MPI')} {self.version}".strip()
        cores = f", {self.cores.number} cores" if self.cores.number else ""
        return f"{self.name} ({library}{cores})"


def this_machine(environment: str = "") -> Borrower:
    """Return this machine with an MPI, by default the first found. Raise MpiError."""
    mpi, *_ = mpis_named(environment)
    return Borrower("this machine", mpi.family, mpi.version, NodeCores(available_cores()))


def of_store(store: Store, system: str) -> Borrower:
    """Return a system of the store. Raise StoreError."""
    its = store.description(system)
    return Borrower(
        system,
        *_library(its["mpi_library"]),
        node_cores(its["name"], its["cpu_model"], int(its["cores"])),
        fitting.last_fitted(store, system),
        frozenset(failed(tuning.outcomes(store, system))),
    )


def _of_bundle(bundle: Bundle) -> Borrower:
    its = bundle.provenance
    cores = NodeCores(its.known_cores)
    return Borrower(its.system, *_library(its.mpi_library), cores, bundle.model)


def _library(banner: str) -> tuple[str, str]:
    """Return the family and version of an MPI library; an unknown one is alone in its family."""
    family, version = library_of(banner)
    return family or banner, version


class Distance(NamedTuple):
    """The difference between two systems; earlier members matter more.

    A system of the same id is a machine of the same make, with the same software. A machine that
    is not in the store has no id.
    """

    other_system: bool
    other_library: bool
    other_version: bool
    octaves: float  # between the cores of their nodes, and between the times of their messages


def distance(lender: Borrower, borrower: Borrower) -> Distance:
    """Return the distance of a lender from a borrower."""
    cores = 0.0
    if lender.cores.number and borrower.cores.number:
        cores = abs(math.log2(lender.cores.number / borrower.cores.number))
    return Distance(
        lender.name != borrower.name,
        lender.family != borrower.family,
        lender.version != borrower.version,
        cores + _networks(lender, borrower),
    )


def _networks(lender: Borrower, borrower: Borrower) -> float:
    """Return the mean octaves between latencies and times per byte, of pairs that both have.

    Where the borrower's network is not known, no lender is nearer than another by its own.
    """
    here, there = _messages(borrower.model), _messages(lender.model)
    if not here:
        return 0.0
    both = here.keys() & there.keys()
    octaves = [abs(math.log2(here[key] / there[key])) for key in both]
    return sum(octaves) / len(octaves) if octaves else _UNKNOWN_NETWORK


def _messages(model: SystemModel | None) -> dict[tuple[str, str], float]:
    """Return the positive latencies and times per byte of small and large messages, by pair."""
    found = {}
    for scope, pair in (model.pairs if model else {}).items():
        protocols = getattr(pair.loggp, "protocols", ())
        if protocols:
            found[scope, "latency"] = protocols[0].alpha_s
            found[scope, "per byte"] = protocols[-1].beta_s
    return {key: its for key, its in found.items() if its > 0}


def by_distance(borrower: Borrower, bundles: Iterable[Bundle]) -> list[Bundle]:
    """Return the bundles of other systems, the nearest first."""
    return sorted(bundles, key=lambda its: distance(_of_bundle(its), borrower))


def of_nearest(borrower: Borrower, bundles: Iterable[Bundle]) -> Table:
    """Return what the nearest system lends that has anything to lend. Raise BorrowingError."""
    empty = []
    for lender in by_distance(borrower, bundles):
        try:
            return borrowed(lender, borrower)
        except BorrowingError as error:
            empty.append(error)
    if empty:
        raise empty[0]
    raise BorrowingError(
        f"the catalogue has no table for {borrower}; add bundles with `switchpoint catalogue "
        "add`, or measure with `switchpoint run`"
    )


def borrowed(lender: Bundle, borrower: Borrower) -> Table:
    """Return the settled rules of a system for another, each marked as borrowed.

    Layouts that have enough cores on one system and too few on the other do not compare. Algorithms
    of another MPI library are left out, and methods that failed a soak of the borrower's. Soaks
    carry over to the same version of the same library. Raise BorrowingError when nothing is left.
    """
    theirs = _of_bundle(lender)
    away = distance(theirs, borrower)
    points = [_unfilled(point) for point in like(lender, borrower)]
    rules = [
        rule
        for rule in compile_rules(points, borrower.cores, key=_method_and_settled)
        if rule.evidence.settled
        and (rule.operation, rule.method) not in borrower.failed
        and not (away.other_library and rule.method.startswith((ALGORITHM, BY_ENVIRONMENT)))
    ]
    if not rules:
        raise BorrowingError(f"no settled rule of {theirs} holds for {borrower}")
    soaked = not (away.other_library or away.other_version)
    provenance = replace(
        lender.provenance,
        borrowed_for=str(borrower),
        soaks=lender.provenance.soaks if soaked else [],
    )
    return Table(provenance, rules, points)


def _method_and_settled(point: Point) -> object:
    """Return a merge key by which no open point takes settled ones out of the table."""
    return point.method, point.settled


def _unfilled(point: Point) -> Point:
    """Return the point, open again where it takes a method of other sizes or layouts."""
    if not point.filled:
        return point
    default = DEFAULT_METHODS[point.case.operation]
    return point._replace(method=default, status=OPEN, filled=False)


def like(lender: Bundle, borrower: Borrower) -> list[Point]:
    """Return the points of layouts that oversubscribe the borrower's cores as they do the lender's.

    Where the cores of one are not known, all layouts compare.
    """
    points, (cores, shared) = lender.points, borrower.cores
    if cores is None or lender.provenance.known_cores is None:
        return list(points)

    def compares(its: Layout) -> bool:
        sharing = its.procs if shared else its.ppn
        return its.oversubscribed == (sharing > cores)

    return [point for point in points if compares(point.case.layout)]


def order(methods: Sequence[str], operation: str, points: Iterable[Point]) -> list[str]:
    """Return methods in the order in which a race should screen them, by points of similar systems.

    Each next one makes the best of those before it fastest, over all points of the operation;
    methods that gain nothing there, or were not measured, keep their order at the end.
    """
    logs = [
        {DEFAULT_METHODS[operation]: 0.0}
        | {ratio.method: math.log(ratio.ratio) for ratio in point.ratios}
        for point in points
        if point.case.operation == operation
    ]
    best = [0.0] * len(logs)
    ordered: list[str] = []
    left = list(methods)

    def gain(method: str) -> float:
        return sum(
            max(so_far - log.get(method, math.inf), 0.0)
            for so_far, log in zip(best, logs, strict=True)
        )

    while left and gain(first := max(left, key=gain)) > 0.0:
        ordered.append(first)
        left.remove(first)
        best = [
            min(so_far, log.get(first, math.inf)) for so_far, log in zip(best, logs, strict=True)
        ]
    return ordered + left
