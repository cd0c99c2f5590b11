"""The steps after a campaign's measurements: soak, tune, export, and try the tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from tuner.campaign import soaking
from tuner.campaign.campaigns import AnyCampaign
from tuner.campaign.reframe import DispatchError
from tuner.commands.example import RanJob, print_preload_command, try_example
from tuner.commands.printing.results import show_products, show_table
from tuner.domain import tables
from tuner.domain.operations import COLLECTIVES
from tuner.export import forms
from tuner.models.fitting import last_fitted
from tuner.paths import database_path, results_directory
from tuner.rawfile import keeping
from tuner.selection import tuning
from tuner.selection.products import last_measured
from tuner.store.store import Store

EXPORTS = {"table": "switchpoint.table", "header": "switchpoint_table.h", "json": "table.json"}
NO_METHODS = (
    "no methods were measured, so there is no table; `switchpoint fit` fits models to probes, "
    "`switchpoint show overlap` shows overlap, and tables take soaks into account"
)


class Tuned(NamedTuple):
    """A system's new table, and the file that applications read."""

    table: tables.Table
    path: Path


def carry_out(campaign: AnyCampaign, required: int, console: Console) -> dict[str, Any]:
    """Measure a campaign, soak its winners, tune, export, and try the tables as the jobs ran.

    Print the paths of all results, and return them as a document.

    Raises:
        DispatchError: jobs failed; all steps were done with the launches that did not.
        DispatchError, TuningError, ExportError, StoreError: a step failed; earlier ones stay done.
        KeyboardInterrupt: after a Ctrl-C, with the finished launches kept.
    """
    failed = None
    try:
        raw_files = campaign.run(console)
    except DispatchError as error:
        failed, raw_files = error, keeping.of_campaign(campaign.order.campaign)
        if not raw_files:
            raise
    systems = sorted({path.parent.parent.name for path in raw_files})
    with Store.open(database_path()) as store:
        tunable = [name for name in systems if store.campaigns_with_cells(name)]
    soaking.soak(tunable, campaign.soak_request(required), console)
    tuned = tune_systems(systems, console, required)
    exported = [each.path.parent / name for each in tuned for name in EXPORTS.values()]
    raw_directories = sorted({path.parent for path in raw_files})
    places = {"raw files": raw_directories, "tables": exported, "database": [database_path()]}
    for what, paths in places.items():
        for path in paths:
            console.print(f"{what:10} {path}", soft_wrap=True)
    for each in tuned:
        _try(each, campaign.jobs, console)
    if failed:
        raise failed
    return {
        "campaign": campaign.order.campaign,
        "launches": len(raw_files),
        **{what.replace(" ", "_"): [str(path) for path in paths] for what, paths in places.items()},
        **campaign.file,
    }


def _try(tuned: Tuned, jobs: Sequence[RanJob], console: Console) -> None:
    """Try a new table with the ranks of the largest job of its partition and environment."""
    its = tuned.table.provenance
    place = soaking.partition_of(its, [job.system for job in jobs]), its.environment
    of_system = [job for job in jobs if (job.system, job.environment) == place]
    if not of_system:
        return
    largest = max(of_system, key=lambda job: (job.procs, -job.ppn))
    operations = {rule.operation for rule in tuned.table.rules}
    if operations & {"exchange", "discovery"}:
        try_example(tuned.path, largest, console)
    if operations & set(COLLECTIVES):
        print_preload_command(tuned.path, largest, console)


def tune_systems(
    systems: Sequence[str], console: Console, required: int | None = None
) -> list[Tuned]:
    """Tune systems from all their campaigns, and export their tables.

    A system without measured methods gets no table.

    Raises:
        TuningError, OffError, ExportError, StoreError: a table cannot be made or written.
    """
    tuned = []
    for system in systems:
        with Store.open(database_path()) as store:
            if not store.campaigns_with_cells(system):
                console.print(f"{system}: {NO_METHODS}")
                continue
            table = tuning.tune(store, system, required_executions=required)
            products = last_measured(store, system)
            model = last_fitted(store, system)
        if not table.rules:
            why = "no rules are made from sparse products"
            if products.empty:
                why = "the default was not measured beside other methods"
            console.print(f"{system}: no table, as {why}")
            show_products(system, products, console)
            continue
        directory = results_directory() / system
        exported = {form: directory / name for form, name in EXPORTS.items()}
        for form, path in exported.items():
            forms.write(table, form, path, model)
        show_table(table, "", console)
        show_products(system, products, console)
        tuned.append(Tuned(table, exported["table"]))
    return tuned
