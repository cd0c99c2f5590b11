"""The lines of a method table that carry a model's parameters, for cases that no rule matches.

From them the library (kernels/src/plan/model.c) computes the same times as `tuner.models.predict`.
Grammar: docs/reference/table.md.
"""

import math

from tuner.models.costs import Costs, costs, fence_barriers
from tuner.models.maxrate import MaxRate
from tuner.models.parameter import Estimate, ModelError, NotIdentified
from tuner.models.system import SystemModel


def model_lines(model: SystemModel | None) -> list[str]:
    """Return the lines of a model; [] without a model or without parameters of messages.

    Also [] where nodes share cores: the library asks only whether the ranks of one node have
    cores of their own.
    """
    if model is None or model.shares_cores:
        return []
    lines: list[str] = []
    for pair, on_node in (("on_node", True), ("off_node", False)):
        try:
            lines += _pair_lines(pair, costs(model, on_node))
        except ModelError:
            continue
    lines += _alone_lines(model)
    if lines and isinstance(model.copying, Estimate):
        lines.append(f"model copy {_fields(s_per_byte=model.copying.value)}")
    if lines and isinstance(model.reducing, Estimate):
        lines.append(f"model reduce {_fields(s_per_byte=model.reducing.value)}")
    if lines and isinstance(model.fence, Estimate):
        lines.append(f"model fence {_fields(barriers=fence_barriers(model))}")
    if lines and model.cores:
        lines.append(f"model node {_fields(cores=model.cores)}")
    return lines


def _alone_lines(model: SystemModel) -> list[str]:
    """Return the lines of messages on a node while nobody else sends, if they cost less or more."""
    try:
        alone, loaded = (costs(model, on_node=True, loaded=loaded) for loaded in (False, True))
    except ModelError:
        return []
    return _message_lines("alone", alone) if alone.messages != loaded.messages else []


def _pair_lines(pair: str, found: Costs) -> list[str]:
    lines = _message_lines(pair, found) + _rate_lines(pair, found.pair.maxrate)
    penalty = found.pair.synchronous
    if isinstance(penalty, Estimate):
        lines.append(f"model synchronous pair={pair} {_fields(penalty_s=penalty.value)}")
    elif penalty.is_zero:
        lines.append(f"model synchronous pair={pair} penalty_s=0")
    return lines


def _message_lines(pair: str, found: Costs) -> list[str]:
    lines = []
    for up_to, each in zip([*found.ends.tolist(), math.inf], found.messages, strict=True):
        fields = _fields(
            up_to=up_to,
            alpha_s=each.alpha_s,
            step_s=each.step_s,
            receive_s=each.receive_s,
            per_byte_s=each.per_byte_s,
            beta_s=each.beta_s,
        )
        lines.append(f"model message pair={pair} {fields}")
    return lines


def _rate_lines(pair: str, swept: MaxRate | NotIdentified) -> list[str]:
    if isinstance(swept, NotIdentified) or pair == "on_node":
        return []
    lines = []
    for each in swept.protocols:
        rates = each.rates
        fields = _fields(
            up_to=math.inf if each.up_to_bytes is None else each.up_to_bytes,
            b_max=rates.b_max or 0,
            b_inj=rates.b_inj,
            b_node=rates.b_node or 0,
            processes=rates.most_processes,
        )
        lines.append(f"model rate pair={pair} {fields}")
    return lines


def _fields(**values: float) -> str:
    return " ".join(f"{name}={_number(value)}" for name, value in values.items())


def _number(value: float) -> str:
    """Return a number in the library's form: ten digits, and `*` for infinity."""
    return "*" if math.isinf(value) else f"{value:.10g}"
