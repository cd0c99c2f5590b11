"""Advice as a document for programs, and as lines for people. No input or output."""

import shlex
from collections.abc import Iterator
from typing import Any

from tuner.advice.mix import Mix, Said, State
from tuner.units import significant, size_text

SHOWN = 10
"""Calls that are shown, those with the most time first."""


def document(mix: Mix) -> dict[str, Any]:
    """Return the mix of an application as a document."""
    profile = mix.profile
    gain_s, low_s, high_s = mix.gain_s
    return {
        "program": profile.program,
        "processes": profile.procs,
        "reported": profile.reported,
        "finalized": profile.finalized,
        "seconds": profile.seconds,
        "communication_s": profile.communication_s,
        "bound_s": profile.bound_s,
        "lost": profile.lost,
        "gain": {"seconds": gain_s, "low": low_s, "high": high_s},
        "calls": [_call(said) for said in mix.said],
        "to_measure": [list(said.calls.shape) for said in mix.to_measure],
    }


def _call(said: Said) -> dict[str, Any]:
    calls = said.calls
    return {
        **calls.shape._asdict(),
        "types": list(calls.types),
        "count": calls.count,
        "seconds": calls.seconds,
        "own_s": calls.own_s,
        "spread_s": calls.spread_s,
        "state": said.state.value,
        "method": said.method,
        "evidence": said.words,
        "gain": {"seconds": said.gain_s, "low": said.low_s, "high": said.high_s},
        "may_add_s": said.more_s,
    }


COLUMNS = ("call", "processes", "bytes", "calls", "of run", "waiting", "table")
"""The heads of `rows`."""


def rows(mix: Mix) -> list[tuple[str, ...]]:
    """Return the calls with the most time: see `COLUMNS`."""
    return [
        (
            f"MPI_{said.calls.shape.call}",
            _processes(said),
            size_text(said.calls.shape.bytes) if said.calls.shape.bytes else "",
            str(said.calls.count),
            percent(said.calls.seconds, mix.profile.seconds),
            percent(said.calls.seconds - said.calls.own_s, said.calls.seconds),
            said.words or said.state.value,
        )
        for said in mix.said[:SHOWN]
    ]


def _processes(said: Said) -> str:
    shape = said.calls.shape
    if not shape.procs:
        return ""
    return f"{shape.procs} on {shape.nodes} node{'s' * (shape.nodes > 1)}" if shape.nodes else "?"


def summary(mix: Mix) -> Iterator[str]:
    """Yield what follows from the mix, a sentence a line."""
    its = mix.profile
    yield (
        f"{its.program}: {significant(its.seconds)} s on {its.procs} processes, "
        f"{percent(its.communication_s, its.seconds)} of it in MPI"
    )
    if its.reported < its.procs:
        yield f"only {its.reported} of {its.procs} processes have written their calls"
    if its.lost:
        yield f"{its.lost} calls are not counted, as there were too many different ones"
    yield (
        f"bound: no table can save more than {percent(its.bound_s, its.seconds)}, the time in "
        "calls that tables are about"
    )
    gain_s, low_s, high_s = mix.gain_s
    if gain_s > 0:
        yield (
            f"expected gain by the table: {percent(gain_s, its.seconds)} "
            f"({percent(low_s, its.seconds)} to {percent(high_s, its.seconds)})"
        )
    else:
        yield f"expected gain by the table: none; {_why_none(mix)}"
    others_s = sum(each.calls.seconds for each in mix.said if each.state is State.UNDISPATCHED)
    if others_s > 0:
        yield f"calls that no table is about take {percent(others_s, its.seconds)}"


def worth_measuring(mix: Mix) -> Iterator[str]:
    """Yield the calls worth measuring, a line each, and the command for their operations."""
    shapes = [said.calls.shape for said in mix.to_measure[:SHOWN]]
    for shape in shapes:
        yield f"worth measuring: {shape.operation} of {shape.bytes} B on {shape.procs} processes"
    if shapes:
        kinds = "|".join(sorted({shape.operation for shape in shapes}))
        command = ["switchpoint", "run", "--", "--name", rf"collective.*kind=({kinds})\b"]
        yield f"to measure their operations: {shlex.join(command)}"


def _why_none(mix: Mix) -> str:
    its = mix.profile
    if its.bound_s < 0.01 * its.seconds:
        others = its.communication_s > 0.05 * its.seconds
        return "its time is in other calls" if others else "the program computes"
    if mix.to_measure:
        return "what matters is not measured yet"
    return "the MPI library's own methods are the best known for its calls"


def percent(part: float, whole: float) -> str:
    """Return a share, with a digit after the point where it is small."""
    share = 100 * part / whole if whole > 0 else 0.0
    return f"{share:.0f} %" if abs(share) >= 10 or share == 0 else f"{share:.1f} %"
