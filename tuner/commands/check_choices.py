"""`switchpoint check choices`: the regret of a table on problems that were not used to make it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from tuner import atomic
from tuner.commands.options import (
    budget_option,
    config_option,
    database_option,
    for_jobs,
    json_option,
    launches_option,
    one_system,
    system_option,
    whole_number,
    whole_numbers,
)
from tuner.commands.printing.lines import say_json
from tuner.errors import SwitchpointError
from tuner.paths import results_directory
from tuner.units import change_text, share_text

if TYPE_CHECKING:
    from rich.console import Console

    from tuner.domain.tables import Provenance, Table
    from tuner.models.system import SystemModel
    from tuner.studies.regret.judging import LimitedFigure, RegretOutcome, RegretSummary
    from tuner.studies.regret.measuring import RegretRequest
    from tuner.studies.regret.problems import RegretProblem


_WHY_NONE = "a launch failed, or too few measured it whole: give a larger --budget"


@click.command()
@system_option()
@click.option(
    "--problems",
    "count",
    type=whole_number(1),
    default=20,
    help="Number of random problems, over all operations in turn, at three sizes each.",
)
@launches_option(4, 12, "Most launches of each problem, after the two that name the contenders.")
@budget_option(2.0)
@click.option("--seed", type=whole_number(0), default=1, help="Seed of the problems.")
@click.option(
    "--procs",
    metavar="N[,N...]",
    callback=whole_numbers,
    help="Process counts, in turn; by default random ones.",
)
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    help="Pattern of exchanges and discoveries, such as random:degree=2,seed=1; "
    "may be repeated, in turn.",
)
@click.option(
    "--rival",
    metavar="ID",
    help="System whose table for collectives is measured beside it, such as one from PICO.",
)
@config_option("ReFrame configuration of a system other than this machine, whose jobs measure.")
@database_option
@json_option
@click.argument("reframe_options", nargs=-1, type=click.UNPROCESSED)
def regret(
    system: str | None,
    count: int,
    launches: int,
    budget_s: float,
    seed: int,
    procs: list[int],
    patterns: tuple[str, ...],
    rival: str | None,
    config: Path | None,
    database: Path,
    as_json: bool,
    reframe_options: tuple[str, ...],
) -> None:
    """Measure how much slower a system's table is than the best method, on new problems.

    Sizes, process counts and patterns are random. A problem is launched until a difference of 5 %
    would show; jobs of a site make its launches in three turns at most, for which REFRAME_OPTIONS
    are passed to ReFrame. Exits with 1 when a target is missed.
    """
    from tuner.commands.printing.console import console
    from tuner.studies.regret import judging
    from tuner.studies.regret.measuring import RegretRequest
    from tuner.studies.regret.problems import problems

    table, model, other = _opened(database, system, rival)
    if reframe_options and config is None:
        raise click.UsageError("REFRAME_OPTIONS are for jobs, of a system that --config names")
    options, out = for_jobs(reframe_options), console(stderr=as_json)
    drawn = list(problems(table, count, seed, procs, patterns))
    with _table_file(table, model, config) as path:
        its = _system_of(table), table.provenance.environment
        request = RegretRequest(table, path, *its, launches, budget_s, other)
        outcomes = _measured(request, drawn, config, options, out)
    summary = judging.judge(outcomes)
    lines = judging.lines(summary)
    settings = {
        "problems": count,
        "launches": launches,
        "budget_s": budget_s,
        "seed": seed,
        "procs": procs,
        "patterns": patterns,
        "rival": other.provenance.system if other else None,
    }
    document = _document(table.provenance, settings, summary, lines, outcomes, _cost(table, out))
    digest = sha256(json.dumps(settings).encode()).hexdigest()[:8]
    study = results_directory() / "studies" / f"regret-{document['system']}-{digest}.json"
    atomic.write(study, json.dumps(document, indent=1) + "\n")
    if as_json:
        say_json(document)
    else:
        _show_summary(summary, lines, document["cost"], out)
        out.print(study, soft_wrap=True)
    if not all(line.met for line in lines):
        raise SystemExit(1)


def _opened(
    database: Path, system: str | None, rival: str | None
) -> tuple[Table, SystemModel | None, Table | None]:
    """Return a system's table and model, and the rival's table. Raise SwitchpointError."""
    from tuner.models.fitting import last_fitted
    from tuner.store.store import Store

    with Store.open(database, readonly=True) as store:
        name = one_system(store, system)
        table, model = store.table(name), last_fitted(store, name)
        other = store.table(one_system(store, rival, " with --rival")) if rival else None
    if rival and (other is None or not other.rules):
        raise SwitchpointError("the rival has no table to evaluate; run `switchpoint tune`")
    if table is None or not table.rules:
        raise SwitchpointError("there is no table to evaluate; run `switchpoint tune`")
    return table, model, other


def _system_of(table: Table) -> str:
    """Return ReFrame's name of the system that a table is of, whatever its own name."""
    from tuner.machine.systems import measured_as

    return measured_as(table.provenance.name).name.partition("+")[0]


@contextmanager
def _table_file(table: Table, model: SystemModel | None, config: Path | None) -> Iterator[Path]:
    """Yield a file of the table, which the nodes of a configuration see."""
    from tuner.export import forms
    from tuner.machine.directories import scratch_directory

    if config is not None:
        scratch_directory().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=config and scratch_directory()) as scratch:
        path = Path(scratch) / "switchpoint.table"
        forms.write(table, "table", path, model)
        yield path


def _document(
    provenance: Provenance,
    settings: dict[str, Any],
    summary: RegretSummary,
    lines: Sequence[LimitedFigure],
    outcomes: Sequence[RegretOutcome],
    cost: float | None,
) -> dict[str, Any]:
    """Return what was found as a document for programs."""
    return {
        "system": provenance.system,
        "campaigns": provenance.campaigns,
        "settings": settings,
        "targets": [asdict(line) | {"met": line.met} for line in lines],
        "cost": cost,
        "verdict": asdict(summary),
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


def _cost(table: Table, out: Console) -> float | None:
    """Return the campaigns' cost as a share of measuring everything; if unknown, print why."""
    from tuner.campaign.plan_state import cost_share

    try:
        return cost_share(table.provenance.campaigns)
    except (SwitchpointError, OSError) as error:
        out.print(f"the cost of its campaigns is unknown: {error}", soft_wrap=True)
        return None


def _measured(
    request: RegretRequest,
    problems: list[RegretProblem],
    config: Path | None,
    options: list[str],
    out: Console,
) -> list[RegretOutcome]:
    """Measure the problems, here or in jobs of a site, and print and return what is found."""
    from tuner.machine.systems import LOCAL, is_here, other_machine
    from tuner.studies.regret import launching, measuring

    its, name = request.table.provenance, request.system
    if config is not None:
        measure, turns = launching.in_jobs(request, config.absolute(), options, out), [problems]
    elif not is_here(name):
        raise SwitchpointError(
            f"{its.system} is not a system of this machine; give its configuration with --config"
        )
    elif other := other_machine(name if ":" in name else LOCAL, its.cpu_model, its.cores):
        raise SwitchpointError(f"{its.system} is of another machine, {other}; judge it there")
    else:
        measure, turns = launching.here(request, out), [[problem] for problem in problems]
    outcomes: list[RegretOutcome] = []
    for turn in turns:
        found = list(measuring.outcomes(turn, request, measure, at_once=config is not None))
        outcomes += found
        _show_outcomes(turn, found, out)
    if not outcomes:
        raise SwitchpointError(
            "no problem was measured: launches failed, or too few measured one whole; give a "
            "larger --budget"
        )
    return outcomes


def _show_outcomes(
    problems: list[RegretProblem], outcomes: list[RegretOutcome], out: Console
) -> None:
    of_cases = {(outcome.problem, outcome.size_bytes): outcome for outcome in outcomes}
    for problem, size in ((its, size) for its in problems for size in its.sizes):
        layout = f"{problem.nodes} x {problem.ppn}"
        where = f"{problem.operation} {problem.pattern} on {layout}, {size} B"
        outcome = of_cases.get((problem, size))
        if outcome is None:
            out.print(f"{where}: {_WHY_NONE}")
            continue
        methods, loss = outcome.methods, change_text(outcome.regret())
        out.print(
            f"{where}: {methods['table']} {loss} against {methods['best']}, "
            f"{change_text(outcome.over_default - 1)} against {methods['default']}"
        )


def _show_summary(
    summary: RegretSummary, lines: list[LimitedFigure], cost: float | None, out: Console
) -> None:
    from tuner.commands.printing.grids import Columns
    from tuner.studies.regret.measuring import RULES

    out.print()
    grid = Columns("regret of", "cases", "mean", "95th percentile")
    for name, judgement in summary.choosers.items():
        share = change_text(judgement.mean), change_text(judgement.p95)
        grid.add_row(name if name in RULES else f"the {name}", str(judgement.cases), *share)
    out.print(grid)
    out.print(f"\nthe table's choices are {summary.gain:.3f} times as fast as the default\n")
    grid = Columns("operation", "cases", "launches", "the table", "an oracle", "finds from")
    for name, its in summary.operations.items():
        found = ("–" if share is None else change_text(share) for share in (its.oracle, its.finds))
        grid.add_row(name, str(its.cases), f"{its.launches:.1f}", change_text(its.table), *found)
    out.print(grid)
    out.print()
    whole = sum(cause.mean * cause.cases for cause in summary.causes.values())
    grid = Columns("basis of the choice", "cases", "mean regret", "share of the whole")
    for name, cause in summary.causes.items():
        share_of_whole = cause.mean * cause.cases / whole if whole else 0.0
        grid.add_row(name, str(cause.cases), change_text(cause.mean), share_text(share_of_whole, 0))
    out.print(grid)
    out.print()
    grid = Columns("target", "at most", "achieved", "")
    for line in lines:
        word = "met" if line.met else "MISSED"
        grid.add_row(line.what, share_text(line.target, 0), share_text(line.achieved), word)
    out.print(grid)
    out.print()
    if cost is not None:
        took = share_text(cost, 0)
        out.print(f"its campaigns took {took} of the time to measure everything\n")
