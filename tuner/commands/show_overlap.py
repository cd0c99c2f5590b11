"""`switchpoint show overlap`, and `predict --op overlap`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.commands.options import chosen_systems, database_option, json_option, system_option
from tuner.commands.printing.lines import say_json
from tuner.errors import SwitchpointError
from tuner.units import parse_number

if TYPE_CHECKING:
    from tuner.models.system import SystemModel


@click.command()
@system_option("Show only this system: ID or unique substring.")
@database_option
@json_option
def overlap(system: str | None, database: Path, as_json: bool) -> None:
    """Show the time breakdown of overlapped communication, measured and predicted."""
    from tuner.commands.printing import overlap as showing
    from tuner.commands.printing.console import console
    from tuner.models import breakdowns, fitting
    from tuner.store.store import Store

    with Store.open(database, readonly=True) as store:
        names = chosen_systems(store, system)
        measured = {name: breakdowns.last_measured(store, name) for name in names}
        measured = {name: rows for name, rows in measured.items() if not rows.empty}
        models = {
            name: fitting.fitted(store, name) if store.model(name) else None for name in measured
        }
    if as_json:
        say_json(showing.overlap_document(measured, models))
        return
    if not measured:
        raise SwitchpointError("no overlap data; run `switchpoint run -- --tag=overlap` first")
    for name, rows in measured.items():
        showing.show_overlap(name, rows, models[name], console())


def computations(context: click.Context, parameter: click.Parameter, value: str) -> list[float]:
    """Return a comma-separated list of microseconds as increasing seconds."""
    try:
        found = [parse_number(word) * 1e-6 for word in value.split(",")]
    except ValueError:
        found = [-1.0]
    if not all(0 <= each <= 1e6 for each in found):
        raise click.BadParameter(f"{value} is not a comma-separated list of microseconds")
    return sorted(set(found))


def predict_overlap(
    model: SystemModel,
    pattern: str,
    procs: int,
    ppn: int,
    methods: Sequence[str],
    computations_s: Sequence[float],
    as_json: bool,
) -> None:
    """Print the output of `switchpoint predict --op overlap`."""
    from tuner.commands.printing import overlap as showing
    from tuner.commands.printing.console import console
    from tuner.models import breakdowns
    from tuner.models.parameter import ModelError

    if procs < 2:
        raise click.UsageError("overlap needs at least 2 processes")
    known = breakdowns.methods(pattern)
    rows = []
    for computation_s in computations_s:
        for method in methods or known:
            found = breakdowns.predicted(model, pattern, procs, ppn, method, computation_s)
            if found is None or (methods and method.partition(":")[0] not in _families(known)):
                raise ModelError(f"{method} has no equation; available: {', '.join(known)}")
            rows.append((method, found))
    if as_json:
        say_json(showing.equations_document(rows))
        return
    showing.show_equations(rows, console())


def _families(methods: Sequence[str]) -> set[str]:
    return {method.partition(":")[0] for method in methods} | {"chunks"}
