"""Choices: a link or filters completed to one case, and the options of each filter."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pandas as pd

from dashboard.frames import described, rows_of
from dashboard.query import LAYOUT, WORD, PageQuery, Query, choose, parameter
from dashboard.snapshot import kept
from dashboard.widgets import Option
from tuner.domain.cases import COLD, STAGGERED, Layout
from tuner.domain.operations import FOREIGN
from tuner.domain.records import NAME, PATTERN_SPEC
from tuner.machine.systems import SIMULATED, VIRTUAL, unreal
from tuner.store.store import Store
from tuner.units import counted, size_text

_UNUSUAL = {COLD.strip("-"): "cold caches", STAGGERED.strip("-"): "ranks apart"}
"""Parts of `sync` after the scheme, in words."""

QueryT = TypeVar("QueryT", bound=Query)


class Filters(Generic[QueryT]):
    """A query that is completed filter by filter, and the options of each filter."""

    def __init__(self, query: QueryT, *, strict: bool) -> None:
        """Start with a query; `strict` as for `query.choose`."""
        self.query = query
        self.options: dict[str, list[Option]] = {}
        self._strict = strict

    def choose(self, name: str, offered: Iterable[Option], default: str = "") -> str:
        """Return the value of a field: the query's if it is offered, else `default`, or the first.

        Raise UnknownError.
        """
        offered = list(offered)
        values = [*filter(None, [default]), *(value for value, _ in offered)]
        what = name.replace("_", " ")
        value = choose(values, getattr(self.query, name), what, strict=self._strict)
        self.query = replace(self.query, **{name: value})
        self.options[name] = offered
        return value


def named(values: Iterable[str]) -> list[Option]:
    """Return options whose labels are their values."""
    return [(value, value) for value in values]


@dataclass(frozen=True)
class PatternQuery(PageQuery):
    """An operation and pattern in a campaign: the parameters of every page about a pattern."""

    system: str = parameter("s", NAME, "System")
    campaign: str = parameter("c", NAME, "Campaign")
    operation: str = parameter("o", WORD, "Operation")
    pattern: str = parameter("p", PATTERN_SPEC, "Pattern")


@dataclass(frozen=True)
class CaseQuery(PatternQuery):
    """A pattern on one layout: the parameters of every page about one case."""

    layout: str = parameter("r", LAYOUT, "Processes")


PatternQueryT = TypeVar("PatternQueryT", bound=PatternQuery)
CaseQueryT = TypeVar("CaseQueryT", bound=CaseQuery)


@dataclass(frozen=True)
class PatternChoice(Generic[PatternQueryT]):
    """One pattern: its complete query, each filter's options, its system, its rows of `cases`."""

    query: PatternQueryT
    options: dict[str, list[Option]]
    system: dict[str, Any]
    cases: pd.DataFrame

    @property
    def where(self) -> dict[str, Any]:
        """Return the fields that the keys of its cells share."""
        names = ("system", "campaign", "operation", "pattern")
        return {name: getattr(self.query, name) for name in names}


@dataclass(frozen=True)
class CaseChoice(Generic[CaseQueryT]):
    """One case: its complete query, each filter's options, its system, its row of `cases`."""

    query: CaseQueryT
    options: dict[str, list[Option]]
    system: dict[str, Any]
    case: dict[str, Any]


def choose_pattern(
    store: Store, query: PatternQueryT, *, strict: bool
) -> PatternChoice[PatternQueryT]:
    """Complete a query with what the store holds; `strict` as for `query.choose`.

    The defaults are the newest campaign (if an operation is given, the newest that measured it),
    and a pattern that was measured without oversubscription.
    """
    filters, system, cases = _measured(store, query, strict=strict)
    cases = _of_pattern(filters, cases)
    return PatternChoice(filters.query, filters.options, system, cases)


def choose_case(store: Store, query: CaseQueryT, *, strict: bool) -> CaseChoice[CaseQueryT]:
    """Complete a query with what the store holds; `strict` as for `query.choose`.

    The default layout is one that is not oversubscribed.
    """
    filters, system, cases = _measured(store, query, strict=strict)
    case = case_of(filters, cases)
    return CaseChoice(filters.query, filters.options, system, case)


def case_of(filters: Filters[Any], cases: pd.DataFrame) -> dict[str, Any]:
    """Choose operation, pattern and layout among rows of `cases`; return the first such row."""
    cases = _of_pattern(filters, cases)
    layout = filters.choose("layout", layout_options(cases))
    return rows_of(cases[layout_keys(cases) == layout])[0]


def _measured(
    store: Store, query: PatternQueryT, *, strict: bool
) -> tuple[Filters[PatternQueryT], dict[str, Any], pd.DataFrame]:
    """Return filters with a system and a campaign, the system, and the campaign's cases."""
    systems = explorable(store)
    filters = Filters(query, strict=strict)
    system = filters.choose("system", system_options(systems))
    campaigns = campaigns_of(store, system)
    asked = campaigns_of(store, system, query.operation) if query.operation else campaigns
    campaign = filters.choose("campaign", named(campaigns), default=next(iter(asked), ""))
    return filters, described(systems, system), cases_of(store, system, campaign)


def _of_pattern(filters: Filters[Any], cases: pd.DataFrame) -> pd.DataFrame:
    operation = filters.choose("operation", named(operations_of(cases)))
    cases = cases[cases["operation"] == operation]
    pattern = filters.choose("pattern", named(_patterns(cases)))
    return cases[cases["pattern"] == pattern]


def size_options(cells: pd.DataFrame) -> list[Option]:
    """Return the `--sizes` values of the cells of an operation, by the mean message size."""
    return [(str(size), _size_label(rows)) for size, rows in cells.groupby("size_bytes")]


def _size_label(rows: pd.DataFrame) -> str:
    """Return the mean message size, with the `--sizes` value if that is the size of an item.

    Return only that where patterns differ in the mean.
    """
    size, means = int(rows["size_bytes"].iloc[0]), sorted({*rows["bytes"].tolist()})
    of_items = f"{size_text(size)} per item"
    if rows["operation"].iloc[0] == "spmv":
        of_items = counted(size // 8, "vector")
    elif means == [size]:
        return size_text(size)
    return f"{size_text(means[0])} ({of_items})" if len(means) == 1 else of_items


def newest_first(systems: pd.DataFrame) -> pd.DataFrame:
    """Return the systems, real ones first and simulated ones last, by last launch.

    The first is every page's default.
    """
    kinds = [unreal(*row) for row in zip(systems["name"], systems["cpu_model"], strict=True)]
    ranks = [("", VIRTUAL, SIMULATED).index(kind) for kind in kinds]
    systems = systems.assign(unreal=ranks)
    order = systems.sort_values(["unreal", "last_date", "system"], ascending=[True, False, True])
    return order.drop(columns="unreal")


@kept(4)
def systems_of(store: Store) -> pd.DataFrame:
    """Return the systems of a store, `newest_first`."""
    return newest_first(store.systems())


@kept(4)
def explorable(store: Store) -> pd.DataFrame:
    """Return the systems with measured methods, `newest_first`; the others have only probes."""
    systems = systems_of(store)
    return systems[systems["system"].isin(store.systems_with("cell"))]


@kept(256)
def campaigns_of(store: Store, system: str, operation: str | None = None) -> list[str]:
    """Return a system's campaigns that measured an operation, or any methods, newest first."""
    return store.campaigns_with_cells(system, operation)


@kept(256)
def cases_of(store: Store, system: str, campaign: str) -> pd.DataFrame:
    """Return one row for each case of a campaign, as `Store.cases` does."""
    return store.cases(system, campaign)


def system_options(systems: pd.DataFrame) -> list[Option]:
    """Return the systems as options, labelled by name, environment, and kind if unreal.

    Equal labels are extended by the version of MPI, then by the cores, and finally by the id.
    """
    rows = rows_of(systems)
    versions = [_VERSION.search(row["mpi_library"]) for row in rows]
    labels = _distinct(
        [f"{row['name']}, {row['environment']}" for row in rows],
        [f" {version[0]}" if version else "" for version in versions],
    )
    kinds = (unreal(row["name"], row["cpu_model"]) for row in rows)
    pairs = zip(labels, kinds, strict=True)
    labels = [f"{label} ({kind})" if kind else label for label, kind in pairs]
    cores = [cores_text(row) for row in rows]
    labels = _distinct(labels, [f", {each}" if each else "" for each in cores])
    labels = _distinct(labels, [f" ({row['system']})" for row in rows])
    return list(zip(systems["system"], labels, strict=True))


def _distinct(labels: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the labels, equal ones extended by `more`."""
    count = Counter(labels)
    pairs = zip(labels, more, strict=True)
    return [label + its if count[label] > 1 else label for label, its in pairs]


def cores_text(system: dict[str, Any]) -> str:
    """Return the number of a system's cores in words; "" for PICO's, where it is not recorded."""
    if system["name"].startswith(FOREIGN):
        return ""
    return counted(system["cores"], "core")


_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")
_VERSION_OF_NAME = r"[-_/@.]?[0-9]+(?:\.[0-9]+)*"


def upgrades(systems: pd.DataFrame, system: str) -> pd.DataFrame:
    """Return the systems of the same machine and environment in any version, including this one.

    Machines may have one name, as `local` has on each: they differ in their processors.
    """
    families = [re.sub(_VERSION_OF_NAME, "", name) for name in systems["environment"]]
    described = (systems[name] for name in ("name", "cpu_model", "cores"))
    machines = dict(zip(systems["system"], zip(*described, families, strict=True), strict=True))
    return systems[[its == machines[system] for its in machines.values()]]


def version_of(mpi_library: str) -> tuple[int, ...]:
    """Return the version numbers in what an MPI library says of itself; () if it has none."""
    found = _VERSION.search(mpi_library)
    return tuple(map(int, found[0].split("."))) if found else ()


def before_upgrade(systems: pd.DataFrame, system: str) -> list[str]:
    """Return the systems that an upgrade to this one replaced, the last first."""
    alike = upgrades(systems, system).set_index("system")
    before = alike[alike["first_date"] < alike.loc[system, "first_date"]]
    return before.sort_values("last_date", ascending=False).index.tolist()


def newest_operations(store: Store, system: str) -> tuple[str, list[str]]:
    """Return a system's newest campaign that measured methods, or "", and its operations."""
    campaign = next(iter(campaigns_of(store, system)), "")
    return campaign, operations_of(cases_of(store, system, campaign))


def newest_queries(
    kind: Callable[[str, str, str], Query], store: Store, system: str
) -> list[Query]:
    """Return a query of such a kind for every operation of the newest campaign."""
    campaign, operations = newest_operations(store, system)
    return [kind(system, campaign, operation) for operation in operations]


def operations_of(rows: pd.DataFrame) -> list[str]:
    """Return the operations of cases or decisions, exchanges first: every page's default."""
    return sorted(rows["operation"].unique(), key=lambda name: (name != "exchange", name))


def _patterns(cases: pd.DataFrame) -> list[str]:
    """Return the patterns, those measured without oversubscription first."""
    alone = set(cases.loc[~cases["oversubscribed"], "pattern"])
    return sorted(cases["pattern"].unique(), key=lambda pattern: (pattern not in alone, pattern))


def layout_key(layout: Layout, sync: str = "") -> str:
    """Return a layout in the form of links: `8@2x4-window`, with `-over` if oversubscribed."""
    marks = [sync, "over" if layout.oversubscribed else ""]
    return "-".join(filter(None, [f"{layout.procs}@{layout.nodes}x{layout.ppn}", *marks]))


def layout_keys(cases: pd.DataFrame) -> pd.Series:
    """Return the layout key of each case."""
    layouts = cases[list(Layout._fields)].itertuples(index=False, name=None)
    keys = map(layout_key, map(Layout._make, layouts), cases["sync"])
    return pd.Series(list(keys), index=cases.index, dtype=object)


def layout_text(nodes: int, ppn: int, *, oversubscribed: bool) -> str:
    """Return the text of a layout: nodes × processes on each."""
    text = f"{counted(nodes, 'node')} × {ppn}"
    return f"{text}, oversubscribed" if oversubscribed else text


def layout_options(cases: pd.DataFrame) -> list[Option]:
    """Return the layouts of one pattern as options."""
    several_schemes = cases["sync"].nunique() > 1
    return options_of(cases, layout_keys(cases), with_sync=several_schemes)


def sync_text(sync: str, *, with_scheme: bool = True) -> str:
    """Return what a layout's text adds of `sync`: its scheme, and what is unusual."""
    scheme, *others = sync.split("-")
    unusual = "".join(f", {words}" for part, words in _UNUSUAL.items() if part in others)
    return f", {scheme} sync" * with_scheme + unusual


def options_of(
    rows: pd.DataFrame, keys: Sequence[str] | pd.Series, *, with_sync: bool = False
) -> list[Option]:
    """Return the layouts of rows as options: most processes first, the oversubscribed ones last."""
    rows = rows[[*Layout._fields, *["sync"] * with_sync]]
    rows = rows.assign(key=keys).drop_duplicates()
    by = ["oversubscribed", "procs", "nodes", *["sync"] * with_sync]
    rows = rows.sort_values(by, ascending=[name != "procs" for name in by])
    several = with_sync and rows["sync"].str.partition("-")[0].nunique() > 1
    pairs: list[Option] = []
    for row in rows_of(rows.drop_duplicates("key")):
        text = layout_text(row["nodes"], row["ppn"], oversubscribed=row["oversubscribed"])
        if with_sync:
            text += sync_text(row["sync"], with_scheme=several)
        pairs.append((row["key"], f"{row['procs']}: {text}"))
    return pairs
