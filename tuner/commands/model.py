"""`switchpoint fit`, `show models`, `predict`, `check model`: parameters, and predicted times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.commands.options import (
    chosen_systems,
    database_option,
    json_option,
    one_system,
    require_store,
    sizes_in_bytes,
    system_option,
    whole_number,
)
from tuner.commands.printing.lines import say, say_json
from tuner.commands.show_overlap import computations, predict_overlap
from tuner.domain.operations import COLLECTIVES, RULED_OPERATIONS
from tuner.errors import SwitchpointError
from tuner.units import share_text

if TYPE_CHECKING:
    from tuner.models.system import SystemModel
    from tuner.store.store import Store


@click.command()
@system_option("Fit only this system: ID or unique substring.")
@click.option("--campaign", metavar="NAME", help="Campaign. [default: (the last with probes)]")
@database_option
@json_option
def fit(system: str | None, campaign: str | None, database: Path, as_json: bool) -> None:
    """Fit the parameters of models, LogGP and max-rate, to measured probes, and store them."""
    from tuner.commands.printing.console import console
    from tuner.commands.printing.models import show_model
    from tuner.models import fitting
    from tuner.models.system import encode
    from tuner.store.store import Store

    require_store(database)
    with Store.open(database) as store:
        names = chosen_systems(store, system, lambda its: its.systems_with("probe"))
        if not names:
            raise SwitchpointError(
                f"{database} has no probes; measure some: `switchpoint run -- --tag=parameters`"
            )
        if campaign:  # an error comes before any parameters are replaced
            having = [name for name in names if fitting.stored(store, name, campaign)]
            names = having or names
        models = [fitting.fit(store, name, campaign) for name in names]
    if as_json:
        say_json([json.loads(encode(model)) for model in models])
        return
    out = console()
    for model in models:
        show_model(model, out)


@click.command()
@click.option(
    "--op",
    "operation",
    metavar="OPERATION",
    type=click.Choice([*RULED_OPERATIONS, "overlap"]),
    required=True,
    help="exchange, discovery, overlap, or a collective.",
)
@click.option(
    "--pattern",
    default="",
    show_default=False,
    help="Communication pattern, as for `swpbench run`.",
)
@click.option("--procs", type=whole_number(1), required=True, help="Processes.")
@click.option(
    "--ppn", type=whole_number(1), show_default="all", help="Processes per node, in rank order."
)
@click.option(
    "--sizes",
    default="8:1M:x8",
    callback=sizes_in_bytes,
    help="Bytes per message or item; for collectives, bytes of a rank's block.",
)
@click.option(
    "--methods",
    default="",
    show_default="all but the library's own algorithms",
    help="Method specs, separated by spaces.",
)
@click.option(
    "--computation",
    "computations_s",
    default="0,10,100",
    callback=computations,
    help="For overlap: computation of each process in microseconds, comma-separated.",
)
@click.option(
    "--closed-forms",
    "wants_forms",
    is_flag=True,
    help="For exchange: also print the papers' bounds, some of which assume equal messages "
    "between all pairs.",
)
@system_option("System whose parameters are used: ID or unique substring.")
@database_option
@json_option
def predict(
    operation: str,
    pattern: str,
    procs: int,
    ppn: int | None,
    sizes: list[int],
    methods: str,
    computations_s: list[float],
    wants_forms: bool,
    system: str | None,
    database: Path,
    as_json: bool,
) -> None:
    """Predict the methods of an operation from fitted parameters, without running them."""
    from tuner.commands.printing import models as showing
    from tuner.commands.printing.console import console
    from tuner.models import fitting, predicting
    from tuner.store.store import Store

    if (operation in COLLECTIVES) == bool(pattern):
        raise click.UsageError(
            "--pattern is required for exchange, discovery and overlap, and for nothing else"
        )
    if wants_forms and operation != "exchange":
        raise click.UsageError("--closed-forms requires --op exchange")
    with Store.open(database, readonly=True) as store:
        model = fitting.fitted(store, one_system(store, system))
    ppn, specs = min(ppn or procs, procs), methods.split()
    if operation == "overlap":
        predict_overlap(model, pattern, procs, ppn, specs, computations_s, as_json)
        return
    case = predicting.PatternCase(operation, pattern, procs, ppn)
    predictor = predicting.predictor(model, case, specs or None)
    times = [predictor.times(size) for size in sizes]
    crossovers = predictor.crossovers(sizes)
    forms = predicting.closed_forms(model, case) if wants_forms else None
    if as_json:
        say_json(showing.prediction_document(sizes, times, crossovers, forms))
        return
    showing.show_prediction(sizes, times, crossovers, console())
    if forms is not None:
        showing.show_closed_forms(sizes, forms, console())


@click.command()
@click.option("--campaign", metavar="NAME", help="Campaign. [default: (the last measured)]")
@system_option()
@database_option
@json_option
def validate(campaign: str | None, system: str | None, database: Path, as_json: bool) -> None:
    """Compare predictions with the times of a campaign: errors, order, switch points."""
    from tuner.commands.printing import models as showing
    from tuner.commands.printing.console import console
    from tuner.models import fitting
    from tuner.store.store import Store

    with Store.open(database, readonly=True) as store:
        name = one_system(store, system)
        model = fitting.fitted(store, name)
        found = fitting.validated(store, model, campaign)
    if as_json:
        documents = [showing.outcome_document(outcome) for outcome in found]
        say_json(documents)
        return
    showing.show_outcomes(found, console())


@click.command()
@system_option("Show only this system: ID or unique substring.")
@database_option
@json_option
def models(system: str | None, database: Path, as_json: bool) -> None:
    """Show fitted parameters with their intervals, and how many cases they predict within 15 %."""
    from tuner.commands.printing import models as showing
    from tuner.commands.printing.console import console
    from tuner.models import fitting
    from tuner.models.predicting import share_close_of
    from tuner.models.system import encode
    from tuner.models.validation import CLOSE
    from tuner.store.store import Store

    with Store.open(database, readonly=True) as store:
        names = chosen_systems(store, system, fitting.known)
        fitted = [model for name in names if (model := _model(store, name, len(names) == 1))]
        shares = [share_close_of(fitting.validated(store, model, None)) for model in fitted]
    if as_json:
        documents = [
            json.loads(encode(model)) | {"within_15_percent": share}
            for model, share in zip(fitted, shares, strict=True)
        ]
        say_json(documents)
        return
    if not fitted:
        raise SwitchpointError("no system has fitted parameters; run `switchpoint fit`")
    out, close = console(), share_text(CLOSE, 0)
    for model, share in zip(fitted, shares, strict=True):
        showing.show_model(model, out)
        if share is not None:
            right = share_text(share, 0)
            out.print(f"{right} of the measured cases are predicted within {close}")


def _model(store: Store, system: str, required: bool) -> SystemModel | None:
    """Return a system's parameters; without them, warn, or raise FittingError if they are required.

    Those of a simulated machine are lost with the file of its network.
    """
    from tuner.models import fitting

    try:
        return fitting.fitted(store, system)
    except fitting.FittingError as error:
        if required:
            raise
        say(f"warning: {error}", err=True)
        return None
