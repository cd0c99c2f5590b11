"""From a link or the filters to one case, and to what each filter offers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pandas as pd

from dashboard.query import LAYOUT, WORD, Query, choose, parameter
from dashboard.widgets import Option
from tuner.domain.records import NAME, PATTERN_SPEC
from tuner.machine.nodes import launch as virtual
from tuner.store.store import Store

_LAYOUT = ["procs", "nodes", "ppn", "sync", "oversubscribed"]
QueryT = TypeVar("QueryT", bound=Query)


class Filters(Generic[QueryT]):
    """A query that becomes complete, filter after filter, and what each of them offers."""

    def __init__(self, query: QueryT, *, strict: bool) -> None:
        """strict: as for `query.choose`."""
        self.query = query
        self.options: dict[str, list[Option]] = {}
        self._strict = strict

    def choose(self, name: str, offered: Iterable[Option], default: str = "") -> str:
        """The value of a field: that of the query if it is offered, else `default`, or the first.

        Raises UnknownError.
        """
        offered = list(offered)
        values = [*filter(None, [default]), *(value for value, _ in offered)]
        what = name.replace("_", " ")
        value = choose(values, getattr(self.query, name), what, strict=self._strict)
        self.query = replace(self.query, **{name: value})
        self.options[name] = offered
        return value


def named(values: Iterable[str]) -> list[Option]:
    """Options that are called what they are."""
    return [(value, value) for value in values]


@dataclass(frozen=True)
class PatternQuery(Query):
    """Which operation and pattern, measured where: the parameters of every page about a pattern."""

    system: str = parameter("s", NAME, "System")
    campaign: str = parameter("c", NAME, "Campaign")
    operation: str = parameter("o", WORD, "Operation")
    pattern: str = parameter("p", PATTERN_SPEC, "Pattern")


@dataclass(frozen=True)
class CaseQuery(PatternQuery):
    """A pattern on one layout: the parameters of every page about one case."""

    layout: str = parameter("r", LAYOUT, "Processes")


@dataclass(frozen=True)
class PatternChoice:
    """One pattern: its complete query, what each filter offers, its system, its rows of `cases`."""

    query: PatternQuery
    options: dict[str, list[Option]]
    system: dict[str, Any]
    cases: pd.DataFrame

    @property
    def key(self) -> tuple[str, ...]:
        """What the keys of its cells begin with."""
        query = self.query
        return query.system, query.campaign, query.operation, query.pattern


@dataclass(frozen=True)
class CaseChoice:
    """One case: its complete query, what each filter offers, its system, its row of `cases`."""

    query: CaseQuery
    options: dict[str, list[Option]]
    system: dict[str, Any]
    case: dict[str, Any]

    @property
    def key(self) -> tuple[Any, ...]:
        """What the keys of its cells begin with."""
        return tuple(self.case.values())


def choose_pattern(store: Store, query: PatternQuery, *, strict: bool) -> PatternChoice:
    """Complete a query with what the store holds; `strict` as for `query.choose`.

    The defaults are the newest campaign, of the operation if that is asked for, and a pattern that
    was measured without oversubscription.
    """
    systems = explorable(store)
    filters = Filters(query, strict=strict)
    system = filters.choose("system", system_options(systems))
    campaigns = store.campaigns_with_cells(system)
    asked = store.campaigns_with_cells(system, query.operation) if query.operation else campaigns
    campaign = filters.choose("campaign", named(campaigns), default=next(iter(asked), ""))
    cases = store.cases(system, campaign)
    operation = filters.choose("operation", named(operations_of(cases)))
    cases = cases[cases["operation"] == operation]
    pattern = filters.choose("pattern", named(_patterns(cases)))
    return PatternChoice(
        query=filters.query,
        options=filters.options,
        system=systems.set_index("system").loc[system].to_dict(),
        cases=cases[cases["pattern"] == pattern],
    )


def choose_case(store: Store, query: CaseQuery, *, strict: bool) -> CaseChoice:
    """Complete a query with what the store holds; `strict` as for `query.choose`.

    The default layout is one that is not oversubscribed.
    """
    chosen = choose_pattern(store, query, strict=strict)
    layouts = layout_options(chosen.cases)
    layout = choose([value for value, _ in layouts], query.layout, "layout", strict=strict)
    return CaseChoice(
        query=replace(chosen.query, layout=layout),
        options=chosen.options | {"layout": layouts},
        system=chosen.system,
        case=chosen.cases[layout_keys(chosen.cases) == layout].to_dict("records")[0],
    )


def unreal(name: str, cpu_model: str) -> str:
    """What a system is when it is no machine as it stands: `simulated`, `virtual nodes`, or ""."""
    if cpu_model == "simulated":
        return "simulated"
    return "virtual nodes" if "+" in name or name.startswith(f"{virtual.SYSTEM}:") else ""


def newest_first(systems: pd.DataFrame) -> pd.DataFrame:
    """The systems by their last launch, real ones first: the first is every page's default."""
    kinds = [bool(unreal(*row)) for row in zip(systems["name"], systems["cpu_model"], strict=True)]
    systems = systems.assign(unreal=kinds)
    order = systems.sort_values(["unreal", "last_date", "system"], ascending=[True, False, True])
    return order.drop(columns="unreal")


def explorable(store: Store) -> pd.DataFrame:
    """The systems that measured methods, `newest_first`; others have probes alone."""
    systems = newest_first(store.systems())
    return systems[systems["system"].isin(store.systems_with_cells())]


def system_options(systems: pd.DataFrame) -> list[Option]:
    """The systems by name, environment and what is unreal.

    Where that is not enough, by the version of MPI too, by cores, and at last by id.
    """
    names = systems["name"] + ", " + systems["environment"]
    alike = names.duplicated(keep=False)
    versions = systems["mpi_library"].str.extract(_VERSION, expand=False).fillna("")
    names = names.mask(alike, names + " " + versions)
    kinds = map(unreal, systems["name"], systems["cpu_model"])
    names += pd.Series([f" ({kind})" if kind else "" for kind in kinds], names.index, dtype=object)
    for more in (", " + systems["cores"].astype(str) + " cores", " (" + systems["system"] + ")"):
        names = names.mask(names.duplicated(keep=False), names + more)
    return list(zip(systems["system"], names, strict=True))


_VERSION = r"(\d+(?:\.\d+)+)"
_VERSION_OF_NAME = r"[-_/@.]?\d+(?:\.\d+)*"


def upgrades(systems: pd.DataFrame, system: str) -> pd.DataFrame:
    """The systems of the same machine and environment, whatever its versions: one with upgrades."""
    families = systems["environment"].str.replace(_VERSION_OF_NAME, "", regex=True)
    own = systems["system"] == system
    return systems[
        (systems["name"] == systems.loc[own, "name"].iloc[0]) & (families == families[own].iloc[0])
    ]


def before_upgrade(systems: pd.DataFrame, system: str) -> list[str]:
    """What was measured before the system, of other versions on its machine, the last first."""
    alike = upgrades(systems, system).set_index("system")
    before = alike[alike["first_date"] < alike.loc[system, "first_date"]]
    return before.sort_values("last_date", ascending=False).index.tolist()


def newest_operations(store: Store, system: str) -> tuple[str, list[str]]:
    """The newest campaign of a system that measured methods, "" without one, and what of."""
    campaign = next(iter(store.campaigns_with_cells(system)), "")
    return campaign, operations_of(store.cases(system, campaign))


def operations_of(rows: pd.DataFrame) -> list[str]:
    """The operations of cases or decisions, exchanges first: every page's default."""
    return sorted(rows["operation"].unique(), key=lambda name: (name != "exchange", name))


def _patterns(cases: pd.DataFrame) -> list[str]:
    """The patterns, those measured without oversubscription first."""
    alone = set(cases.loc[~cases["oversubscribed"], "pattern"])
    return sorted(cases["pattern"].unique(), key=lambda pattern: (pattern not in alone, pattern))


def layout_key(procs: int, nodes: int, ppn: int, sync: str, oversubscribed: bool) -> str:
    """A layout as a link writes it: `8@2x4-window`, marked when oversubscribed."""
    return f"{procs}@{nodes}x{ppn}-{sync}{'-over' if oversubscribed else ''}"


def layout_keys(cases: pd.DataFrame) -> pd.Series:
    """The layout of each case."""
    columns = zip(*(cases[name] for name in _LAYOUT), strict=True)
    return pd.Series([layout_key(*row) for row in columns], index=cases.index, dtype=object)


def layout_text(nodes: int, ppn: int, *, oversubscribed: bool) -> str:
    """Nodes × processes on each."""
    text = f"{nodes} node{'s' if nodes != 1 else ''} × {ppn}"
    return f"{text}, oversubscribed" if oversubscribed else text


def layout_options(cases: pd.DataFrame) -> list[Option]:
    """The layouts of one pattern."""
    several_schemes = cases["sync"].nunique() > 1
    return options_of(cases, layout_keys(cases), with_sync=several_schemes)


def options_of(rows: pd.DataFrame, keys: Sequence[str], *, with_sync: bool = False) -> list[Option]:
    """The layouts of rows by their keys: most processes first, the oversubscribed ones last."""
    rows = rows[_LAYOUT if with_sync else [name for name in _LAYOUT if name != "sync"]]
    rows = rows.assign(key=keys).drop_duplicates()
    rows = rows.sort_values(["oversubscribed", "procs", "nodes"], ascending=[True, False, True])
    pairs: list[Option] = []
    for row in rows.drop_duplicates("key").itertuples():
        text = layout_text(row.nodes, row.ppn, oversubscribed=row.oversubscribed)
        scheme = f", {row.sync} sync" if with_sync else ""
        pairs.append((row.key, f"{row.procs}: {text}{scheme}"))
    return pairs
