"""`switchpoint check library`: the operations that are slower than they should be."""

from dataclasses import asdict
from pathlib import Path

import click

from tuner.commands.options import database_option, json_option, one_system, system_option
from tuner.commands.printing.lines import say_json
from tuner.errors import SwitchpointError


@click.command()
@system_option()
@click.option("--campaign", metavar="NAME", help="Campaign. [default: (the last measured)]")
@database_option
@json_option
def guidelines(system: str | None, campaign: str | None, database: Path, as_json: bool) -> None:
    """Find collectives slower than their emulation, and smaller messages that take longer."""
    from tuner.commands.printing.console import console
    from tuner.commands.printing.grids import Columns
    from tuner.selection.guidelines import comparable, violations
    from tuner.store.store import Store
    from tuner.units import multiple_text, size_text, us_text

    with Store.open(database, readonly=True) as store:
        name = one_system(store, system)
        measured = store.campaigns_with_cells(name)
        if not measured or (campaign and campaign not in measured):
            where = f"campaign {campaign} of {name}" if campaign else name
            raise SwitchpointError(f"no methods were measured in {where}")
        rows = store.cells(name, campaign=campaign or measured[0]).to_dict("records")
    cells = [{str(key): value for key, value in row.items()} for row in rows]
    found = violations(cells)
    if as_json:
        say_json([asdict(each) | {"ratio": each.ratio} for each in found])
        return
    out = console()
    out.print(
        f"{name}, campaign {campaign or measured[0]}: {len(found)} guideline violations in "
        f"{len(comparable(cells))} cells of several launches, of {len(cells)}"
    )
    grid = Columns("operation", "nodes x ppn", "size", "method", "time", "slower than", "by")
    for each in found:
        grid.add_row(
            *(each.operation, f"{each.nodes} x {each.ppn}", size_text(each.bytes), each.method),
            f"{us_text(each.time_s)} us",
            f"{each.than}: {us_text(each.than_s)} us",
            f"{multiple_text(each.ratio)} x",
        )
    if found:
        out.print(grid)
