"""Fitted systems as networks to simulate, and simulated machines as models to predict with."""

from tuner.machine.simulation import networks
from tuner.machine.simulation.machines import CORES, Machine
from tuner.machine.simulation.networks import Network
from tuner.models import maxrate
from tuner.models.costs import fitted_pair
from tuner.models.loggp import LogGP, LogGPProtocol
from tuner.models.maxrate import MaxRate, Rates
from tuner.models.parameter import Estimate, ModelError, NotIdentified
from tuner.models.system import Links, PairModel, ProbedLayout, SystemModel

_NO_GAP = NotIdentified("a simulated network has none but overheads")
_NOT_SWEPT = NotIdentified("the node's memory has one rate")
_FENCE_BARRIERS = 2  # barriers in SMPI's MPI_Win_fence (smpi_win.cpp)
_EVERY = 1 << 30  # processes of a node; their rates are not extrapolated


def as_network(model: SystemModel) -> Network:
    """Return the protocols between nodes, and the node's memory, as a network.

    Overheads that are not identified are half of a message's time on the node: both ends have no
    more to do there. Raise ModelError when no pair on two nodes was fitted.
    """
    off, on = fitted_pair(model, on_node=False), fitted_pair(model, on_node=True)
    if off is None:
        raise ModelError(
            f"{model.system}: no parameters for messages between nodes in campaign "
            f"{model.campaign}; a network needs more than one node"
        )
    pair, fitted = off
    local = on[1].protocols if on else []
    link_rate = _link_rate(pair, fitted)
    begins = [0, *((each.up_to_bytes or 0) + 1 for each in fitted.protocols[:-1])]
    protocols = [
        _protocol(each, begin, local, link_rate)
        for each, begin in zip(fitted.protocols, begins, strict=True)
    ]
    try:
        return Network(
            source=f"fitted to {model.system}, campaign {model.campaign}",
            protocols=protocols,
            link_bytes_per_s=link_rate,
            on_node_latency_s=max(local[0].alpha_s - 2 * protocols[0].overhead_s, 0)
            if local
            else 0,
            on_node_bytes_per_s=_rate(local[-1].beta_s, link_rate) if local else link_rate,
        )
    except ValueError as error:
        raise ModelError(f"{model.system}: {error}") from error


def as_model(machine: Machine) -> SystemModel:
    """Return the given parameters of a simulated machine; copying and reducing take no time there.

    On the node every message has the rate of the memory, so that further ones take no longer (G).
    """
    given = machine.network
    layout = ProbedLayout(machine.nodes, CORES, oversubscribed=False, launches=0)
    nothing = _exactly(0)
    links = Links(machine.name.partition("-")[0], machine.topology.sizes)
    node_rate = machine.topology.node_links * given.link_bytes_per_s
    off = [(e, e.latency_s, min(e.bytes_per_s, given.link_bytes_per_s)) for e in given.protocols]
    fastest = given.on_node_bytes_per_s / max(given.rate_factors)
    on = [
        (each, given.on_node_latency_s * latency, fastest * rate)
        for each, latency, rate in zip(
            given.protocols, given.latency_factors, given.rate_factors, strict=True
        )
    ]
    pairs = {
        "off_node": PairModel(
            layout, _loggp(off, shared=True), _shared(off, node_rate), synchronous=nothing
        ),
        "on_node": PairModel(layout, _loggp(on, shared=False), _NOT_SWEPT, synchronous=nothing),
    }
    first = given.protocols[0]
    alpha_s = first.latency_s + 2 * first.overhead_s
    return SystemModel(
        *(machine.name, "", 0, pairs),
        copying=nothing,
        reducing=nothing,
        fence=_exactly(_FENCE_BARRIERS * alpha_s),
        together=2,
        cores=CORES,
        links=links,
    )


def _loggp(protocols: list[tuple[networks.Protocol, float, float]], shared: bool) -> LogGP:
    ends = [each.from_bytes - 1 for each, _, _ in protocols[1:]]
    return LogGP(
        [
            LogGPProtocol(
                from_bytes=each.from_bytes,
                up_to_bytes=end,
                alpha=_exactly(latency_s + 2 * each.overhead_s),
                beta=_exactly(1 / rate),
                latency=_exactly(latency_s),
                overhead_send=_exactly(each.overhead_s),
                overhead_receive=_exactly(each.overhead_s),
                gap=_NO_GAP,
                gap_per_byte=_exactly(1 / rate if shared else 0),
                alpha_s=latency_s + 2 * each.overhead_s,
                beta_s=1 / rate,
            )
            for (each, latency_s, rate), end in zip(protocols, [*ends, None], strict=True)
        ],
        scale=0,
    )


def _shared(protocols: list[tuple[networks.Protocol, float, float]], node_rate: float) -> MaxRate:
    ends = [each.from_bytes - 1 for each, _, _ in protocols[1:]]
    return MaxRate(
        [
            maxrate.RateProtocol(
                *(each.from_bytes, end, _exactly(latency_s + 2 * each.overhead_s)),
                *(_exactly(rate), _exactly(rate), _exactly(node_rate)),
                Rates(latency_s + 2 * each.overhead_s, rate, rate, node_rate, _EVERY),
            )
            for (each, latency_s, rate), end in zip(protocols, [*ends, None], strict=True)
        ],
        scale=0,
    )


def _exactly(value: float) -> Estimate:
    return Estimate(value, value, value)


def _protocol(
    each: LogGPProtocol, begin: int, local: list[LogGPProtocol], link_rate: float
) -> networks.Protocol:
    known = [
        o.value for o in (each.overhead_send, each.overhead_receive) if isinstance(o, Estimate)
    ]
    sizes = [other for other in local if other.from_bytes <= max(begin, 1)] or local[:1]
    overhead = sum(known) / len(known) if known else sizes[-1].alpha_s / 2 if sizes else 0.0
    overhead = min(overhead, each.alpha_s / 2)
    return networks.Protocol(
        from_bytes=begin,
        overhead_s=overhead,
        latency_s=each.alpha_s - 2 * overhead,
        bytes_per_s=_rate(each.beta_s, link_rate),
    )


def _link_rate(pair: PairModel, fitted: LogGP) -> float:
    """Return the rate of all processes of a node together, else the most that one gets."""
    if isinstance(pair.maxrate, MaxRate) and (rate := pair.maxrate.protocols[-1].rates.b_node):
        return rate
    rates = [1 / each.beta_s for each in fitted.protocols if each.beta_s > 0]
    if not rates:
        raise ModelError("no message between nodes takes longer the larger it is")
    return max(rates)


def _rate(seconds_per_byte: float, otherwise: float) -> float:
    return 1 / seconds_per_byte if seconds_per_byte > 0 else otherwise
