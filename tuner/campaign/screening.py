"""Screening: the methods of a case that its first launch takes, where there are too many for one.

Further campaigns screen what is left. A probe of a few seconds, which is not kept, comes first; the
models rank the methods by it, behind those that gained on the nearest system in the catalogue.
"""

import math
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.catalogue import borrowing, shelf
from tuner.domain.operations import ALGORITHM, DEFAULT_METHODS, is_named
from tuner.domain.tables import Point
from tuner.models import fitting, predicting
from tuner.models.predicting import PatternCase
from tuner.models.system import SystemModel
from tuner.paths import database_path
from tuner.rawfile.ingest import ingest
from tuner.selection import off
from tuner.store.store import Store

MOST_RIVALS = 12
"""Methods beside the default that a screening takes."""

MORE_RIVALS = 2
"""Methods that earlier campaigns have not screened, of which a further one screens so many."""

PROBE = {"--sizes": "1:1M:x4", "--max-samples": "12"}
"""Options of the probe: a second on a node, some ten at 1 Gbit/s."""


class Known(NamedTuple):
    """Knowledge of a machine before its race: its parameters, and decisions of a similar one."""

    model: SystemModel
    points: Sequence[Point] = ()


def known_by(probe: Path) -> Known:
    """Return the model fitted to the raw file of a probe, and points of a similar system.

    That is the nearest of the catalogue that has layouts of the machine's regime.

    Raise FittingError, ModelError, StoreError, OSError.
    """
    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch) / "probe.db"
        ingest(database, [probe])
        with Store.open(database) as store:
            systems = list(store.systems()["system"])
            model = fitting.fit(store, systems[0] if systems else probe.stem)
            here = borrowing.of_store(store, model.system)
    lenders = borrowing.by_distance(here, shelf.bundles(database_path()))
    alike = (borrowing.like(lender, here) for lender in lenders)
    return Known(model, next(filter(None, alike), []))


def choose(
    plan: RacePlan,
    numbers: Collection[int],
    specs: Mapping[tuple[str, int], Sequence[str]],
    probe: Callable[[], Known],
    tried: Mapping[int, Collection[str]],
    unscreened: Mapping[int, Collection[str]],
) -> None:
    """Restrict cases of a plan to the methods that were asked for, with the default.

    Otherwise keep the default, then rivals that gained on a similar system, then those that the
    model ranks first. `specs` are all methods by operation and processes; `probe` is called where
    they are too many: among those that earlier campaigns have not tried, more than MOST_RIVALS that
    these did not leave unscreened, or MORE_RIVALS that they did. Where the probe fails, a case
    screens all of the former and none of the latter.

    Raise what `probe` raises, and ModelError, PatternError, MatrixError, MethodError.
    """
    lists = {}
    for number in numbers:
        case = plan.cases[number]
        known = [
            spec
            for spec in specs[case.operation, case.procs]
            if spec not in case.failed and not off.is_off_here(spec)
        ]
        if case.methods:
            asked = _asked(case, known)
            plan.cases[number] = replace(case, methods=asked, offered=asked)
            continue
        if len(known) > MOST_RIVALS + 1:
            known = runnable(case, known)
        plan.cases[number] = replace(case, offered=known)
        rest = {*known} - {DEFAULT_METHODS[case.operation], *tried.get(number, ())}
        later = rest.intersection(unscreened.get(number, ()))
        if len(rest - later) > MOST_RIVALS:
            lists[number] = rest, MOST_RIVALS
        elif len(later) > MORE_RIVALS:
            lists[number] = later, MORE_RIVALS
            others = sorted({*known} - later)
            plan.cases[number] = replace(plan.cases[number], methods=others)  # if the probe fails
    if lists:
        model, points = probe()
        for number, (many, most) in lists.items():
            case = plan.cases[number]
            rivals = [spec for spec in ranked(model, case, case.offered) if spec in many]
            like = [its for its in points if its.case.layout.oversubscribed == case.oversubscribed]
            last = borrowing.order(rivals, case.operation, like)[most:]
            plan.cases[number] = replace(case, methods=sorted({*case.offered} - {*last}))


def _asked(case: PlannedCase, known: Sequence[str]) -> list[str]:
    """Return the default and the methods that a user named, singly or by their families."""
    families = {spec.partition(":")[0] for spec in known}
    single = {word for word in case.methods if word not in families}
    named = {spec for spec in known if is_named(spec, case.methods)}
    return sorted({DEFAULT_METHODS[case.operation]} | single | named)


def runnable(case: PlannedCase, specs: Sequence[str]) -> list[str]:
    """Return the methods that the library does not refuse on a case's layout.

    It has a formula for each of its own, so one without has none there.
    """
    has_formula = {*predicting.predictable(_predicted(case), specs)}
    return [spec for spec in specs if spec in has_formula or spec.startswith(ALGORITHM)]


def _predicted(case: PlannedCase) -> PatternCase:
    return PatternCase(case.operation, case.pattern, case.procs, case.ppn)


def ranked(model: SystemModel, case: PlannedCase, specs: Sequence[str]) -> list[str]:
    """Return the default, and then the methods that come nearest to the best predicted time.

    The size at which a method comes nearest counts. Methods without a formula come last.
    """
    predicted = _predicted(case)
    default = DEFAULT_METHODS[case.operation]
    predictor = predicting.predictor(model, predicted, predicting.predictable(predicted, specs))
    nearest = dict.fromkeys(specs, math.inf) | {default: 0.0}
    for size in case.sizes:
        known = predictor.known_s(size)
        best_s = min(known.values(), default=0.0) or math.inf  # 0: nobody has anything to send
        for name, time_s in known.items():
            nearest[name] = min(nearest[name], time_s / best_s)
    return sorted(nearest, key=nearest.__getitem__)
