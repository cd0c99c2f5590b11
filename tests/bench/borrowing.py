"""Gain and risk of a new system that uses the table of another.

On the times that tests/bench/unmeasured.py judges by: two MPIs on one machine, and two simulated
machines, each borrows the table of the other; the MPIs also that of the committed sample. It prints
what is lost by the default, the borrowed table and one from the system's own launches, and what the
screening of the methods costs until the best of those seen loses 2 %, in the order of the other
system, in a random one, and on simulated machines in that of the models; it exits with 1 when a bar
is missed.
Run from the checkout: python -m tests.bench.borrowing
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.bench.report import Figure, conclude, options_of
from tests.bench.unmeasured import CORES, OF_BEST, MeasuredSize, RegretTally, load
from tuner.campaign.plans import PlannedCase
from tuner.campaign.screening import ranked
from tuner.catalogue.borrowing import Borrower, borrowed, order
from tuner.catalogue.bundle import Bundle
from tuner.domain.cases import Case, NodeCores
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.tables import Provenance, Rule
from tuner.machine.simulation.machines import SIMULATED_MACHINES
from tuner.machine.simulation.machines import machine as simulated
from tuner.models.networks import as_model
from tuner.paths import CHECKOUT
from tuner.rawfile.ingest import ingest
from tuner.selection import match
from tuner.selection.decisions import decide
from tuner.selection.intervals import degree_class_of
from tuner.selection.rules import compile_rules
from tuner.selection.tuning import tune
from tuner.store.store import Store
from tuner.units import share_text

BANNERS = {"mpich": "MPICH Version: 4.0.2", "openmpi": "Open MPI v4.1.4", "simgrid": ""}
LEARNED = {(1, 2), (1, 3), (1, 6), (1, 8)}  # what a campaign measures on two cores
ENOUGH = 0.02
RANDOM_ORDERS = 20
SIZES = 8, 256, 8192, 65536  # of the data

Order = Callable[[Case, list[str]], list[str]]
"""Function from a case and its methods to these in the order of a screening, whatever its size."""


def lender_of(system: str, measured: list[MeasuredSize]) -> Bundle:
    """Return the bundle of a system as its first campaign makes it."""
    name, environment = system.split()
    provenance = Provenance(
        *(system, name, environment, BANNERS[environment], "", "", ""),
        *(CORES.get(name, 16), [], 0, 0, "", "", ""),
    )
    learned = [its for its in measured if name != "local:cpu" or its.layout in LEARNED]
    points = decide([cell for its in learned for cell in its.cells()])
    return Bundle(provenance, points, None)


def sample() -> Bundle:
    """Return the bundle of the committed sample."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "switchpoint.db"
        ingest(path, [CHECKOUT / "results" / "sample"])
        with Store.open(path) as store:
            table = tune(store, str(store.systems()["system"][0]))
            return Bundle(table.provenance, table.points, None)


def borrower_of(bundle: Bundle) -> Borrower:
    """Return the system of a bundle as one that has no table."""
    its = bundle.provenance
    version = its.mpi_library.split()[-1].strip("v") if its.mpi_library else ""
    return Borrower(
        its.system, its.environment.replace("simgrid", ""), version, NodeCores(its.cores)
    )


def judge(name: str, measured: list[MeasuredSize], tables: dict[str, list[Rule]]) -> list[Figure]:
    """Return and print what tables lose on all that was measured."""
    tally, figures = RegretTally.empty(), []
    for its in measured:
        logs, default = its.logs(slice(None)), DEFAULT_METHODS[its.case.operation]
        degree_class = degree_class_of(its.case, its.mmax, its.mavg)
        for chooser, rules in tables.items():
            rule = match.first(rules, degree_class, its.case.bytes)
            tally.add(chooser, rule.method if rule else default, logs)
    means = {chooser: float(np.mean(tally.regrets[chooser])) for chooser in tables}
    for chooser, mean in means.items():
        p95 = float(np.quantile(tally.regrets[chooser], 0.95))
        slower = float(np.mean(tally.slower[chooser]))
        shares = f"{share_text(mean)}, p95 {share_text(p95)}, slower {share_text(slower)}"
        print(f"{name}: {chooser}: {shares}")
        figures.append(Figure(f"{name}: {chooser}: mean", mean, OF_BEST))
        figures.append(Figure(f"{name}: {chooser}: p95", p95, OF_BEST))
        figures.append(Figure(f"{name}: {chooser}: slower", slower, "of the cases"))
    ratio = means["borrowed"] / means["default"]
    return [*figures, Figure(f"{name}: mean of borrowed / default", ratio, "", most=1.0)]


def of_all_sizes(its: MeasuredSize) -> Case:
    """Return the case with the least size, which stands for all."""
    return its.case._replace(bytes=SIZES[0], size_bytes=SIZES[0])


def by_models(system: str) -> Order:
    """Return the order in which the models of a simulated machine rank methods."""
    machine = system.split()[0].partition(":")[2]
    model = as_model(simulated(machine))

    def order_of(case: Case, names: list[str]) -> list[str]:
        layout = case.layout
        planned = PlannedCase(
            *(system, "", case.operation, case.pattern, "", layout.procs, layout.ppn, list(SIZES))
        )
        _, *rivals = ranked(model, planned, [DEFAULT_METHODS[case.operation], *names])
        return rivals

    return order_of


def cost(measured: list[MeasuredSize], order_of: Order) -> float:
    """Return the share of the time for all methods until the best seen loses ENOUGH in the mean."""
    logs = [its.logs(slice(None)) for its in measured]
    methods: dict[Case, set[str]] = defaultdict(set)
    for its, known in zip(measured, logs, strict=True):
        methods[of_all_sizes(its)] |= known.keys() - {DEFAULT_METHODS[its.case.operation]}
    orders = {case: order_of(case, sorted(names)) for case, names in methods.items()}
    for count in range(max(map(len, orders.values())) + 1):
        lost, spent = [], []
        for its, known in zip(measured, logs, strict=True):
            default = DEFAULT_METHODS[its.case.operation]
            there = [name for name in orders[of_all_sizes(its)] if name in known]
            seen = {default, *there[:count]}
            lost.append(np.expm1(min(known[name] for name in seen) - min(known.values())))
            spent.append(
                sum(np.exp(known[name]) for name in seen) / np.exp([*known.values()]).sum()
            )
        if np.mean(lost) <= ENOUGH:
            break
    return float(np.mean(spent))


def screened(name: str, measured: list[MeasuredSize], lender: Bundle) -> list[Figure]:
    """Return and print the cost of a screening in the lender's order and in random ones."""
    random = np.random.default_rng(1)
    like = cost(measured, lambda case, its: order(its, case.operation, lender.points))
    shuffled = [
        cost(measured, lambda _, its: [str(method) for method in random.permutation(its)])
        for _ in range(RANDOM_ORDERS)
    ]
    other = float(np.mean(shuffled))
    print(
        f"{name}: screening: {share_text(like, 0)} in the lender's order, "
        f"{share_text(other, 0)} in a random one"
    )
    figures = [
        Figure(f"{name}: screening, in the lender's order", like, "of all methods"),
        Figure(f"{name}: screening, in a random order", other, "of all methods"),
        Figure(f"{name}: screening, lender's / random", like / other, "", most=1.0),
    ]
    if (system := measured[0].system).startswith(SIMULATED_MACHINES):
        models = cost(measured, by_models(system))
        print(f"{name}: screening: {share_text(models, 0)} in the order of the models alone")
        figures.append(Figure(f"{name}: screening, in the models' order", models, "of all methods"))
    return figures


def main() -> int:
    """Print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", nargs="*", default=["local", "simulated"])
    options = options_of(parser, "borrowing", {"systems": ["local"]})
    by_system: dict[str, list[MeasuredSize]] = defaultdict(list)
    for its in load():
        if its.system.startswith(tuple(options.systems)):
            by_system[its.system].append(its)
    own = {name: lender_of(name, measured) for name, measured in by_system.items()}
    figures: list[Figure] = []
    for name, measured in by_system.items():
        kind = name.partition(":")[0]
        lenders = [its for other, its in own.items() if other.startswith(kind) and other != name]
        if kind == "local" and not options.least:
            lenders.append(sample())
        for lender in lenders:
            table = borrowed(lender, borrower_of(own[name]))
            title = f"{name} from {lender.provenance.system}"
            cores = NodeCores(own[name].provenance.cores)
            rules = compile_rules(own[name].points, cores)
            tables = {"default": [], "borrowed": table.rules, "own": rules}
            figures += judge(title, measured, tables)
            figures += screened(title, measured, lender)
    return conclude("borrowing", figures, options)


if __name__ == "__main__":
    sys.exit(main())
