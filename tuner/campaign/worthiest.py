"""The layout that a campaign measures besides the scales: untried, or much is expected of it."""

import math
from collections.abc import Callable
from functools import cache

from tuner.machine.systems import node_cores, of_this_machine
from tuner.paths import database_path
from tuner.selection.intervals import NEARLY
from tuner.selection.worth import Worth, worths
from tuner.store.store import Store

_LEAST_LOSS = -math.expm1(-NEARLY)


def worthiest(
    partition: str, environment: str, fits: Callable[[int, int], bool], own_name: str = ""
) -> tuple[int, int] | None:
    """Return nodes and processes on each of the layout to measure next on one of ReFrame's systems.

    It is the first of `switchpoint show plan --next` that fits and lies between measured ones; None
    where there is no table yet, or where none is untried and too little is expected. own_name: that
    of its results, if they have one. Raise StoreError.
    """
    of_system = _worths(partition, environment, own_name or partition)
    return next(
        (
            (its.nodes, its.ppn)
            for its in of_system
            if (its.loss > _LEAST_LOSS or its.untried) and fits(its.nodes, its.ppn)
        ),
        None,
    )


@cache  # many jobs ask for few systems
def _worths(partition: str, environment: str, name: str) -> list[Worth]:
    path = database_path()
    if not path.is_file():
        return []
    with Store.open(path, readonly=True) as store:
        here = {*of_this_machine(store.systems(), partition=partition)["system"]}
        ids = [its for its in store.named(name, environment) if its in here]
        tables = [table for its in ids if (table := store.table(its))]
    if not tables:
        return []
    points, its = tables[-1].points, tables[-1].provenance
    return worths(points, node_cores(its.name, its.cpu_model, its.cores))
