"""Models: fitted parameters, and predictions for a case compared with its measurements."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from dash import html

from dashboard.choice import CaseChoice, CaseQuery, choose_case, newest_queries
from dashboard.elements import data_cell, row_head, table_row
from dashboard.figures.residuals import residuals
from dashboard.markup import Component
from dashboard.pages.explore import size_title
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Plot
from dashboard.query import Query
from dashboard.widgets import badge, card, data_table, prose
from tuner.domain.cases import COLD, STAGGERED
from tuner.models import fitting, predicting
from tuner.models.predict import SwitchPoint
from tuner.models.predicting import CasePrediction
from tuner.models.shown import shown_parameters, tables
from tuner.models.system import SystemModel
from tuner.models.validation import CLOSE
from tuner.store.store import Store
from tuner.units import share_text, size_text

PATH = "/models"
_NUMBERS = ["method", "size_bytes", "bytes", "median_s", "low_s", "high_s"]


@dataclass(frozen=True)
class ModelsChoice(CaseChoice[CaseQuery]):
    """The case, its system's model and the model's outcome, or the reason why these are missing."""

    model: SystemModel | None
    outcome: CasePrediction | None
    reason: str
    errors: pd.DataFrame  # as `residuals` draws them


def _choose(store: Store, query: CaseQuery, *, strict: bool) -> ModelsChoice:
    """Complete a query: see `FilteredPage`."""
    chosen = choose_case(store, query, strict=strict)
    nothing = pd.DataFrame(columns=[*_NUMBERS, "predicted_s", "residual"])
    model, outcome, reason, errors = None, None, "", nothing
    try:
        model = fitting.fitted(store, chosen.query.system)
    except fitting.FittingError as error:
        reason = str(error)
    if model is not None:
        cells = store.cells(**chosen.case)
        outcome = next(predicting.outcomes(model, cells), None)
        reason = outcome.why_none if outcome else _why_left_out(**chosen.case)
        if outcome is not None and outcome.validation is not None:
            rows = [
                (error.method, error.size_bytes, error.predicted_s, error.signed)
                for error in outcome.validation.errors
            ]
            predicted = pd.DataFrame(
                rows, columns=["method", "size_bytes", "predicted_s", "residual"]
            )
            errors = cells[_NUMBERS].merge(predicted, on=["method", "size_bytes"])
    return ModelsChoice(
        chosen.query, chosen.options, chosen.system, chosen.case, model, outcome, reason, errors
    )


def _why_left_out(operation: str, sync: str, **_: Any) -> str:
    """Return why a case is none of those that are predicted."""
    if COLD in sync or STAGGERED in sync:
        return "its caches are cold, or its ranks arrive apart"
    return f"{operation} has no formula"


def _draw(store: Store, choice: ModelsChoice) -> dict[str, Any]:
    return {
        "fit": residuals(choice.errors, CLOSE, size_title(choice.query.operation)),
        "accuracy": _accuracy(choice),
        "parameters": _parameters(choice.model) if choice.model else [],
    }


def _accuracy(choice: ModelsChoice) -> list[Component]:
    """Return the accuracy of the model on this case, in words."""
    validation = choice.outcome.validation if choice.outcome else None
    if validation is None or choice.reason:
        return [badge(prose(f"not predicted: {choice.reason}"), "secondary")]
    facts = [
        f"{share_text(validation.close)} of {len(validation.errors)} predictions are within "
        f"{share_text(CLOSE, 0)} of the measured time"
    ]
    if validation.rank_correlation is not None:
        facts.append(f"rank correlation of the methods {validation.rank_correlation:.2f}")
    cells = choice.errors
    facts.append(f"switch points predicted: {_switches(validation.predicted_switches, cells)}")
    facts.append(f"measured: {_switches(validation.measured_switches, cells)}")
    facts += [f"{name}: {why}" for name, why in validation.not_predicted.items()]
    return [html.Span([html.Span(fact) for fact in facts], className="facts")]


def _switches(crossovers: Sequence[SwitchPoint], cells: pd.DataFrame) -> str:
    """Return switch points in words, by the mean message size, as the figure has it."""
    sizes = cells.drop_duplicates("size_bytes").sort_values("size_bytes")
    found = [each.size_bytes for each in crossovers]
    bytes_ = np.interp(found, sizes["size_bytes"], sizes["bytes"])
    pairs = zip(crossovers, bytes_, strict=True)
    return ", ".join(f"{each.after} from {size_text(its)}" for each, its in pairs) or "none"


def _parameters(model: SystemModel) -> list[Component]:
    """Return the parameters of each kind of pair and protocol, and why some are missing."""
    shown = list(shown_parameters(model))
    singles = [(each.heading, each.text) for each in shown if not each.model]
    reasons = [
        f"{', '.join(filter(None, (each.model, _words(each.scope), each.name)))}: {each.reason}"
        for each in shown
        if each.reason
    ]
    source = "The parameters with which this machine is simulated."
    if model.campaign:
        source = f"Fitted to {model.samples:,} samples of campaign {model.campaign}."
    return [
        html.P(source, className="hint"),
        *(_table(title, "Bytes", *headings, rows=rows) for title, headings, rows in tables(shown)),
        _table("single operations", "Value", rows=singles),
        *([html.P("Not identified:", className="hint")] if reasons else []),
        html.Ul([html.Li(reason) for reason in dict.fromkeys(reasons)], className="hint"),
    ]


def _table(title: str, *headings: str, rows: Iterable[Sequence[str]]) -> Component:
    """Return a table of parameters, whose rows begin with a scope or a heading."""
    cells = [
        table_row(
            [
                row_head(_words(head), className="wrapped"),
                *(data_cell(text, className="wrapped") for text in row),
            ]
        )
        for head, *row in rows
    ]
    caption = f"Parameters of {title}, with 95 % intervals"
    return data_table(caption, [title, *map(_words, headings)], cells)


def _words(text: str) -> str:
    return re.sub(r"\b(on|off)_", r"\1 ", text).replace(" us", " µs")


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        parts["accuracy"],
        card(
            "Predicted and measured times",
            html.P(
                "Points: measured medians with 95 % intervals. Lines: predictions. Below: the "
                "error of each prediction, as a share of the measured time; the band marks "
                f"±{share_text(CLOSE, 0)}.",
                className="hint",
            ),
            parts["fit"],
        ),
        card("Parameters", parts["parameters"]),
    ]


def _reported(store: Store, system: str) -> list[Query]:
    """Return every operation of the newest campaign, if the system has a model."""
    return newest_queries(CaseQuery, store, system) if store.model(system) is not None else []


PAGE = FilteredPage(
    path=PATH,
    title="Models",
    query=CaseQuery,
    parts={
        "fit": Plot(
            "Measured and predicted time of each method against message size; below them, the "
            "relative errors."
        ),
        "accuracy": Block("notes"),
        "parameters": Block(),
    },
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"fit": lambda store, choice: choice.errors},
    missing=lambda choice: "" if choice.model else f"{choice.reason}.",
    reported=_reported,
)
