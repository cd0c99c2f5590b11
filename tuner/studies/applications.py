"""The gain of a table for whole applications.

The study of Figure 5 of Hartmann, Kuehnemann, Rauber, Ruenger (2005): a Jacobi iteration in three
forms and two parallel Adams methods, programs that know nothing of Switchpoint, run with and
without the preloaded library in launches that alternate.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tuner.campaign.launches import LaunchError, finish
from tuner.errors import SwitchpointError
from tuner.machine.directories import installation_directory
from tuner.machine.mpi import Mpi, launch, mpis_named, preload_library
from tuner.machine.systems import LOCAL, named_kernels, program_in
from tuner.stats import Floats, mean_interval

FORMS = {"jacobi": ("rows", "columns-all", "columns-root"), "adams": ("pab", "pabm")}
TOLERANCE = 1e-12
"""Relative tolerance of results; a reduction by another method adds in another order."""

CHOOSING, SHOWN = slice(1, None, 2), slice(0, None, 2)
"""The launches that choose what is extreme, and those that show it, which luck did not choose."""

_PROGRAMS = {"swpbench": "swpbench"} | {name: f"swp_example_{name}" for name in FORMS}

_TIMEOUT_S = 300


class ApplicationError(SwitchpointError):
    """Error raised when the study cannot be made, or a result is wrong; the message says which."""


@dataclass(frozen=True)
class RunsRequest:
    """The runs to make. `sizes` are unknowns."""

    table: Path
    procs: int
    sizes: tuple[int, ...]
    iterations: int
    launches: int


@dataclass(frozen=True)
class Improvement:
    """The share of the time that is saved, with its 95 % interval; `size` is None for a mean."""

    middle: float
    low: float
    high: float
    size: int | None


@dataclass(frozen=True)
class FormGain:
    """The least, mean and greatest improvement of one form over sizes, and agreement of results.

    `identical` says whether all results agree bit for bit.
    """

    name: str
    least: Improvement
    mean: Improvement
    greatest: Improvement
    identical: bool


@dataclass(frozen=True)
class _ApplicationRun:
    time_s: float
    bits: str
    norm: float


@dataclass(frozen=True)
class Build:
    """The kernels as built for an MPI: where they are, the library to preload, and the programs."""

    mpi: Mpi
    root: Path
    library: Path
    programs: dict[str, Path]  # the applications, and swpbench


def study(request: RunsRequest, build: Build) -> list[FormGain]:
    """Run every form at every size, and return the gains.

    Raises:
        ApplicationError: a size does not fit, a program fails, or its result is wrong.
    """
    _check_sizes(request)
    return [
        _measure(request, build, application, form)
        for application, forms in FORMS.items()
        for form in forms
    ]


def _check_sizes(request: RunsRequest) -> None:
    for size in request.sizes:
        if size % request.procs:
            raise ApplicationError(f"size {size} is not a multiple of {request.procs} processes")


def find_build(environment: str) -> Build:
    """Return the build or installation that SWITCHPOINT_KERNELS names, or that campaigns use.

    Raises:
        MpiError: that environment is not there.
        ApplicationError: there is none with all programs.
    """
    for mpi in mpis_named(environment):
        root = named_kernels() or installation_directory(LOCAL, mpi.name)
        found = {name: program_in(root, file) for name, file in _PROGRAMS.items()}
        programs = {name: path for name, path in found.items() if path}
        library = preload_library(root)
        if library is not None and len(programs) == len(_PROGRAMS):
            return Build(mpi, root, library, programs)
    raise ApplicationError(
        f"no built applications{' for ' if environment else ''}{environment}; run `switchpoint "
        "run` to build the kernels, or set SWITCHPOINT_KERNELS to a build or installation"
    )


def _measure(request: RunsRequest, build: Build, application: str, form: str) -> FormGain:
    """Return the gain from launches with and without the library, in pairs of random order."""
    order = np.random.default_rng(1)
    logs = np.empty((request.launches, len(request.sizes)))
    identical = True
    for number in range(request.launches):
        for place, size in enumerate(request.sizes):
            outcomes: dict[bool, _ApplicationRun] = {}
            for preloaded in order.permutation([False, True]).tolist():
                outcomes[preloaded] = _run(request, build, application, form, size, preloaded)
            name = f"{application} {form} of size {size}"
            identical &= _agree(name, outcomes[False], outcomes[True])
            logs[number, place] = math.log(outcomes[True].time_s / outcomes[False].time_s)
    return gain(f"{application} {form}", request.sizes, logs, identical)


def _run(
    request: RunsRequest, build: Build, application: str, form: str, size: int, preloaded: bool
) -> _ApplicationRun:
    preload = [build.library] if preloaded else []
    start = launch(build.mpi, request.procs, build=build.root, preload=preload)
    program = str(build.programs[application])
    command = [*start.argv_prefix, program, form, str(size), str(request.iterations)]
    environment = os.environ | start.env | {"SWITCHPOINT_TABLE": str(request.table)}
    try:
        ended = finish(command, environment, _TIMEOUT_S)
    except LaunchError as error:
        raise ApplicationError(f"{application}: {error}") from error
    words = ended.output.split()
    if ended.code != 0 or len(words) != 3:
        said = [line for line in ended.errors.splitlines() if line.startswith("switchpoint: ")]
        raise ApplicationError(said[0] if said else f"{application} ended with {ended.code}")
    return _ApplicationRun(float(words[0]), words[1], float(words[2]))


def _agree(name: str, without: _ApplicationRun, preloaded: _ApplicationRun) -> bool:
    """Return whether results agree bit for bit. Raise ApplicationError if they differ too much."""
    within = abs(preloaded.norm - without.norm) <= TOLERANCE * abs(without.norm)
    if not within:  # also for NaN
        raise ApplicationError(
            f"{name}: the norm of the result is {without.norm!r} without the library and "
            f"{preloaded.norm!r} with it"
        )
    return preloaded.bits == without.bits


def gain(name: str, sizes: tuple[int, ...], logs: Floats, identical: bool) -> FormGain:
    """Return the gain by logarithms of time ratios: a row for each launch, a column for a size."""
    means = logs[CHOOSING].mean(axis=0)
    least, greatest = (
        improvement(logs[SHOWN, place], sizes[place]) for place in (means.argmax(), means.argmin())
    )
    return FormGain(name, least, improvement(logs.mean(axis=1), None), greatest, identical)


def improvement(logs: Floats, size: int | None) -> Improvement:
    """Return the improvement by logarithms of time ratios, one for each launch."""
    low, high = (float(end) for end in mean_interval(logs))
    saved = [float(-math.expm1(value)) for value in (float(logs.mean()), high, low)]
    return Improvement(saved[0], saved[1], saved[2], size)
