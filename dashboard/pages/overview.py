"""Overview: the measured systems, their dates and MPIs, and the methods chosen on them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
import pandas as pd
from dash import Dash, html
from dash.development.base_component import Component

from dashboard import compared, rules
from dashboard.choice import layout_text, newest_first, system_options, unreal
from dashboard.compared import Step
from dashboard.elements import anchor, data_cell, row_head, table_row
from dashboard.figures.ribbons import ribbons
from dashboard.pages import choose, compare, explore, history, table
from dashboard.query import Query
from dashboard.units import ratio_text, share_text, time_text
from dashboard.web import OpenStore
from dashboard.widgets import badge, card, data_table, graph, href, key
from tuner.domain.records import Launch
from tuner.domain.tables import OPEN, UNSOAKED
from tuner.selection import trust
from tuner.selection.changes import Shift
from tuner.store.store import Store

PATH = "/"


def age_text(date: str, now: datetime) -> str:
    """Return the age of an ISO 8601 date, in the largest unit that fits."""
    seconds = (now - datetime.fromisoformat(date)).total_seconds()
    for unit, length_s in (("day", 86400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length_s)
        if count >= 1:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


class _OverviewPage:
    """The page of all systems; it has no filters."""

    path = PATH
    title = "Overview"

    def check(self, store: Store, search: str) -> None:
        """Check a link: see `Page`."""
        Query.parse(search)

    def layout(self, store: Store, search: str) -> Component:
        """Return the whole page: see `Page`."""
        systems = newest_first(store.systems())
        labels = dict(system_options(systems))
        launches = list(store.launches().values())
        cards = [
            _system(store, row, labels[row["system"]], launches)
            for row in systems.to_dict("records")
        ]
        return html.Div([html.H1("Measured systems"), *cards])

    def reported(self, store: Store, system: str) -> Sequence[Query]:
        """Return nothing: a report begins with the whole page. See `Page`."""
        return ()

    def register(self, app: Dash, open_store: OpenStore) -> None:
        """Add no callbacks: see `Page`."""


PAGE = _OverviewPage()


def _system(store: Store, system: dict[str, Any], label: str, launches: list[Launch]) -> Component:
    name = system["system"]
    campaigns = store.campaigns(name)
    chosen = rules.of_table(store, name)
    facts = (
        system["mpi_library"],
        system["cpu_model"],
        f"{system['cores']} cores",
        system["compiler"],
    )
    kind = unreal(system["name"], system["cpu_model"])
    measured = store.campaigns_with_cells(name)
    newest = measured[0] if measured else ""
    steadiness = _Steadiness.of(store.steadiness(name, newest)) if newest else None
    step = compared.newest_step(store, name) if newest else None
    tuned = store.table(name)
    doubts = trust.notes(tuned.provenance) if tuned else []
    links = (
        html.A("Rules and export", href=href(table.PATH, table.TableQuery(name).search())),
        html.A("Choose a method", href=href(choose.PATH, choose.ChooseQuery(name).search())),
        html.A("Changes over time", href=href(history.PATH, history.HistoryQuery(name).search())),
        *_compare_links(step),
        html.A("Explore the times", href=href(explore.PATH, explore.ExploreQuery(name).search())),
    )
    return card(
        label,
        html.Div(
            [
                *([badge(kind)] if kind else []),
                *_marks(store.cases(name, newest), chosen),
                *(steadiness.marks() if steadiness else []),
                *map(badge, doubts),
                html.Span([html.Span(fact) for fact in facts], className="facts"),
            ],
            className="notes",
        ),
        *_changed(step),
        _choice(chosen, name, label) if newest else html.P("No methods were measured."),
        html.P(links, className="links"),
        *(
            [html.P(f"Newest campaign: {steadiness.text()}.", className="hint")]
            if steadiness
            else []
        ),
        _campaigns(campaigns, label, _loads(launches, name), set(measured)),
    )


_OTHERS = 3  # operations named beside the one that changed most


def _changed(step: Step | None) -> list[Component]:
    """Return the changes in the newest campaign by operation, the largest first."""
    if step is None:
        return []
    if not step.changed:
        before = " or ".join(dict.fromkeys(each.name for each in step.before.values()))
        text = f"No operation changed significantly since {before}."
        return [html.P(text, className="hint")]
    first, *others = step.changed
    before = step.before[first.operation]
    since = f" since {before.name}"
    if before.mpi_library != step.campaign.mpi_library:
        since += f" ({before.mpi_library})"
    since += f": {ratio_text(first.ratio)} the time on average, {_cells_text(first)}."
    texts = [f"{shift.operation} ({_cells_text(shift)})" for shift in others[:_OTHERS]]
    if len(others) > _OTHERS:
        texts.append(f"{len(others) - _OTHERS} more")
    also = f" Smaller changes: {', '.join(texts)}." if texts else ""
    return [html.P([html.Strong(f"{first.operation} changed most"), since, also])]


def _cells_text(shift: Shift) -> str:
    return f"{len(shift.changes)} of {shift.compared} cells"


def _compare_links(step: Step | None) -> list[Component]:
    """Return the link that compares with the campaign before the largest change."""
    if step is None:
        return []
    before = step.before[step.shifts[0].operation]
    sides = (before.system, before.name, step.campaign.system, step.campaign.name)
    search = compare.CompareQuery(*sides).search()
    return [html.A("Compare with the previous campaign", href=href(compare.PATH, search))]


@dataclass(frozen=True)
class _Steadiness:
    """Signs that other work disturbed a campaign; shares are of all samples.

    canaries_s: by layout. slowest: the slowest canary of a cell, as a multiple of the median of its
    operation on its layout, because canaries of different layouts are not comparable.
    """

    canaries_s: dict[str, float]
    slowest: float
    above_2_medians: float
    late: float

    @classmethod
    def of(cls, cells: pd.DataFrame) -> Self:
        """Create it from `Store.steadiness`, at least one cell."""
        shares = [float(np.average(cells[name], weights=cells["n"])) for name in _SHARES]
        played = cells[cells["canary_median_s"] > 0]  # one process has no partner
        layouts = played.groupby(["nodes", "ppn"], sort=False)["canary_median_s"].median()
        canaries_s = {
            layout_text(nodes, ppn, oversubscribed=False): float(median_s)
            for (nodes, ppn), median_s in layouts.items()
        }
        usual = played.groupby(_PLACE)["canary_median_s"].transform("median")
        return cls(canaries_s, float((played["canary_median_s"] / usual).max()), *shares)

    def marks(self) -> list[Component]:
        """Return the warnings."""
        return explore.unsteadiness(self.slowest)

    def text(self) -> str:
        """Return all figures as text, for the reader to judge."""
        texts = [f"{time_text(each_s)} on {layout}" for layout, each_s in self.canaries_s.items()]
        canary = f"canary (8-byte ping-pong) {', '.join(texts)}; " if texts else ""
        if texts:
            canary += f"at most {ratio_text(self.slowest)} the usual value in any cell; "
        return (
            f"{canary}{share_text(self.above_2_medians)} of the samples exceed twice their median, "
            f"{share_text(self.late)} have a late rank"
        )


_SHARES = ("above_2_medians", "late")
_PLACE = ["operation", "procs", "nodes", "ppn", "sync", "oversubscribed"]


def _choice(chosen: pd.DataFrame, system: str, label: str) -> Component:
    """Return the system's table at a glance."""
    if chosen.empty:
        return html.P(["No table yet: run ", html.Code("switchpoint tune"), "."])
    shown = rules.of_largest_layouts(chosen)
    rows = shown.assign(row=[rules.case_text(rule) for rule in shown.itertuples()])
    of_all = table.TableQuery(system, table.ALL).search()
    figure = graph(
        f"overview-{system}",
        ribbons(rows, rules.size_range(shown)),
        f"Method that the table of {label} selects, by message size.",
        href(f"{table.PATH}/rules.csv", of_all),
    )
    drawn = [figure, key(shown["method"])]
    if len(shown) == len(chosen):
        return html.Div(drawn)
    link = anchor(f"all {len(chosen)} rules", href(table.PATH, of_all))
    return html.Div(
        [
            html.P(
                ["This shows the largest layout of each operation; see ", link, "."],
                className="hint",
            ),
            *drawn,
        ]
    )


def _marks(cases: pd.DataFrame, chosen: pd.DataFrame) -> list[Component]:
    """Return warnings about the newest campaign and the table."""
    marks = []
    over = sorted(cases.loc[cases["oversubscribed"], "procs"].unique())
    if over:
        marks.append(badge(f"oversubscribed at {' and '.join(map(str, over))} ranks"))
    for status, text in ((OPEN, "open"), (UNSOAKED, "waiting for a soak")):
        if count := int((chosen["status"] == status).sum()):
            marks.append(badge(f"{count} of {len(chosen)} rules {text}", "secondary"))
    return marks


def _loads(launches: Iterable[Launch], system: str) -> dict[str, str]:
    """Return the range of load averages (1 minute) at the start of launches, by campaign."""
    loads = defaultdict(list)
    for launch in launches:
        if launch.system == system:
            loads[launch.campaign].append(json.loads(launch.header)["load"][0])
    return {name: f"{min(values):.1f} – {max(values):.1f}" for name, values in loads.items()}


def _content(campaign: dict[str, Any]) -> str:
    """Return the number of a campaign's samples, or of its executions if it only soaked."""
    samples, executions = campaign["samples"], campaign["executions"]
    return f"{executions:,} soak executions" if executions and not samples else f"{samples:,}"


def _campaigns(
    campaigns: pd.DataFrame, label: str, loads: dict[str, str], explorable: set[str]
) -> Component:
    """Return a system's campaigns, the newest first; those not in `explorable` have only probes."""
    header = ("Campaign", "Started", "Launches", "Samples", "Load before a launch", "Commit")
    now = datetime.now(UTC)
    rows = []
    for row in campaigns.sort_values("campaign", ascending=False).to_dict("records"):
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
