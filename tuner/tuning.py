"""Makes the table of a system from its cells, and stores it."""

from __future__ import annotations

from dataclasses import fields

from tuner import __version__, trust
from tuner.errors import SwitchpointError
from tuner.records import Cell, Provenance, System, Table
from tuner.selection import select
from tuner.store import Store


class TuningError(SwitchpointError):
    """No table can be made; the text says why and what to do."""


def tune(store: Store, system: str, campaigns: list[str] | None = None) -> Table:
    """Chooses the methods of one system and stores its table in the place of the earlier one.

    All campaigns count, or only those named. The same cells always give the same table. Raises
    TuningError when there is nothing to choose from, StoreError.
    """
    described = store.systems().set_index("system")
    if system not in described.index:
        raise TuningError(f"no system {system} in {store.path}; `switchpoint show` lists them")
    measured = store.campaigns(system).set_index("campaign")
    missing = sorted(set(campaigns or ()) - set(measured.index))
    if missing:
        raise TuningError(
            f"no campaign {missing[0]} of {system}; there are {', '.join(measured.index)}"
        )
    names = sorted(campaigns or measured.index)
    cells: list[Cell] = []
    for name in names:
        cells += store.contents((system, name))
    rules, points = select(cells)
    used = measured.loc[names]
    newest = used.sort_values("last_date").iloc[-1]
    description = described.loc[system].to_dict()
    provenance = Provenance(
        system=system,
        **{field.name: description[field.name] for field in fields(System)},
        campaigns=names,
        launches=int(used["launches"].sum()),
        samples=int(used["samples"].sum()),
        commit=str(newest["commit"]),
        date=str(newest["last_date"]),
        version=__version__,
        disturbed=trust.disturbed(cells),
    )
    table = Table(provenance, rules, points)
    with store.transaction():
        store.put_table(table)
    return table


def tune_missing(store: Store) -> None:
    """Makes the tables that a rebuilt store lacks. Raises StoreError."""
    for system in store.untuned():
        tune(store, system)
