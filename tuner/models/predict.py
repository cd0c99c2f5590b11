"""Predictions of the methods of an operation on a pattern, and of where the best changes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tuner.domain.operations import by_memory, takes_node_memory
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.methods import method as counted
from tuner.inputs.structure.methods import standard_specs
from tuner.models import collectives, discovery, exchange
from tuner.models.algorithms import Group
from tuner.models.closed_forms import ClosedForm, closed_forms
from tuner.models.costs import costs, fence_barriers
from tuner.models.delivery import RankNetwork
from tuner.models.discovery import Census
from tuner.models.parameter import ModelError, NotIdentified, or_zero
from tuner.models.system import SystemModel

MethodTimes = dict[str, float | NotIdentified]
"""Seconds of each method at one size, or the reason for none."""


@dataclass(frozen=True)
class SwitchPoint:
    """The size from which `after` is predicted faster than `before`, which was the fastest."""

    size_bytes: int
    before: str
    after: str


class Predictor:
    """The methods of one operation at any size."""

    def __init__(self, methods: dict[str, Callable[[int], float | NotIdentified]]) -> None:
        self._methods = methods

    def times(self, size_bytes: int) -> MethodTimes:
        """Return the times of all methods, the fastest first, unidentified ones last."""
        found = {name: time_s(size_bytes) for name, time_s in self._methods.items()}
        return dict(sorted(found.items(), key=lambda item: _rank(item[1])))

    def known_s(self, size_bytes: int) -> dict[str, float]:
        """Return the times that are identified, the fastest first."""
        times = self.times(size_bytes).items()
        return {name: its for name, its in times if not isinstance(its, NotIdentified)}

    def best(self, size_bytes: int) -> str | None:
        """Return the fastest method; None where no time is identified."""
        return next(iter(self.known_s(size_bytes)), None)

    def crossovers(self, sizes_bytes: Sequence[int]) -> list[SwitchPoint]:
        """Return where the best method changes between the first and last of increasing sizes."""
        found: list[SwitchPoint] = []
        for low, high in pairwise(sizes_bytes):
            self._between(low, self.best(low), high, self.best(high), found)
        return found

    def _between(
        self, low: int, before: str | None, high: int, after: str | None, found: list[SwitchPoint]
    ) -> None:
        if before is None or after is None or before == after:
            return
        if high - low <= max(1, low // 64):
            found.append(SwitchPoint(high, before, after))
            return
        middle = min(max(math.isqrt(low * high), low + 1), high - 1)
        best = self.best(middle)
        self._between(low, before, middle, best, found)
        self._between(middle, best, high, after, found)


def _rank(time_s: float | NotIdentified) -> float:
    return math.inf if isinstance(time_s, NotIdentified) else time_s


def network_of(model: SystemModel, procs: int, ppn: int, loaded: bool = True) -> RankNetwork:
    """Return the network of `procs` processes, which all communicate at once where it is loaded.

    Raise ModelError when its parameters are missing, or nodes of a simulated machine.
    """
    if model.links and procs > math.prod(model.links.sizes) * ppn:
        nodes = math.prod(model.links.sizes)
        raise ModelError(
            f"{model.system} has {nodes} nodes, too few for {procs} ranks, {ppn} per node"
        )
    several = procs > ppn
    off = costs(model, on_node=False, loaded=loaded) if several else None
    on = costs(model, on_node=True, loaded=loaded) if ppn > 1 or off is None else off
    return RankNetwork(procs, ppn, on, off, model.links)


def _able(model: SystemModel, specs: Sequence[str]) -> list[str]:
    """Return the methods that can run on the machine.

    SimGrid has no neighbourhood collectives, and its clock stands still while ranks poll memory.
    """
    return [
        spec
        for spec in specs
        if model.links is None or not (spec == "neighbor" or takes_node_memory(spec))
    ]


def _predictor(
    model: SystemModel,
    specs: Sequence[str],
    formula: Callable[[str], Callable[[int], float | NotIdentified]],
) -> Predictor:
    able = _able(model, specs)
    if refused := [spec for spec in specs if spec not in able]:
        raise ModelError(f"{refused[0]} cannot run on the simulated machine {model.system}")
    return Predictor({spec: formula(spec) for spec in able})


def of_exchange(
    model: SystemModel, halo: Halo, ppn: int, specs: Sequence[str] | None = None
) -> Predictor:
    """Return the predictor of exchange methods on a pattern; `size_bytes` is that of an item.

    Raise ModelError, MethodError.
    """
    network = network_of(model, halo.procs, ppn)
    copies = exchange.packed(halo), or_zero(model.copying)

    def formula(spec: str) -> Callable[[int], float | NotIdentified]:
        planned = list(counted(exchange.sent_as(spec), halo.procs).stages(halo, ppn))
        if spec == "shared":
            return lambda size: exchange.shared_s(halo, planned[0], network, size, copies[1])
        if spec == "lent":
            return lambda size: exchange.lent_s(halo, network, size, copies[1])
        if by_memory(spec):
            return lambda size: exchange.nap_by_memory_s(halo, planned, network, size, copies[1])
        return lambda size: exchange.time_s(spec, planned, network, size, *copies)

    others = (*exchange.SENT_AS, "nap:node=shared")
    applicable = [spec for spec in others if exchange.has_layout(spec, halo.procs, ppn)]
    standard = _able(model, [*standard_specs(halo.procs), *applicable])
    return _predictor(model, specs or standard, formula)


def closed_forms_of(model: SystemModel, halo: Halo, ppn: int) -> list[ClosedForm]:
    """Return the papers' closed forms of exchange methods on a pattern. Raise ModelError."""
    return list(closed_forms(network_of(model, halo.procs, ppn), halo, or_zero(model.copying)))


def of_discovery(
    model: SystemModel, halo: Halo, ppn: int, specs: Sequence[str] | None = None
) -> Predictor:
    """Return the predictor of discovery methods. Raise ModelError, MethodError."""
    network = network_of(model, halo.procs, ppn)
    (payload,) = counted("direct", halo.procs).stages(halo, ppn)
    constants = fence_barriers(model), or_zero(model.copying)
    standard = _able(model, discovery.methods(halo.procs, ppn))

    def formula(spec: str) -> Callable[[int], float | NotIdentified]:
        its = discovery.formula(spec, halo.procs)
        if its is None:
            raise ModelError(f"{spec} has no formula; available: {', '.join(standard)}")

        return lambda size: its(Census(network, payload, size, *constants))

    return _predictor(model, specs or standard, formula)


def of_collective(
    model: SystemModel, operation: str, procs: int, ppn: int, specs: Sequence[str] | None = None
) -> Predictor:
    """Return the predictor of a collective's methods, by default those that the library would try.

    Sizes are as in collectives.py. Raise ModelError.
    """
    network = network_of(model, procs, ppn, loaded=False)  # a root handles all messages
    memory_s_per_byte = or_zero(model.reducing), or_zero(model.copying)
    on_node = network.on if network.off is not None else None
    group = Group(network.slowest, procs, *memory_s_per_byte, on_node, min(ppn, procs))
    standard = _able(model, collectives.methods(operation, procs, ppn))

    def formula(spec: str) -> Callable[[int], float]:
        if collectives.formula(operation, spec, procs, ppn) is None:
            raise ModelError(
                f"{spec} has no formula for {operation} on {procs} ranks, {ppn} per node; "
                f"available: {', '.join(standard)}"
            )
        return lambda size: collectives.time_s(operation, spec, group, size)

    return _predictor(model, specs or standard, formula)
