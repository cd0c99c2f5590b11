"""A race for just the cells that matter to one application, in the layouts of its calls."""

from __future__ import annotations

import shutil
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from signal import SIGINT

from tuner.advice.mix import Said
from tuner.advice.profile import Calls
from tuner.advice.running import Invocation, RunError, run
from tuner.campaign.looks import PROBE
from tuner.campaign.order import PLANS, keep_finished
from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.campaign.racing import FAILED, Start, Starts
from tuner.campaign.reframe import CONFIGS, Call
from tuner.campaign.soaking import SoakSite
from tuner.domain.operations import NO_DATA, NO_DATA_BYTES
from tuner.files import one_line
from tuner.machine import mpi as this_machine
from tuner.machine.mpi import python_path, scratch_directory
from tuner.machine.systems import LOCAL, BuiltKernels
from tuner.paths import new_campaign
from tuner.rawfile import keeping

LEAST_S = 25.0
"""The shortest race, with its soaks."""

LIMIT_S = 30.0  # of a launch, beyond its budget
ITEM = 8  # bytes of an element of reductions

LATEST_S = 0.01
"""The most by which ranks arrive apart: by then all others wait, whatever the method."""

SIZES = 4
"""Most sizes of a case, those that may add most first."""


def cases_of(wanted: Sequence[Said], kernels: BuiltKernels) -> list[PlannedCase]:
    """Return the cases of the calls to measure, on one node, the most promising first.

    Ranks arrive apart as in the most promising calls of the case.
    """
    sizes: dict[tuple[str, int], list[int]] = defaultdict(list)
    arrivals_s: dict[tuple[str, int], float] = {}
    for said in wanted:
        shape = said.calls.shape
        its = sizes[shape.operation, shape.procs]
        items = max(round(shape.bytes / ITEM), 1)
        size = NO_DATA_BYTES if shape.operation in NO_DATA else items * ITEM
        if shape.nodes == 1 and size not in its and len(its) < SIZES:
            its.append(size)
            arrivals_s.setdefault((shape.operation, shape.procs), _arrival_s(said.calls))
    cores = this_machine.available_cores()
    return [
        PlannedCase(
            *(LOCAL, kernels.mpi.name, operation, "blocks", f"{procs}_on_1_node", procs, procs),
            sorted(its),
            oversubscribed=procs > cores,
            arrival_s=arrivals_s[operation, procs],
        )
        for (operation, procs), its in sizes.items()
        if its
    ]


def _arrival_s(calls: Calls) -> float:
    """Return the time in which random arrivals are on average as far apart as those of calls."""
    procs = calls.shape.procs
    return min((calls.spread_s or 0.0) * (procs + 1) / (procs - 1), LATEST_S)


def measure(
    cases: list[PlannedCase], kernels: BuiltKernels, seconds: float
) -> tuple[list[str], str]:
    """Race the cases for a time; return the systems of the results, and what failed, else "".

    Finished launches are kept whatever happens.

    Raises:
        KeyboardInterrupt, SystemExit: interrupted, or terminated.
    """
    campaign = new_campaign()
    stage = scratch_directory() / f"advise-{campaign}"
    stage.mkdir(parents=True)
    plan = RacePlan(campaign, str(CONFIGS["local"]), seconds, cases, stage=str(stage), in_job=True)
    PLANS.save(plan, PLANS.path_of(campaign))
    starts = {
        number: _start(case, campaign, kernels, {"--op": case.operation, "--pattern": case.pattern})
        for number, case in enumerate(cases)
    }
    widest = min(cases, key=lambda case: (case.oversubscribed, -case.procs))
    probe = _start(widest, campaign, kernels, PROBE)
    file = stage / "starts.json"
    place = PLANS.path_of(campaign).absolute(), LOCAL, kernels.mpi.name
    Starts(*place, kernels.swpbench.absolute(), starts, probe).save(file)
    log, failure = stage / "race.log", ""
    try:
        with log.open("wb") as output:
            command = [sys.executable, "-m", "tuner.campaign.racing", str(file)]
            start = Invocation(command, {"PYTHONPATH": python_path()})
            run(start, output, output, stage, at_kill=SIGINT)  # by which it keeps launches
    except RunError as error:
        lines = log.read_text(errors="replace").splitlines()
        said = [line.removeprefix(FAILED) for line in lines if line.startswith(FAILED)]
        failure = one_line("; ".join(said) or (lines[-1] if lines else str(error)))
    finally:
        keep_finished(campaign, str(stage))
        shutil.rmtree(stage, ignore_errors=True)
    return sorted({path.parent.parent.name for path in keeping.of_campaign(campaign)}), failure


def _start(
    case: PlannedCase, campaign: str, kernels: BuiltKernels, options: Mapping[str, str]
) -> Start:
    start = this_machine.launch(kernels.mpi, case.procs, build=kernels.root)
    common = {"--campaign": campaign, "--system": LOCAL, "--environment": kernels.mpi.name}
    words = [word for option in {**options, **common}.items() for word in option]
    return Start(start, words, LIMIT_S)


def soak_site(cases: list[PlannedCase], required: int, seconds: float) -> SoakSite:
    """Return where and how the winners are soaked."""
    return SoakSite.of(Call(CONFIGS["local"], [], {}), cases, required, seconds)
