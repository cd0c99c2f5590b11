"""`switchpoint compare`: the differences between two campaigns or systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from tuner.commands.options import database_option, json_option, one_system, systems_of
from tuner.commands.printing.lines import say_json
from tuner.errors import SwitchpointError

if TYPE_CHECKING:
    from tuner.store.store import Store


@click.command()
@click.argument("a")
@click.argument("b")
@database_option
@json_option
def compare(a: str, b: str, database: Path, as_json: bool) -> None:
    """Compare A with B, and show the cost of using B's table on A.

    A and B are each a campaign or a system with all its campaigns. Write SYSTEM/CAMPAIGN where
    several systems have a campaign of that name. SYSTEM is an ID or a unique substring of one.
    """
    from tuner.commands.printing.comparison import show_comparison
    from tuner.commands.printing.console import console
    from tuner.selection import tuning
    from tuner.selection.comparison import Subject, document
    from tuner.selection.comparison import compare as compared
    from tuner.store.store import Store

    with Store.open(database, readonly=True) as store:
        keys = [_key(store, name) for name in (a, b)]
        if keys[0] == keys[1]:
            raise SwitchpointError(f"{a} and {b} are the same: there is nothing to compare")
        libraries = store.systems().set_index("system")["mpi_library"]
        one, other = (tuning.compared_side(store, *key) for key in keys)
    for key, side in zip(keys, (one, other), strict=True):
        if not side.times.cells:
            raise SwitchpointError(f"{key} has no measured methods to compare")
    first, second = (
        Subject.of(str(key), str(libraries[key.system]), side)
        for key, side in zip(keys, (one, other), strict=True)
    )
    result = compared(one, other)
    if as_json:
        say_json(document(first, second, result))
        return
    show_comparison(first, second, result, console())


class _Key(NamedTuple):
    """A system, and one of its campaigns unless all are compared."""

    system: str
    campaign: str | None = None

    def __str__(self) -> str:
        return f"{self.system}/{self.campaign}" if self.campaign else self.system


def _key(store: Store, name: str) -> _Key:
    system, slash, campaign = name.rpartition("/")
    measured = store.campaigns(one_system(store, system, "") if slash else None)
    found = measured[measured["campaign"] == campaign]["system"].tolist()
    if len(found) > 1:
        raise SwitchpointError(
            f"several systems have a campaign {name}; give SYSTEM/{name}, "
            f"where SYSTEM is one of {', '.join(found)}"
        )
    if found:
        return _Key(str(found[0]), campaign)
    if slash:
        known = ", ".join(measured["campaign"])
        raise SwitchpointError(f"{system} has no campaign {campaign}; available: {known}")
    systems = systems_of(store)
    if systems and not any(name in system for system in systems):
        known = ", ".join(dict.fromkeys(measured["campaign"]))
        raise SwitchpointError(
            f"no campaign or system {name}; campaigns: {known}; systems: {', '.join(systems)}"
        )
    return _Key(one_system(store, name, ""))
