"""The next step for a system's table: reason and commands.

Everything that shows a table takes its next step from here, so that all give the same command.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join, quote

from tuner.domain.effort import RUN_MINUTES, SOAKS_SHARE
from tuner.domain.operations import COLLECTIVES, FOREIGN, MOST_CALLED
from tuner.domain.tables import FASTER_HERE, UNSOAKED, Table
from tuner.machine.nodes.launch import VIRTUAL_NODES
from tuner.machine.nodes.namespaces import DEFAULT_RATE, NETWORK
from tuner.machine.systems import SIMULATED, Place, configuration, is_here, site_option, unreal
from tuner.selection import trust
from tuner.selection.evidence import seconds_text, settlement

TABLE = "switchpoint.table"
"""The usual name of the file that applications read."""


@dataclass(frozen=True)
class NextStep:
    """The next step: its reason, and the lines for a shell."""

    reason: str
    lines: list[str]

    def __str__(self) -> str:
        first = next(line for line in self.lines if not line.startswith("#"))
        return f"next: {self.reason[0].lower()}{self.reason[1:].removesuffix('.')}: `{first}`"


def measuring_lines(
    name: str,
    environment: str,
    cpu_model: str = "",
    more_s: float = 0.0,
    config: Path | None = None,
    selection: Sequence[str] = (),
    place: Place | None = None,
) -> list[str]:
    """Return the lines for a shell that measure a system again, or take what PICO measured.

    name: ReFrame's. environment: by default the first that is found. more_s: the seconds to
    measure, if known. config: ReFrame's configuration of a site, if all of its partitions are to be
    measured. selection: options of ReFrame. place: where a name of its own was measured, which
    only lines that are printed here may tell.
    """
    own, place = "" if ":" in name else name.partition("+")[0], place or Place(name)
    kind = unreal(name, cpu_model) or unreal(place.name, cpu_model)
    site, of_partition, partition = place.name.partition(":")
    if name.startswith(FOREIGN):
        results = quote(f"pico/results/{partition}_metadata.csv")
        return ["# run PICO again", f"switchpoint ingest {results}"]
    options = f" --environment {quote(environment)}" if environment else ""
    if kind == SIMULATED:
        options = f" --config {quote(str(configuration(SIMULATED)))}"
    elif kind:
        options = f" --system nodes{options}"
    if own:
        options += f" --anonymous-as {quote(own)}"
    if config is None and not is_here(place.name):
        selection = [f"--system={place.name}", *selection]
    minutes = more_s / 60 / (1 - SOAKS_SHARE)
    if minutes > RUN_MINUTES:
        options += f" --minutes {math.ceil(minutes)}"
    if selection:
        options += f" -- {join(selection)}"
    if kind == SIMULATED:
        return [f"SWITCHPOINT_SIMULATE={quote(partition)} switchpoint run{options}"]
    rate = partition.removeprefix(NETWORK)
    if site == VIRTUAL_NODES and rate != DEFAULT_RATE:
        return [f"switchpoint nodes up --rate {quote(rate)} && switchpoint run{options}"]
    if config is None and (kind or site == "local" or not of_partition):
        return [f"switchpoint run{options}"]
    here = config or place.config or configuration(site)
    line = f"switchpoint run --config {quote(str(here))}{options}"
    if config or here.is_file():
        return [line]
    what = f"the configuration of {site}, which `switchpoint site init` writes there"
    return [f"# {quote(str(here))}: {what}", line]


def soaking_command(
    name: str, environment: str, system: str = "", place: Place | None = None
) -> str:
    """Return the command that soaks what waits on a system, by ReFrame's name and the own id.

    environment, place: see `measuring_lines`.
    """
    if ":" in name:
        chosen = f" --system {quote(system)}" if system else ""
        return f"switchpoint soak{chosen}{site_option(name)}"
    # A name of its own has no partition that `soak` could find; a run soaks at its end.
    return measuring_lines(name, environment, place=place)[-1]


def measuring_more(
    table: Table, more_s: float = 0.0, operations: Iterable[str] = (), place: Place | None = None
) -> list[str]:
    """Return the lines for a shell that measure more of a table: see `measuring_lines`.

    operations: those to measure, if known.
    """
    its = table.provenance
    selection = ["--setvar", "cache=cold"] * any(point.case.cold for point in table.points)
    selection += _naming({*operations})
    return measuring_lines(
        *(its.name, its.environment, its.cpu_model, more_s), selection=selection, place=place
    )


def with_options(command: str, options: str) -> str:
    """Return a command of `measuring_lines` with further options of ReFrame."""
    return f"{command} {options}" if " -- " in command else f"{command} -- {options}"


def _naming(operations: set[str]) -> list[str]:
    """Return ReFrame's options for the checks of operations that are not all in every campaign."""
    if operations <= {"exchange", "discovery", *MOST_CALLED}:
        return []
    return ["--name", checks_of(operations)]


def checks_of(operations: Collection[str]) -> str:
    """Return the regular expression for the names of the checks of operations."""
    others = sorted({*operations}.difference(COLLECTIVES))
    kinds = "|".join(sorted({*operations}.intersection(COLLECTIVES)))
    checks = [*(f"^{name}" for name in others), *[rf"collective.*kind=({kinds})\b"] * bool(kinds)]
    return "|".join(checks)


def next_step(table: Table, place: Place | None = None) -> NextStep:
    """Return what to do next with a table, by its points. place: see `measuring_lines`."""
    its, settled = table.provenance, settlement(table.points)
    if its.borrowed_for:
        return NextStep("Measure the system itself.", ["switchpoint run"])
    if not table.points:
        return without_rules(table, "", place)
    every = {point.case.operation for point in table.points}
    unsettled = {point.case.operation for point in table.points if not point.settled}
    again = measuring_more(table, settled.more_s, unsettled or every, place)
    of_system = f"--system {quote(its.system)}"
    statuses = {point.status for point in table.points}
    if trust.state(its.disturbed, its.noisy) == trust.CONTAMINATED:
        again = measuring_more(table, settled.more_s, every, place)
        return NextStep("Measure again while nothing else runs.", again)
    if UNSOAKED in statuses:
        line = soaking_command(its.name, its.environment, its.system)
        lines = [*again[:-1], line] if ":" in its.name else again
        return NextStep("Soak the faster methods that wait.", lines)
    elsewhere = " in another allocation, an hour later" * (FASTER_HERE in statuses)
    if settled.open:
        filled = f" and {settled.filled} filled" if settled.filled else ""
        sizes = f"{settled.open} open{filled} size{'s' * (settled.open + settled.filled != 1)}"
        time = f" (about {seconds_text(settled.more_s)} more)" if settled.more_s else ""
        return NextStep(f"Settle {sizes}{time}{elsewhere}.", again)
    if elsewhere:
        return NextStep(f"Measure again{elsewhere}, to confirm what is faster in this one.", again)
    export = f"switchpoint export {of_system} --output {TABLE}"
    return NextStep("Use the table.", [export, f"export SWITCHPOINT_TABLE=$PWD/{TABLE}"])


def made_anew(table: Table, omission: str) -> NextStep:
    """Return how to make a table anew, by what it lacks of its launches (`tuning.omission`)."""
    line = f"switchpoint tune --system {quote(table.provenance.system)}"
    return NextStep(f"The table {omission}.", [line])


def without_rules(table: Table, omission: str, place: Place | None = None) -> NextStep:
    """Return what to do with a table that has no rules. omission: see `made_anew`; "" for nothing.

    place: see `measuring_lines`.
    """
    if omission:
        return made_anew(table, omission)
    operations = {point.case.operation for point in table.points}
    again = measuring_more(table, operations=operations, place=place)
    return NextStep("Measure methods with their default, as rules compare with it.", again)


def summary(table: Table, place: Place | None = None) -> str:
    """Return what is settled of a table, what its open sizes may lose, and what to do next.

    place: see `measuring_lines`.
    """
    return f"{settlement(table.points)}; {next_step(table, place)}"
