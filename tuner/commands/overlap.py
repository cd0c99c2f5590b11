"""`switchpoint show overlap`."""

from __future__ import annotations

from pathlib import Path

import click

from tuner.commands.options import one_system, systems_of
from tuner.errors import SwitchpointError


def show_overlap(system: str | None, database: Path, as_json: bool) -> None:
    """What `switchpoint show overlap` prints."""
    from tuner import breakdowns, fitting
    from tuner.show import overlap as showing
    from tuner.show.results import console
    from tuner.store import Store

    with Store.open(database, readonly=True) as store:
        names = [one_system(store, system)] if system else systems_of(store)
        measured = {name: breakdowns.last_measured(store, name) for name in names}
        measured = {name: rows for name, rows in measured.items() if not rows.empty}
        models = {
            name: fitting.fitted(store, name) if store.model(name) else None for name in measured
        }
    if as_json:
        click.echo(showing.overlap_json(measured, models))
        return
    if not measured:
        raise SwitchpointError(
            "no overlap was measured; measure some: `switchpoint run -- --tag=overlap`"
        )
    for name, rows in measured.items():
        showing.show_overlap(name, rows, models[name], console())
