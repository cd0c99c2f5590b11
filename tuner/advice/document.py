"""Advice as a document for programs, and as lines for people. No input or output."""

import shlex
from collections.abc import Iterator
from statistics import median
from typing import Annotated, Literal

import msgspec

from tuner.advice.mix import LEAST_SHARE, Assessment, Mix, State
from tuner.advice.profile import MOST_S, Natural, ProfiledSeconds, Shape
from tuner.advice.proof import LEAST_PAIRS, Outcome, Proof
from tuner.domain.records import SHORTEST_S
from tuner.selection.next_step import checks_of, with_options
from tuner.units import counted, share_text, significant, size_text, us_text

Difference = Annotated[float, msgspec.Meta(ge=-MOST_S, le=MOST_S)]
RunSeconds = Annotated[float, msgspec.Meta(ge=SHORTEST_S, le=MOST_S)]

RECORDING = 0.01
"""Share of the run that recording may take."""

SHOWN = 10
"""Calls that are shown, those with the most time first."""


class Gain(msgspec.Struct, frozen=True):
    """Seconds that a table saves, with their interval."""

    seconds: Difference
    low: Difference
    high: Difference


class CallAdvice(msgspec.Struct, frozen=True):
    """The calls of one shape, and what a table says of them: see `Calls` and `Assessment`."""

    call: str
    procs: Natural
    nodes: Natural
    ppn: Natural
    bytes: Natural
    types: list[str]
    count: Natural
    seconds: ProfiledSeconds
    own_s: Difference
    spread_s: ProfiledSeconds | None
    state: State
    method: str
    evidence: str
    gain: Gain
    may_add_s: Difference


class Advice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts about an application; from `outcome` on, the results of runs with a table."""

    program: str
    processes: Natural
    reported: Natural
    finalized: bool
    seconds: ProfiledSeconds
    communication_s: ProfiledSeconds
    bound_s: ProfiledSeconds
    lost: Natural
    gain: Gain
    calls: list[CallAdvice]
    to_measure: list[Shape]
    cut: Natural = 0
    notes: list[str] = []
    # Of the pairs; "failed": with the table.
    outcome: Literal["", "failed"] | Outcome = msgspec.field(name="verdict", default="")
    ended: str = ""  # why runs ended before they were resolved
    # Of what is compared: see `PairedRuns.identity`.
    identity: str = msgspec.field(name="trial", default="")
    earlier: Natural = 0  # of the pairs: those of an earlier start
    failed_before: str = ""  # why an earlier start ended with the outcome "failed"
    recorded_s: ProfiledSeconds | None = None  # of the whole run that was recorded
    pairs: list[tuple[RunSeconds, RunSeconds]] = []
    ratio: float | None = None
    low: float | None = None  # None: too few pairs for an interval
    high: float | None = None
    dispatched: list[str] = []
    lines: list[str] = []
    srun: str = ""
    run: str = "switchpoint run"  # the command that measures the system


def advice(mix: Mix) -> Advice:
    """Return the mix of an application as a document."""
    profile = mix.profile
    return Advice(
        program=profile.program,
        processes=profile.procs,
        reported=profile.reported,
        finalized=profile.finalized,
        seconds=profile.seconds,
        communication_s=profile.communication_s,
        bound_s=profile.bound_s,
        lost=profile.lost,
        gain=Gain(*mix.gain_s),
        calls=[_call(its) for its in mix.assessments],
        to_measure=[its.calls.shape for its in mix.to_measure],
        run=mix.run,
        cut=profile.cut,
        notes=list(profile.notes),
    )


def _call(its: Assessment) -> CallAdvice:
    calls = its.calls
    return CallAdvice(
        **calls.shape._asdict(),
        types=list(calls.types),
        count=calls.count,
        seconds=calls.seconds,
        own_s=calls.own_s,
        spread_s=calls.spread_s,
        state=its.state,
        method=its.method,
        evidence=its.words,
        gain=Gain(its.gain_s, its.low_s, its.high_s),
        may_add_s=its.more_s,
    )


def proved(its: Advice, proof: Proof) -> Advice:
    """Return the advice with what runs with and without the table showed."""
    known = len(proof.pairs) >= LEAST_PAIRS
    return msgspec.structs.replace(
        its,
        outcome=proof.outcome,
        pairs=proof.pairs,
        ratio=proof.ratio,
        low=proof.low if known else None,
        high=proof.high if known else None,
    )


def failure_of(its: Advice) -> str:
    """Return how runs with the table failed at this start, or before; "" if they did not."""
    return its.ended if its.outcome == "failed" else its.failed_before


COLUMNS = ("call", "processes", "bytes", "types", "calls", "of run", "waiting", "apart", "table")
"""The heads of `rows`."""


def rows(its: Advice) -> list[tuple[str, ...]]:
    """Return the calls with the most time: see `COLUMNS`."""
    return [
        (
            f"MPI_{call.call}",
            _processes(call),
            size_text(call.bytes) if call.bytes else "",
            ", ".join(name.removeprefix("MPI_") for name in call.types),
            str(call.count or "?"),
            percent(call.seconds, its.seconds),
            percent(call.seconds - call.own_s, call.seconds),
            "" if call.spread_s is None else f"{us_text(call.spread_s, 2)} µs",
            call.evidence or call.state.value,
        )
        for call in its.calls[:SHOWN]
    ]


def _processes(call: CallAdvice) -> str:
    if not call.procs:
        return ""
    return f"{call.procs} on {counted(call.nodes, 'node')}" if call.nodes else "?"


def summary(its: Advice) -> Iterator[str]:
    """Yield what follows from the mix, a sentence a line."""
    yield (
        f"{its.program}: {significant(its.seconds)} s on {its.processes} processes, "
        f"{percent(its.communication_s, its.seconds)} of it in MPI"
    )
    if its.reported < its.processes:
        yield f"only {its.reported} of {its.processes} processes have written their calls"
    if its.cut:
        yield f"lines of killed processes that are cut off, and ignored: {its.cut}"
    yield from its.notes
    if its.lost:
        yield f"{its.lost} calls are not judged, as there were too many different ones"
    yield (
        f"bound: no table can save more than {percent(its.bound_s, its.seconds)}, the time in "
        "calls that tables are about"
    )
    if its.gain.seconds > 0:
        yield (
            f"expected gain by the table: {percent(its.gain.seconds, its.seconds)} "
            f"({percent(its.gain.low, its.seconds)} to {percent(its.gain.high, its.seconds)})"
        )
    else:
        yield f"expected gain by the table: none; {_why_none(its)}"
    promised_s = _in_state(its, State.PROMISED)
    if promised_s > 0:
        yield (
            f"{percent(promised_s, its.seconds)} is in calls that need a promise "
            "(swp_fixed_counts, swp_started_together)"
        )
    others_s = _in_state(its, State.UNDISPATCHED)
    if others_s > 0:
        yield f"calls that no table is about take {percent(others_s, its.seconds)}"


def _in_state(its: Advice, state: State) -> float:
    """Return the seconds of calls of which a table says this, within the run."""
    return min(sum(call.seconds for call in its.calls if call.state is state), its.seconds)


def worth_measuring(its: Advice) -> Iterator[str]:
    """Yield the calls worth measuring, a line each, and the command for their operations."""
    shapes = its.to_measure[:SHOWN]
    for shape in shapes:
        yield f"worth measuring: {shape.operation} of {shape.bytes} B on {shape.procs} processes"
    if shapes:
        name = shlex.quote(checks_of({shape.operation for shape in shapes}))
        yield f"to measure their operations: {with_options(its.run, f'--name {name}')}"


def _why_none(its: Advice) -> str:
    if its.bound_s < LEAST_SHARE * its.seconds:
        if its.communication_s <= 0.05 * its.seconds:
            return "the program computes"
        others_s = _in_state(its, State.UNDISPATCHED) + _in_state(its, State.ALONE)
        waits = others_s < its.communication_s / 2  # as one process spends little in the rest
        return "its processes wait for the slowest" if waits else "its time is in other calls"
    if its.to_measure:
        return "what matters is not measured yet"
    if {State.SETTLED, State.OPEN, State.UNMEASURED}.isdisjoint(call.state for call in its.calls):
        return "its calls need a promise"
    unjudged = [call for call in its.calls if call.state is State.UNMEASURED and not call.procs]
    if sum(call.seconds for call in unjudged) >= LEAST_SHARE * its.seconds:
        return "calls are not judged, as their communicator or size is unknown"
    return "the MPI library's own methods are the best known for its calls"


def outcome(its: Advice) -> Iterator[str]:
    """Yield what runs with and without the table showed, and what was dispatched in them."""
    if its.outcome == "failed":
        yield f"the table is not recommended: {its.ended}"
    elif its.ended:
        yield f"the runs ended early: {its.ended}"
    if its.failed_before and its.outcome != "failed":
        yield f"caution: an earlier start failed: {its.failed_before}"
    if its.pairs and its.outcome:
        yield _compared(its, Proof.of(its.pairs))
    elif its.ended:
        pass
    elif its.outcome == "open":
        yield "not resolved: calls that may gain are not measured, or too little"
    elif its.outcome:
        yield f"no gain: {_why_none(its)}"
    yield from _cost_of_recording(its)
    yield from its.dispatched
    if its.outcome == "open" and its.pairs:
        yield "a larger --budget resolves smaller differences"


def _cost_of_recording(its: Advice) -> Iterator[str]:
    """Yield how much longer the recorded run took than those that were not changed."""
    if its.recorded_s is None or not its.pairs:
        return
    untouched_s = [without_s for without_s, _ in its.pairs]
    usual_s = median(untouched_s)
    more, most = its.recorded_s / usual_s - 1, its.recorded_s / min(untouched_s) - 1
    said = (
        f"the recorded run took {percent(abs(more), 1)} {'longer' if more > 0 else 'less'} than "
        f"the median of {len(its.pairs)} untouched"
    )
    if most < RECORDING:
        yield f"{said}, and below 1 % more than the fastest: recording costs less than that"
    elif its.recorded_s <= max(untouched_s):
        yield f"{said}, among which it lies: what recording costs is below their differences"
    else:
        yield f"{said}: recording may cost more than 1 %, and the times in calls hold it"


def _compared(its: Advice, proof: Proof) -> str:
    pairs = f"{counted(len(proof.pairs), 'pair')} of runs"
    if its.earlier:
        pairs += f", {its.earlier} of an earlier start"
    is_longer = proof.ratio > 1 and its.outcome != "none"
    ends = (proof.low - 1, proof.high - 1) if is_longer else (1 - proof.high, 1 - proof.low)
    low, high = (percent(end, 1) for end in ends)
    few = len(proof.pairs) < LEAST_PAIRS
    interval = "no interval: three pairs are needed" if few else f"{low} to {high}"
    found = percent(abs(1 - proof.ratio), 1)
    so_far = f"saves {found}" if proof.ratio <= 1 else f"takes {found} longer"
    before = f"saved {found}" if proof.ratio <= 1 else f"took {found} longer"
    words = {
        "gain": f"gain: the table saves {found} of the run time",
        "loss": "no gain: the program is slower with the table",
        "none": "no gain: the difference is below 1 %",
        "open": f"not resolved; so far the table {so_far}",
        "failed": f"before that, the table {before}",
    }
    return f"{words[its.outcome]} ({interval}, by {pairs})"


def use(its: Advice) -> list[str]:
    """Return the lines for a shell that switch the table on, comments among them; [] if no gain."""
    if its.outcome != "gain":
        return []
    by_srun = ["# in a job of Slurm, instead of the last line:", its.srun] if its.srun else []
    return [*its.lines, *by_srun]


def percent(part: float, whole: float) -> str:
    """Return a share, with a digit after the point where it is small."""
    share = part / whole if whole > 0 else 0.0
    return share_text(share, 0 if abs(share) >= 0.1 else 1)
