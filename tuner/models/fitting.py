"""The fitting of a system's parameters to the probes of the store, and reading them back."""

from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from tuner.domain.cases import Layout, ProbeKey, ProbeLaunch
from tuner.domain.flat import columns, take
from tuner.errors import SwitchpointError
from tuner.machine.simulation.machines import SIMULATED_MACHINES, machine
from tuner.machine.simulation.networks import NetworkError
from tuner.machine.systems import node_cores
from tuner.models import system as models
from tuner.models.networks import as_model
from tuner.models.predicting import CasePrediction, outcomes
from tuner.models.system import ProbeLaunches, SystemModel
from tuner.store.store import Store


class FittingError(SwitchpointError):
    """Error raised when there is nothing to fit, or nothing was fitted; it says what to do."""


def fit(store: Store, system: str, campaign: str | None = None) -> SystemModel:
    """Fit the probes of one campaign, by default the last that has some, and store the result.

    Where several layouts have a kind of pair, the one with the most processes counts, without
    oversubscription if there is one. Raise FittingError, ModelError, StoreError.
    """
    probes = stored(store, system, campaign)
    if not probes:
        where = f"campaign {campaign} of {system}" if campaign else system
        raise FittingError(
            f"{where} has no probes; measure some: `switchpoint run -- --tag=parameters`"
        )
    dates = store.campaigns(system).set_index("campaign")["last_date"]
    last = max((dates[launch.campaign], launch.campaign) for launch in probes)[1]
    layouts: dict[Layout, ProbeLaunches] = {}
    for launch, samples in probes.items():
        if launch.campaign == last:
            layouts[launch.layout] = {**layouts.get(launch.layout, {}), launch: samples}
    ordered = sorted(layouts, key=lambda its: (not its.oversubscribed, its), reverse=True)
    best_first = [layouts[layout] for layout in ordered]
    model = _with_cores(store, system, models.fit(best_first))
    with store.transaction():
        store.put_model(system, models.encode(model))
    return model


def _with_cores(store: Store, system: str, model: SystemModel) -> SystemModel:
    """Return a model with the cores of its system's nodes. Raise StoreError."""
    its = store.description(system)
    cores = int(its["cores"])
    shared = node_cores(its["name"], its["cpu_model"], cores).shared
    return replace(model, cores=cores, shares_cores=shared)


def stored(store: Store, system: str, campaign: str | None = None) -> ProbeLaunches:
    """Return the samples in seconds of all probes of a system or campaign, launch by launch."""
    if campaign is not None and campaign not in set(store.campaigns(system)["campaign"]):
        return {}  # also for a name that is not UTF-8, which SQLite does not take
    found: dict[ProbeLaunch, dict[ProbeKey, NDArray[np.float32]]] = {}
    frame = store.records("probe", system, campaign)
    launches, keys = (frame[list(columns(kind))] for kind in (ProbeLaunch, ProbeKey))
    for launch, key, samples in zip(
        launches.itertuples(index=False, name=None),
        keys.itertuples(index=False, name=None),
        frame["samples"],
        strict=True,
    ):
        of_launch = found.setdefault(take(ProbeLaunch, iter(launch)), {})
        with store.decoding():
            of_launch[ProbeKey(*key)] = np.frombuffer(samples, np.float32)
    return found


def validated(store: Store, model: SystemModel, campaign: str | None) -> list[CasePrediction]:
    """Return a model's predictions for the cells of a campaign of its system, by default the last.

    Raise FittingError when the system has no such campaign of methods, StoreError.
    """
    measured = store.campaigns_with_cells(model.system)
    if campaign is None and not measured:
        return []
    if campaign is not None and campaign not in measured:
        raise FittingError(f"no methods were measured in campaign {campaign} of {model.system}")
    return list(outcomes(model, store.cells(model.system, campaign=campaign or measured[0])))


def known(store: Store) -> list[str]:
    """Return the systems for which `fitted` has parameters. Raise StoreError."""
    systems = store.systems()
    return [
        system
        for system, name in zip(systems["system"], systems["name"], strict=True)
        if name.startswith(f"{SIMULATED_MACHINES}:") or store.model(system) is not None
    ]


def last_fitted(store: Store, system: str) -> SystemModel | None:
    """Return the parameters as `fit` stored them, None where there are none of this version.

    Raise StoreError.
    """
    try:
        return fitted(store, system)
    except FittingError:
        return None


def fitted(store: Store, system: str) -> SystemModel:
    """Return the parameters as `fit` stored them, or the given ones of a simulated machine.

    Raise FittingError for those of another version, StoreError.
    """
    text = store.model(system)
    if text is None:
        if given := _given(store, system):
            return given
        if system not in store.systems_with("probe"):
            raise FittingError(
                f"{system} has no probes; measure some: `switchpoint run -- --tag=parameters`, and "
                "then run `switchpoint fit`"
            )
        raise FittingError(f"{system} has no fitted parameters; run `switchpoint fit`")
    try:
        model = models.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FittingError(
            f"the parameters of {system} were fitted by another version; run `switchpoint fit`"
        ) from error
    return _with_cores(store, system, model)


def _given(store: Store, system: str) -> SystemModel | None:
    """Return the model of a simulated machine, found by its name; None for any other system."""
    names = store.systems().set_index("system")["name"]
    kind, _, simulated = str(names.get(system, "")).partition(":")
    if kind != SIMULATED_MACHINES:
        return None
    try:
        return replace(as_model(machine(simulated)), system=system)
    except NetworkError as error:
        raise FittingError(f"{system}: {error}") from error
