"""A machine with round numbers, whose predictions can be computed by hand."""

from collections.abc import Sequence
from dataclasses import replace

from tests.halos import halo_of
from tuner.inputs.structure.halo import Halo
from tuner.models.loggp import LogGP, LogGPProtocol
from tuner.models.maxrate import MaxRate, Rates
from tuner.models.maxrate import RateProtocol as MaxRateProtocol
from tuner.models.parameter import Estimate, NotIdentified, Parameter
from tuner.models.system import PairModel, ProbedLayout, SystemModel

LAYOUT = ProbedLayout(nodes=1, ppn=16, oversubscribed=False, launches=1)
UNKNOWN = NotIdentified("not measured")
LATENCY, OVERHEAD, GAP, PER_BYTE = 3.0, 1.0, 2.0, 0.125
ALPHA = LATENCY + 2 * OVERHEAD
COPYING, REDUCING, PENALTY = 0.25, 0.5, 7.0


def exactly(value: float) -> Parameter:
    return Estimate(value, value, value)


def pair(factor: float = 1, rates: Rates | None = None, ends: Sequence[int] = ()) -> PairModel:
    """Return a network whose times are `factor` as long, of protocols that each double alpha."""
    bounds = [0, *ends]
    protocols = [
        LogGPProtocol(
            from_bytes=begin + 1,
            up_to_bytes=end,
            alpha=exactly(factor * ALPHA * 2**number),
            beta=exactly(factor * PER_BYTE),
            latency=exactly(factor * LATENCY),
            overhead_send=exactly(factor * OVERHEAD),
            overhead_receive=exactly(factor * OVERHEAD),
            gap=exactly(factor * GAP),
            gap_per_byte=exactly(factor * PER_BYTE),
            alpha_s=factor * ALPHA * 2**number,
            beta_s=factor * PER_BYTE,
        )
        for number, (begin, end) in enumerate(zip(bounds, [*ends, None], strict=True))
    ]
    swept: MaxRate | NotIdentified = UNKNOWN
    if rates:
        swept = MaxRate([MaxRateProtocol(1, None, *(UNKNOWN,) * 4, rates)], 0.01)
    return PairModel(LAYOUT, LogGP(protocols, 0.01), swept, exactly(PENALTY))


def pair_with(**changes: Parameter | float) -> PairModel:
    """Return such a network of one protocol, some of whose parameters differ."""
    its = pair()
    assert isinstance(its.loggp, LogGP)
    (protocol,) = its.loggp.protocols
    return replace(its, loggp=LogGP([replace(protocol, **changes)], 0.01))


def machine(**pairs: PairModel) -> SystemModel:
    pairs = pairs or {"on_node": pair()}
    return SystemModel(*("a-system", "a-campaign"), 1, pairs, exactly(COPYING), exactly(REDUCING))


def everybody(procs: int) -> Halo:
    pairs = ((a, b) for a in range(procs) for b in range(procs) if a != b)
    return halo_of({(a, b): {b} for a, b in pairs}, procs)
