"""The parameters that predictions are composed of, as plain numbers, by message size."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner.models.loggp import LogGP, LogGPProtocol
from tuner.models.maxrate import Rates
from tuner.models.parameter import Estimate, ModelError, NotIdentified, or_zero
from tuner.models.system import PairModel, SystemModel
from tuner.stats import Floats


@dataclass(frozen=True)
class MessageCosts:
    """The costs of one message: alpha = L + 2o, step = max(o, g), receive = o, per_byte = G."""

    alpha_s: float
    send_s: float
    gap_s: float
    receive_s: float
    per_byte_s: float
    beta_s: float  # for a message alone: the G of round trips

    @property
    def step_s(self) -> float:
        """Return the time from the beginning of a message to that of the next."""
        return max(self.send_s, self.gap_s)

    @property
    def latency_s(self) -> float:
        """Return L, the rest of alpha."""
        return max(self.alpha_s - self.send_s - self.receive_s, 0.0)

    def alone_s(self, size_bytes: float) -> float:
        """Return the time by the postal model, alpha + beta s."""
        return self.alpha_s + self.beta_s * size_bytes


@dataclass(frozen=True)
class Costs:
    """The costs of one kind of pair; parameters that are not identified count as 0.

    Where neither o nor g is known, each message takes alpha (the postal model).
    """

    ends: Floats  # largest size of each protocol but the last
    messages: list[MessageCosts]
    pair: PairModel

    def of(self, size_bytes: float) -> MessageCosts:
        """Return the costs of messages of that size."""
        return self.messages[int(np.searchsorted(self.ends, size_bytes))]

    def table(self, size_bytes: NDArray[np.floating[Any]]) -> Floats:
        """Return the costs of messages of these sizes.

        The rows are alpha, step, receive, per_byte and beta.
        """
        rows = [(m.alpha_s, m.step_s, m.receive_s, m.per_byte_s, m.beta_s) for m in self.messages]
        found: Floats = np.array(rows)[np.searchsorted(self.ends, size_bytes)]
        return found

    def rates(self, size_bytes: float) -> Rates | None:
        """Return the max-rate model of messages of that size."""
        swept = self.pair.maxrate
        if isinstance(swept, NotIdentified):
            return None
        ends = np.array([each.up_to_bytes for each in swept.protocols[:-1]], dtype=float)
        return swept.protocols[int(np.searchsorted(ends, size_bytes))].rates


def fitted_pair(model: SystemModel, on_node: bool) -> tuple[PairModel, LogGP] | None:
    """Return a pair on a node or between nodes, and its LogGP; None when none was fitted."""
    for scope in ("on_node", "on_socket") if on_node else ("off_node",):
        pair = model.pairs.get(scope)
        if pair and isinstance(pair.loggp, LogGP):
            return pair, pair.loggp
    return None


def costs(model: SystemModel, on_node: bool, loaded: bool = True) -> Costs:
    """Return the costs of pairs on a node or between nodes.

    loaded: while all ranks of a node send and receive, as far as that was measured; the max-rate
    model then covers what leaves the node. Raise ModelError when none were fitted.
    """
    if found := fitted_pair(model, on_node):
        pair, loggp = found
        ends = np.array([each.up_to_bytes for each in loggp.protocols[:-1]], dtype=float)
        return Costs(ends, [_message(each, loaded and on_node) for each in loggp.protocols], pair)
    where = "on a node" if on_node else "between nodes"
    raise ModelError(
        f"{model.system}: no parameters for messages {where} in campaign {model.campaign}; "
        "run `switchpoint fit` to see which exist"
    )


def fence_barriers(model: SystemModel) -> float:
    """Return how many barriers of lg P messages a fence takes as measured; 1 if it was not."""
    if not isinstance(model.fence, Estimate) or model.together < 2:
        return 1.0
    try:
        slowest = costs(model, on_node="off_node" not in model.pairs)
    except ModelError:
        return 1.0  # the time of a barrier is not known
    barrier_s = (model.together - 1).bit_length() * slowest.of(1).alpha_s
    return model.fence.value / barrier_s if barrier_s > 0 else 1.0


def _message(protocol: LogGPProtocol, loaded: bool) -> MessageCosts:
    send, receive = or_zero(protocol.overhead_send), or_zero(protocol.overhead_receive)
    gap, per_byte = protocol.gap, protocol.gap_per_byte
    gap_s = or_zero(gap)
    if loaded and isinstance(protocol.loaded_gap, Estimate):  # of a message sent and one received
        gap = protocol.loaded_gap
        gap_s = max(gap.value - receive, 0.0)
    if loaded and isinstance(protocol.loaded_gap_per_byte, Estimate):
        per_byte = protocol.loaded_gap_per_byte
    alpha_s, beta_s = protocol.alpha_s, protocol.beta_s
    if loaded and isinstance(protocol.loaded_alpha, Estimate):
        alpha_s, beta_s = protocol.loaded_alpha.value, or_zero(protocol.loaded_beta)
    unknown = isinstance(protocol.overhead_send, NotIdentified) and isinstance(gap, NotIdentified)
    return MessageCosts(
        alpha_s=alpha_s,
        send_s=alpha_s if unknown else send,
        gap_s=gap_s,
        receive_s=receive,
        per_byte_s=per_byte.value if isinstance(per_byte, Estimate) else beta_s,
        beta_s=beta_s,
    )
