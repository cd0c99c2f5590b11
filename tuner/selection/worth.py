"""Rank unmeasured layouts by the gain that measuring them may bring for its cost.

No input or output.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from statistics import NormalDist
from typing import NamedTuple

from tuner.domain.cases import NodeCores
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.tables import Point
from tuner.selection.intervals import Classes
from tuner.selection.kriging import (
    Inference,
    Middle,
    NodesPpn,
    Regime,
    Regimes,
    Spread,
    has_power_of_two,
)
from tuner.selection.unmeasured import (
    Layouts,
    MeasuredLayouts,
    alike,
    asked,
    choice,
    estimated,
    sizes_of,
)


class Worth(NamedTuple):
    """A layout, and what is expected to be lost there by not measuring it, as a share of the time.

    The loss is the mean over operations and sizes; `operation` has the largest. No rule holds for
    layouts that are `beyond` all measured ones, so the default's loss counts. `untried`: only
    powers of two were measured in its regime, it has none, and the choice is not the default.
    """

    nodes: int
    ppn: int
    loss: float
    operation: str
    beyond: bool
    untried: bool


def worths(
    points: Iterable[Point],
    cores: NodeCores,
    most_procs: float = math.inf,
    most_nodes: float = math.inf,
    beyond: bool = False,
) -> list[Worth]:
    """Return unmeasured layouts within these limits, by expected gain per node.

    Launches of all layouts are planned to take equally long. Of layouts with the same estimates,
    that in their middle stands for all. With `beyond`, a few are larger than all measured ones.
    Before all others comes one untried layout of each regime, of the fewest nodes.
    """
    of_operations, spread = MeasuredLayouts.of(points, cores)
    losses: dict[tuple[NodesPpn, bool], dict[str, list[float]]]
    losses = defaultdict(lambda: defaultdict(list))
    untried: set[NodesPpn] = set()
    for operation, measured in of_operations.items():
        default = DEFAULT_METHODS[operation]
        inside = ((middle, near, False) for _, middle, near in asked(measured, spread))
        larger = _larger(measured, spread, cores.number) if beyond else ()
        outside = ((layout, near, True) for layout, near in larger)
        for middle, near, is_beyond in chain(inside, outside):
            nodes, ppn = (round(number) for number in middle)
            if nodes * ppn > most_procs or nodes > most_nodes:
                continue
            only_powers = not is_beyond and _only_powers_of_two(middle, near, spread)
            for _, its in chain.from_iterable(means for _, means in near[next(iter(near))]):
                of_class = alike(near, its)
                sizes = sizes_of(middle, of_class, spread)
                for _, point, estimates in estimated(middle, of_class, spread, sizes):
                    chosen = default if is_beyond else choice(point, estimates)
                    if only_powers and chosen != default:
                        untried.add((nodes, ppn))
                    losses[(nodes, ppn), is_beyond][operation].append(
                        _loss(chosen, default, estimates)
                    )
    found = []
    for ((nodes, ppn), is_beyond), of_layout in losses.items():
        means_of = {name: sum(its) / len(its) for name, its in of_layout.items()}
        worst = max(means_of, key=lambda name: means_of[name])
        loss = -math.expm1(-sum(means_of.values()) / len(of_operations))
        is_untried = not is_beyond and (nodes, ppn) in untried
        found.append(Worth(nodes, ppn, loss, worst, is_beyond, is_untried))
    return _ranked(found, spread.regime)


def _ranked(found: Iterable[Worth], regime: Regimes) -> list[Worth]:
    by_worth = sorted(found, key=lambda its: (-its.loss / its.nodes, its.nodes * its.ppn, its))
    firsts: dict[Regime, Worth] = {}
    for its in sorted(by_worth, key=lambda its: its.nodes):
        if its.untried:
            firsts.setdefault(regime(its.nodes, its.ppn), its)
    return sorted(by_worth, key=lambda its: its not in firsts.values())


def _only_powers_of_two(here: Middle, near: Iterable[NodesPpn], spread: Spread) -> bool:
    """Return whether only powers of two were measured in the regime of a layout without one."""
    regime = spread.regime(*here)
    own = (layout for layout in near if spread.regime(*layout) == regime)
    return not has_power_of_two(*here) and all(has_power_of_two(*layout) for layout in own)


def _larger(
    measured: Layouts, spread: Spread, cores: int | None
) -> Iterator[tuple[NodesPpn, dict[NodesPpn, Classes]]]:
    """Yield a few layouts beyond the measured ones, with those, of as many nodes if there are any.

    They fill the node, or have two and four times the nodes. What is measured is the only guide to
    another kind of layouts, such as several nodes after one.
    """
    layouts = {
        (nodes, ppn): classes
        for ((nodes, _), (ppn, _)), classes in measured.items()
        if not spread.regime(nodes, ppn).oversubscribed
    }
    if not layouts:
        return
    most = max(nodes for (nodes, _), _ in measured)
    nodes, ppn = max(layouts)
    larger = [(2 * most, ppn), (4 * most, ppn)]
    if cores and all(ppn < cores for _, (ppn, _) in measured):
        larger.append((nodes, cores))
    for layout in (its for its in larger if not spread.regime(*its).oversubscribed):
        kind = {its for its in layouts if (its[0] > 1) == (layout[0] > 1)} or layouts
        near = sorted(kind, key=lambda its: (spread.between(layout, its), its))
        yield layout, {its: layouts[its] for its in near}


def _loss(chosen: str, default: str, estimates: dict[str, Inference]) -> float:
    """Return the most that is expected to be gained over the choice by knowing another's time.

    It is a logarithm.
    """
    known = estimates | {default: Inference(0.0, 0.0)}
    mine = known[chosen]
    return max(
        (
            _expected_gain(mine.mean - its.mean, math.sqrt(mine.variance + its.variance))
            for name, its in known.items()
            if name != chosen
        ),
        default=0.0,
    )


def _expected_gain(mean: float, deviation: float) -> float:
    """Return the mean of a normal distribution's positive part."""
    normal = NormalDist()
    return deviation * normal.pdf(mean / deviation) + mean * normal.cdf(mean / deviation)
