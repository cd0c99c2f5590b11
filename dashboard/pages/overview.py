"""Overview: the review of each measured system, its table's decisions, and its campaigns."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

import pandas as pd
from dash import Dash, html

from dashboard import compared
from dashboard.choice import campaigns_of, cores_text, system_options, systems_of
from dashboard.compared import Step
from dashboard.elements import anchor, data_cell, row_head, table_row
from dashboard.frames import described, rows_of
from dashboard.heatmap import heat_maps
from dashboard.markup import Component
from dashboard.pages import choose, compare, explore, history, table
from dashboard.query import Query, UnmeasuredError
from dashboard.review import CARE, GOOD, OperationGain, SystemReview, judge, mean_gain
from dashboard.snapshot import cached_table, kept
from dashboard.steadiness import Steadiness
from dashboard.units import ratio_text
from dashboard.web import OpenStore
from dashboard.widgets import badge, card, commands, data_table, href, prose
from tuner.domain.operations import FOREIGN
from tuner.domain.tables import Point
from tuner.machine.systems import SIMULATED, VIRTUAL, unreal
from tuner.selection.changes import Shift
from tuner.store.store import Store
from tuner.units import counted

PATH = "/"
_KINDS = {"": "Real machines", VIRTUAL: "Virtual nodes", SIMULATED: "Simulated machines"}
_SHIFTS = 4  # changed operations that are named
_MAP_HINT = (
    "Maps of decisions: colour and marker are the method's, paler the less it gains; numbers are "
    "its speed as a multiple of the default's. Grey: the default; `?`: open, so the default stays; "
    "dashed: waits for a soak; a method without a number: open, taken from other sizes or "
    "layouts; blank: not measured."
)


def age_text(date: str, now: datetime) -> str:
    """Return the age of an ISO 8601 date in the largest unit that fits, or else the date."""
    try:
        seconds = (now - datetime.fromisoformat(date)).total_seconds()
    except ValueError:  # the 30th of February, in a store from elsewhere
        return date
    for unit, length_s in (("day", 86400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length_s)
        if count >= 1:
            return f"{counted(count, unit)} ago"
    return "just now"


class _OverviewPage:
    """The page of all systems; it has no filters."""

    path = PATH
    title = "Overview"

    def check(self, store: Store, search: str) -> None:
        """Check a link: see `Page`."""
        Query.parse(search)

    def layout(self, store: Store, search: str) -> Component:
        """Return the whole page: see `Page`. Raise UnmeasuredError where the store is empty."""
        systems = systems_of(store)
        if systems.empty:
            raise UnmeasuredError("The store is empty: run `switchpoint run`.")
        labels = dict(system_options(systems))
        kinds = groupby(rows_of(systems), _kind)
        groups = [
            (kind, [_system(store, row, labels[row["system"]]) for row in rows])
            for kind, rows in kinds
        ]
        shown: list[Component] = []
        for kind, cards in groups:
            title = html.P(_KINDS[kind], className="kind")
            shown += [title, *cards] if len(groups) > 1 else cards
        hint = html.P(prose(_MAP_HINT), className="hint")
        return html.Div([html.H1("Measured systems"), *shown, hint])

    def reported(self, store: Store, system: str) -> Sequence[Query]:
        """Return nothing: a report begins with the whole page. See `Page`."""
        return ()

    def register(self, app: Dash, open_store: OpenStore) -> None:
        """Add no callbacks: see `Page`."""


PAGE = _OverviewPage()


def _kind(system: dict[str, Any]) -> str:
    return unreal(system["name"], system["cpu_model"])


class _Found(NamedTuple):
    """What the store says of a system.

    measured: its campaigns with methods, the newest first. newest: the steadiness of the newest.
    """

    measured: list[str]
    newest: str
    step: Step | None
    review: SystemReview
    maps: list[Component]
    campaigns: pd.DataFrame
    loads: dict[str, str]


@kept(1024)  # a page asks for all systems in turn, and would miss each of more
def _found(store: Store, system: str, label: str) -> _Found:
    """Return what the store says; cached, as many visitors look at one store."""
    row = described(systems_of(store), system)
    measured = campaigns_of(store, system)
    tuned = cached_table(store, system)
    steadiness = Steadiness.of(store, system, measured[0], {}) if measured else None
    step = compared.newest_step(store, system) if measured else None
    has_loads = not (row["name"].startswith(FOREIGN) or _kind(row) == SIMULATED)
    loads = store.loads(system) if has_loads else {}  # the others record none
    return _Found(
        measured=measured,
        newest=f"Newest campaign: {steadiness.text()}." if steadiness else "",
        step=step,
        review=judge(store, row, tuned, steadiness, step),
        maps=_maps(tuned.points if tuned else [], label),
        campaigns=store.campaigns(system),
        loads={campaign: f"{low:.1f} – {high:.1f}" for campaign, (low, high) in loads.items()},
    )


def _system(store: Store, system: dict[str, Any], label: str) -> Component:
    name = system["system"]
    found = _found(store, name, label)
    facts = (system["mpi_library"], system["cpu_model"], cores_text(system), system["compiler"])
    kind = _kind(system)
    notes = [*([badge(kind)] if kind else []), _facts(facts)]
    return card(
        label,
        html.Div(notes, className="notes"),
        _review(found.review, found.step, name),
        *found.maps,
        html.P(_links(name, found), className="links"),
        html.Details(
            [
                html.Summary("Campaigns"),
                html.P(found.newest, className="hint"),
                _campaigns(found.campaigns, label, found.loads, found.measured),
            ]
        ),
    )


def _facts(facts: Iterable[str]) -> Component:
    return html.Span([html.Span(fact) for fact in facts if fact], className="facts")


def _links(system: str, found: _Found) -> list[Component]:
    links = [
        html.A("Choose a method", href=href(choose.PATH, choose.ChooseQuery(system).search())),
        html.A("Rules and export", href=href(table.PATH, table.TableQuery(system).search())),
    ]
    if found.measured:  # else those pages do not know the system
        times = explore.ExploreQuery(system).search()
        changes = history.HistoryQuery(system).search()
        links += [
            html.A("Explore the times", href=href(explore.PATH, times)),
            html.A("Changes over time", href=href(history.PATH, changes)),
        ]
    step = found.step
    if step is None:
        return links
    before = step.before[step.shifts[0].operation]
    sides = (before.system, before.name, step.campaign.system, step.campaign.name)
    search = compare.CompareQuery(*sides).search()
    return [*links, html.A("Compare with the previous campaign", href=href(compare.PATH, search))]


def _review(review: SystemReview, step: Step | None, system: str) -> Component:
    """Return the answers to the four questions about a system, under its review."""
    certain = [review.settled] if review.settled else []
    todo = review.advise()
    answers = [
        _answer("Can it be trusted?", review.level, review.words, [*review.doubts, *certain]),
        _changed(step),
        _gained(review),
        html.Div(
            [
                html.P("What to do next", className="question"),
                html.Strong(todo.reason),
                commands(f"next-{system}", todo.lines),
            ],
            className="answer-box",
        ),
    ]
    return html.Div(answers, className="review-boxes")


def _answer(question: str, level: str, words: str, details: Iterable[Any]) -> Component:
    """Return a question with its answer; the level is its colour."""
    shown = [html.Li(detail) for detail in details]
    return html.Div(
        [
            html.P(question, className="question"),
            html.Strong(words),
            *([html.Ul(shown)] if shown else []),
        ],
        className=f"answer-box {level}",
    )


def _changed(step: Step | None) -> Component:
    """Return what the newest campaign changed, the largest effect first."""
    question = "What changed?"
    if step is None:
        return _answer(question, "", "Nothing to compare: no case was measured twice", [])
    if not step.changed:
        before = " or ".join(dict.fromkeys(each.name for each in step.before.values()))
        return _answer(question, GOOD, f"No operation changed significantly since {before}", [])
    slower = [shift.operation for shift in step.slower]
    faster = [shift.operation for shift in step.faster]
    words = [f"{', '.join(slower)} slower"] if slower else []
    words += [f"{', '.join(faster)} faster"] if faster else []
    notable = [shift for shift in step.changed if shift.operation in (*slower, *faster)]
    others = [shift for shift in step.changed if shift not in notable]
    details = [_shift_text(shift, step) for shift in notable[:_SHIFTS]]
    if len(notable) > _SHIFTS:
        details.append(f"and {len(notable) - _SHIFTS} more operations")
    if others:
        (details if words else words).append(_unmoved_text(others))
    slowed = any(change.ratio > 1 for shift in others for change in shift.changes)
    level = CARE if slower else "" if slowed else GOOD
    return _answer(question, level, "; ".join(words), details)


def _unmoved_text(shifts: Sequence[Shift]) -> str:
    """Return the operations that changed with about the same mean, and in how many cells."""
    named = [
        f"{shift.operation} ({len(shift.changes)} of {shift.compared} cells)"
        for shift in shifts[:_SHIFTS]
    ]
    if len(shifts) > _SHIFTS:
        named.append(f"{len(shifts) - _SHIFTS} more operations")
    return f"Changed without effect on the mean: {', '.join(named)}"


def _shift_text(shift: Shift, step: Step) -> str:
    """Return the change of an operation, and the campaign and MPI before it."""
    before = step.before[shift.operation]
    library = before.mpi_library
    upgraded = f" ({library})" if library != step.campaign.mpi_library else ""
    cells = f"{len(shift.changes)} of {shift.compared} cells changed"
    ratio = ratio_text(shift.ratio)
    return f"{shift.operation}: {ratio} the time, {cells} since {before.name}{upgraded}"


def _gained(review: SystemReview) -> Component:
    """Return what the table gains over the default; layouts with too many ranks apart."""
    question = "What does the table gain?"
    if not review.settled:
        return _answer(question, "", "Nothing without a table", [])
    details: list[Any] = _gain_texts(review.gains)
    if review.oversubscribed:
        gains = [html.Li(text) for text in _gain_texts(review.oversubscribed)]
        words = f"With more ranks than cores: {_mean_text(review.oversubscribed)}"
        folded = html.Details([html.Summary(words), html.Ul(gains)])
        details.append(folded if gains else words)
    if any(gain.faster for gain in review.gains):
        return _answer(question, GOOD, _mean_text(review.gains), details)
    return _answer(question, "", "Nothing yet: the defaults stay", details)


def _mean_text(gains: Sequence[OperationGain]) -> str:
    if not any(gain.faster for gain in gains):
        return "nothing"
    sizes = sum(gain.sizes for gain in gains)
    return f"{ratio_text(mean_gain(gains))} the default's speed, on average over {sizes} sizes"


def _gain_texts(gains: Iterable[OperationGain]) -> list[str]:
    return [text for gain in gains if (text := _gain_text(gain))]


def _gain_text(gain: OperationGain) -> str:
    """Return the gain of an operation; "" if there is none."""
    texts = []
    if gain.faster:
        texts.append(
            f"{ratio_text(gain.mean)}, at most {ratio_text(gain.most)} "
            f"(faster at {gain.faster} of {gain.sizes} sizes)"
        )
    if gain.waiting:
        texts.append(f"up to {ratio_text(gain.awaited)} after a soak ({gain.waiting} sizes)")
    return f"{gain.operation}: {'; '.join(texts)}" if texts else ""


def _maps(points: Sequence[Point], label: str) -> list[Component]:
    """Return the decisions of a table as heat maps, those with too many ranks apart."""
    shown: list[Component] = []
    for oversubscribed in (False, True):
        found = [point for point in points if point.case.layout.oversubscribed == oversubscribed]
        if not found:
            continue
        more = "more ranks than cores"
        title = f"Decisions with {more}" if oversubscribed else "Decisions of the table"
        shown += [
            html.H3(title, className="h6"),
            heat_maps(found, f"{label}, {more}" if oversubscribed else label),
        ]
    return shown


def _content(campaign: dict[str, Any]) -> str:
    """Return the number of a campaign's samples, or of its executions if it only soaked."""
    samples, executions = campaign["samples"], campaign["executions"]
    return f"{executions:,} soak executions" if executions and not samples else f"{samples:,}"


def _campaigns(
    campaigns: pd.DataFrame, label: str, loads: dict[str, str], explorable: Sequence[str]
) -> Component:
    """Return a system's campaigns, the newest first, and below them those without methods.

    explorable: the campaigns that measured methods; others have only probes or soaks.
    """
    header = ("Campaign", "Started", "Launches", "Samples", "Load before a launch", "Commit")
    now = datetime.now(UTC)
    rows = []
    others = ~campaigns["campaign"].isin(explorable)
    ordered = campaigns.assign(others=others).sort_values(
        ["others", "last_date", "campaign"], ascending=[True, False, False]
    )
    for row in rows_of(ordered):
        cut_off = row["launches"] - row["complete"]
        query = explore.ExploreQuery(row["system"], row["campaign"])
        name = row["campaign"]
        if name in explorable:
            name = anchor(name, href(explore.PATH, query.search()))
        launches = f"{row['launches']}, {cut_off} incomplete" if cut_off else str(row["launches"])
        cells = [
            row_head(name),
            data_cell(age_text(row["first_date"], now), title=row["first_date"]),
            data_cell(launches),
            data_cell(_content(row)),
            data_cell(loads.get(row["campaign"], "")),
            data_cell(html.Code(row["commit"][:12])),
        ]
        rows.append(table_row(cells))
    return data_table(f"Campaigns of {label}, the newest first", header, rows)
