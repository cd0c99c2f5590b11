"""`switchpoint network`: the network parameters of simulated machines."""

from pathlib import Path

import click

from tuner.commands.naming import Commands
from tuner.commands.options import database_option, json_option, one_system, system_option
from tuner.commands.printing.lines import say, say_json
from tuner.units import us_text


@click.group(cls=Commands)
def network() -> None:
    """List and create networks of simulated machines."""


@network.command("list")
@json_option
def show(as_json: bool) -> None:
    """List networks with their parameters and sources."""
    import msgspec

    from tuner.machine.simulation import networks

    found = networks.published() | {name: networks.network(name) for name in networks.kept()}
    if as_json:
        say_json(msgspec.to_builtins(found))
        return
    for name, each in found.items():
        say(f"{name}: {each.source}")
        for protocol in each.protocols:
            say(
                f"  from {protocol.from_bytes} B: overhead {us_text(protocol.overhead_s)} us, "
                f"latency {us_text(protocol.latency_s)} us, {protocol.bytes_per_s / 1e9:.3g} GB/s"
            )


@network.command()
@click.argument("name")
@system_option("System whose parameters are used; required if there are several.")
@database_option
def create(name: str, system: str | None, database: Path) -> None:
    """Create the network NAME from the parameters that `switchpoint fit` found for a system."""
    from tuner.machine.simulation import networks
    from tuner.models import fitting
    from tuner.models.networks import as_network
    from tuner.store.store import Store

    with Store.open(database, readonly=True) as store:
        model = fitting.fitted(store, one_system(store, system))
    say(networks.keep(name, as_network(model)))
