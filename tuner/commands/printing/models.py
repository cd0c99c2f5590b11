"""Output of fitted parameters, of predictions, and of their comparison with measurements."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from tuner.commands.printing.grids import Columns
from tuner.models.closed_forms import ClosedForm
from tuner.models.parameter import NotIdentified
from tuner.models.predict import MethodTimes, SwitchPoint
from tuner.models.predicting import CasePrediction, share_close_of
from tuner.models.shown import shown_parameters, tables
from tuner.models.system import SystemModel
from tuner.models.validation import CLOSE
from tuner.units import change_text, share_text, size_text, us_text


def show_model(model: SystemModel, out: Console) -> None:
    """Print the parameters with their intervals, and then why others are missing."""
    source = f"campaign {model.campaign}, samples: {model.samples}"
    simulated = "a simulated machine with given parameters"
    out.print(f"{model.system}: {source if model.campaign else simulated}")
    for scope, pair in model.pairs.items():
        where = pair.layout
        mark = ", oversubscribed" if where.oversubscribed else ""
        launches = f", launches: {where.launches}" if where.launches else ""
        out.print(f"{scope}: {where.nodes} x {where.ppn} ranks{mark}{launches}")
    shown = list(shown_parameters(model))
    for title, headings, rows in tables(shown):
        grid = Columns(title, "bytes", *headings)
        for row in rows:
            grid.add_row(*row)
        out.print(grid)
    for each in shown:
        if not each.model:
            out.print(f"{each.heading}: {each.text}")
    missing = [each for each in shown if each.reason]
    if missing:
        out.print("- not identified:")
    for each in missing:
        names = filter(None, (each.model, each.scope, each.sizes, each.name))
        out.print(f"  {' '.join(names)}: {each.reason}")


def show_prediction(
    sizes: Sequence[int],
    times: Sequence[MethodTimes],
    crossovers: Sequence[SwitchPoint],
    out: Console,
) -> None:
    """Print the methods at every size, the fastest first, and where the best changes."""
    grid = Columns("bytes", "method", "predicted us", "x best")
    reasons: dict[str, str] = {}
    leaders: set[str] = set()
    for size, found in zip(sizes, times, strict=True):
        best: float | None = None
        for method, time_s in found.items():
            if isinstance(time_s, NotIdentified):
                reasons[method] = time_s.reason
                continue
            if best is None:
                best = time_s
                leaders.add(method)
            multiple = f"{time_s / best:.2f}" if best > 0 else "1.00"
            grid.add_row(size_text(size), method, us_text(time_s), multiple)
    if grid.row_count:
        out.print(grid)
    for method, reason in reasons.items():
        out.print(f"{method} is not predicted: {reason}")
    for each in crossovers:
        out.print(f"{each.after} from {size_text(each.size_bytes)} on, {each.before} below")
    if not leaders:
        out.print("no method can be predicted")
    elif len(leaders) == 1 and not crossovers:
        out.print("the same method is predicted to be the fastest at all these sizes")


def show_closed_forms(sizes: Sequence[int], forms: Sequence[ClosedForm], out: Console) -> None:
    """Print each form with its source, its times, and where it crosses `direct`."""
    if not forms:
        out.print("the papers have no closed form for this pattern on this layout")
    for form in forms:
        below = form.beats_direct_below_bytes
        limit = "" if below is None else f"; faster than direct below {size_text(round(below))}"
        out.print(f"{form.method}, {form.source}{limit}:")
        times = (f"{size_text(size)} {us_text(form.time_s(size))}" for size in sizes)
        out.print(f"  {', '.join(times)} us")


def prediction_document(
    sizes: Sequence[int],
    times: Sequence[MethodTimes],
    crossovers: Sequence[SwitchPoint],
    forms: Sequence[ClosedForm] | None = None,
) -> Any:
    """Return the prediction as a document; a method without a prediction has the reason."""
    document: dict[str, Any] = {
        "times_s": [
            {
                "size_bytes": size,
                "methods": [
                    {"method": method, "not_predicted": time_s.reason}
                    if isinstance(time_s, NotIdentified)
                    else {"method": method, "time_s": time_s}
                    for method, time_s in found.items()
                ],
            }
            for size, found in zip(sizes, times, strict=True)
        ],
        "crossovers": [asdict(each) for each in crossovers],
    }
    if forms is not None:
        document["closed_forms"] = [
            {
                "method": form.method,
                "source": form.source,
                "times_s": [{"size_bytes": size, "time_s": form.time_s(size)} for size in sizes],
                "beats_direct_below_bytes": form.beats_direct_below_bytes,
            }
            for form in forms
        ]
    return document


def show_outcomes(outcomes: Sequence[CasePrediction], out: Console) -> None:
    """Print signed errors by method and size, rank correlations and switch points, case by case."""
    for outcome in outcomes:
        case, validation = outcome.case, outcome.validation
        title = f"{case.operation} {case.pattern}, {case.procs} ranks, {case.ppn} per node"
        if validation is None or outcome.why_none:
            out.print(f"{title}: not predicted, {outcome.why_none}")
            continue
        correlation = validation.rank_correlation
        rank = "too few methods" if correlation is None else f"{correlation:.2f}"
        close = f"{share_text(validation.close, 0)} within {share_text(CLOSE, 0)}"
        out.print(f"{title}: {close}, rank correlation {rank}")
        grid = Columns("bytes", "method", "measured us", "predicted us", "error")
        for error in validation.errors:
            grid.add_row(
                size_text(error.size_bytes),
                error.method,
                us_text(error.measured_s),
                us_text(error.predicted_s),
                change_text(error.signed, 0),
            )
        out.print(grid)
        for what in ("predicted", "measured"):
            switches: list[SwitchPoint] = getattr(validation, f"{what}_switches")
            texts = [f"{s.before} to {s.after} at {size_text(s.size_bytes)}" for s in switches]
            out.print(f"switch points {what}: {', '.join(texts) or 'none'}")
    _show_all(outcomes, out)


def _show_all(outcomes: Sequence[CasePrediction], out: Console) -> None:
    """Print one line for all cases together."""
    found = [outcome.validation for outcome in outcomes if outcome.validation]
    share = share_close_of(outcomes)
    if share is None:
        return
    count = sum(len(each.errors) for each in found)
    summary = f"all: {share_text(share, 0)} of {count} within {share_text(CLOSE, 0)}"
    correlations = [r for each in found if (r := each.rank_correlation) is not None]
    if correlations:
        summary += f", rank correlation {sum(correlations) / len(correlations):.2f}"
    losses = [loss for each in found for loss in each.losses]
    right = sum(loss == 0 for loss in losses)
    out.print(
        f"{summary}; the fastest method is predicted at {right} of {len(losses)} sizes; the method "
        f"predicted to be the fastest loses {share_text(sum(losses) / len(losses))} on average"
    )


def outcome_document(outcome: CasePrediction) -> dict[str, Any]:
    """Return an outcome as a JSON object."""
    case, validation = outcome.case, outcome.validation
    document = asdict(case)
    if validation is None or outcome.why_none:
        return document | {"not_predicted": outcome.why_none}
    return document | {
        "within_15_percent": validation.close,
        "rank_correlation": validation.rank_correlation,
        "errors": [asdict(error) | {"error": error.signed} for error in validation.errors],
        "predicted_switches": [asdict(s) for s in validation.predicted_switches],
        "measured_switches": [asdict(s) for s in validation.measured_switches],
    }
