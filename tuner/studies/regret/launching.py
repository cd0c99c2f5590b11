"""The launches of problems: here, or as jobs of a site."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from rich.console import Console

from tuner.campaign import launches, studied
from tuner.campaign.launches import LaunchError
from tuner.campaign.order import StudyJob, StudyOrder
from tuner.machine.systems import kernels, launch_on
from tuner.rawfile.reading import BenchFile
from tuner.selection import off, soaks
from tuner.studies.regret.measuring import Measure, RegretRequest, WantedLaunch
from tuner.units import counted


def here(request: RegretRequest, console: Console) -> Measure:
    """Return what starts launches on a system of this machine. Raise KernelsError.

    Why a launch failed is printed; its problem has no files.
    """
    built = kernels((request.system, request.environment))

    def measure(wanted: WantedLaunch) -> BenchFile:
        problem = wanted.problem
        start = launch_on(
            *(request.system, built.mpi, problem.procs, problem.ppn, built.root, problem.operation)
        )
        options = _options(wanted) | {
            "--op": problem.operation,
            "--pattern": problem.pattern,
            "--system": request.system,
            "--environment": request.environment,
        }
        words = ["--quiet", *chain.from_iterable(options.items())]
        start = replace(start, env=start.env | _env(problem.operation, request))
        return launches.measure(start, built.swpbench, words, request.budget_s)

    def of_problem(wanted: Sequence[WantedLaunch]) -> list[BenchFile]:
        try:
            return [measure(each) for each in wanted]
        except LaunchError as error:
            console.print(f"failed: {error}", soft_wrap=True)
            return []

    return lambda wanted: [of_problem(its) for its in wanted]


def in_jobs(
    request: RegretRequest, config: Path, options: Sequence[str], console: Console
) -> Measure:
    """Return what runs launches as jobs, one for each problem, by a site's configuration.

    `options` are ReFrame's for jobs. Their files lie meanwhile beside the table of the request, in
    a directory that all nodes see.
    """

    def measure(wanted: Sequence[Sequence[WantedLaunch]]) -> list[list[BenchFile]]:
        jobs = [_job(its, request) for its in wanted]
        order = StudyOrder(
            *(request.system, request.environment, str(request.path.parent), request.budget_s, jobs)
        )
        title = f"judging {counted(len(jobs), 'problem')}"
        return studied.run(order, config, options, title, console)

    return measure


def _job(wanted: Sequence[WantedLaunch], request: RegretRequest) -> StudyJob:
    its = wanted[0].problem
    budget = {"--budget": f"{request.budget_s:g}"}
    options = [_options(each) | budget for each in wanted]
    env = _env(its.operation, request)
    return StudyJob(its.operation, its.pattern, its.nodes, its.ppn, env, options)


def _options(wanted: WantedLaunch) -> dict[str, str]:
    """Return swpbench's options for a launch, beside its operation, pattern and budget."""
    return {
        "--sizes": ",".join(map(str, wanted.problem.sizes)),
        "--methods": ";".join(wanted.methods),
        "--launch": str(wanted.number),
        "--seed": str(wanted.number + 1),
    }


def _env(operation: str, request: RegretRequest) -> dict[str, str]:
    """Return the environment in which the library reads the table of the request, and no other.

    Methods that failed a soak are off, as in races: they may hang, and no table has them.
    """
    failed = soaks.failed(request.table.provenance.soaks)
    return {
        "SWITCHPOINT_TABLE": str(request.path),
        "SWITCHPOINT_USER_TABLE": "",
        **off.switched_off(sorted(method for of, method in failed if of == operation)),
    }
