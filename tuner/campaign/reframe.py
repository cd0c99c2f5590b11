"""Calls of ReFrame, which list what a campaign would run and run it.

ReFrame exits with success when no test matched, drops a check file that it cannot import, and only
warns of a variable that a test lacks, if at all. So the plan is made first, by a dry run; anything
left out of it is an error; and the jobs that ran are compared with the plan.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

from tuner.campaign.durations import POLL_S
from tuner.errors import SwitchpointError
from tuner.files import one_line, shown
from tuner.machine.directories import python_path
from tuner.machine.ending import all_below, end_with_parent
from tuner.machine.processes import UnansweredError, answer
from tuner.machine.sites.jobs import pending
from tuner.paths import CHECKOUT, results_directory, results_id
from tuner.signals import exits_on

CHECKS = CHECKOUT / "checks"
CONFIGS = {"local": CHECKS / "config" / "local.py", "nodes": CHECKS / "config" / "nodes.py"}
"""The configurations of this machine: as it is, and as several virtual nodes."""

WARNINGS = ("skipping test", "does not exist", "invalid test variable assignment")
_UNSET = re.compile(r"WARNING: test '(\w+)': the following variables were not set: (.*)")

# Options of ReFrame that choose what runs, each with a value unless it is among the last.
SELECTING = ("-n", "--name"), ("-t", "--tag"), ("-E", "--filter-expr")
ENVIRONMENTS = ("-p", "--prgenv")  # which add up when repeated
NARROWING = ("-x", "--exclude"), ("-T", "--exclude-tag"), ("--maintainer",)
FLAGS = ("--cpu-only", "--gpu-only", "--failed")


class DispatchError(SwitchpointError):
    """Error raised when ReFrame cannot do what was asked; the message says why."""


@dataclass(frozen=True)
class Job:
    """One check on one system and environment: several launches of one operation."""

    name: str
    system: str
    environment: str
    operation: str
    pattern: str
    scale: str
    procs: int
    ppn: int
    launches: int  # missing ones
    result: str  # ReFrame's word: "pass", "fail", "skip", "abort"
    skipped_because: str
    sizes: str = ""  # swpbench's option; the check's own where it is empty
    methods: str = "all"
    cache: str = ""  # swpbench's option; the default is warm
    oversubscribed: bool = False
    races: bool = False
    batches: int = 0  # of a race, at most; 0: one job decides between its launches
    scheduler: str = "local"  # by ReFrame's name

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the values that match a job of a run with its job in the plan."""
        return self.name, self.system, self.environment


@dataclass(frozen=True)
class Session:
    """The report of one call of ReFrame."""

    jobs: list[Job]
    failures: list[str]  # of jobs and of the builds before them: what failed, and why
    stage: Path  # where jobs run, one directory each
    output: Path  # where ReFrame keeps what they wrote
    build_s: float = 0.0  # of the kernels
    waited_s: float = 0.0  # of jobs in a queue, as far as it was seen

    @property
    def wanted(self) -> list[Job]:
        """Return the jobs that are not skipped."""
        return [job for job in self.jobs if job.result != "skip"]

    @property
    def launches(self) -> int:
        """Return the number of launches that are missing."""
        return sum(job.launches for job in self.wanted)

    def waits(self) -> str:
        """Return why a job waits in its queue; "" if none does."""
        queues = {job.scheduler for job in self.wanted} - {"local"}
        return next(filter(None, (pending(name, self.stage) for name in queues)), "")

    def clear(self) -> Session:
        """Delete the directories of ReFrame's files, and return the session."""
        for place in (self.stage, self.output):
            shutil.rmtree(place, ignore_errors=True)
        return self


NOTHING = Session([], [], Path(os.devnull), Path(os.devnull))


@dataclass(frozen=True)
class Call:
    """A call of ReFrame: a site configuration, ReFrame's selection options, and variables.

    `env` joins the environment in which the check files are loaded; `check_file` names the only
    one to load.
    """

    config: Path
    selection: Sequence[str]
    variables: dict[str, str]
    env: dict[str, str] = field(default_factory=dict)
    check_file: str = ""

    def command(self, action: Sequence[str], report: Path) -> list[str]:
        """Return ReFrame's command line."""
        variables = [f"--setvar={name}={value}" for name, value in self.variables.items()]
        # Another campaign may run at the same time.
        name = self.variables.get("campaign")
        places = [f"--timestamp={name}-{results_id()}"] if name else []
        return [
            _reframe(),
            f"--config-file={self.config}",
            f"--checkpath={CHECKS / self.check_file}",
            f"--report-file={report}",
            "--nocolor",
            "--exec-policy=serial",  # the other one sleeps between checks, in dry runs too
            *places,
            *variables,
            *self.selection,
            *action,
        ]


class _Options(argparse.ArgumentParser):
    """The parser of ReFrame's options that choose what runs; the others are left as they are."""

    def __init__(self) -> None:
        super().__init__(add_help=False)
        for names in (*SELECTING, ENVIRONMENTS, *NARROWING):
            self.add_argument(*names, action="append")
        for name in FLAGS:
            self.add_argument(name, action="store_true")

    def error(self, message: str) -> NoReturn:
        raise DispatchError(f"option of ReFrame: {message}")


def selects(options: Sequence[str]) -> bool:
    """Return whether ReFrame's options name the checks to run. Raise DispatchError."""
    named, _ = _Options().parse_known_args(options)
    return any((named.name, named.tag, named.filter_expr))


def selects_environment(options: Sequence[str]) -> bool:
    """Return whether ReFrame's options name an environment. Raise DispatchError."""
    return bool(_Options().parse_known_args(options)[0].prgenv)


def without_selection(options: Sequence[str]) -> list[str]:
    """Return the options that determine where and how ReFrame works.

    Raise DispatchError when one lacks its value.
    """
    return _Options().parse_known_args(options)[1]


def _reframe() -> str:
    """Return the path of `reframe`: beside this Python, where pip installs it, else on PATH."""
    beside = Path(sys.executable).parent
    path = os.pathsep.join([str(beside), os.environ.get("PATH", "")])
    return shutil.which("reframe", path=path) or str(beside / "reframe")


def _environment() -> dict[str, str]:
    """Return the environment of ReFrame, which needs a user's name; a container may lack it.

    What pip installed beside this Python, as cmake, comes after the system's. The results are
    named absolutely, as ReFrame changes to the directory of a check file that it loads.
    """
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # the second from Python 3.13 on
        name = str(os.getuid())
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    results = str(results_directory().absolute())
    own = {"LOGNAME": name, "PATH": path, "PYTHONPATH": python_path()}
    return os.environ | own | {"SWITCHPOINT_RESULTS": results}


def _reason(output: str) -> str:
    """Return ReFrame's error message without the usage or the log printed around it."""
    errors = re.findall(r"^(?:reframe: error|ERROR): (.*)", output, re.MULTILINE)
    return errors[0].strip() if errors else output.strip()


def _why_failed(report: Path, output: str) -> str:
    """Return what failed first in a dry run; if the report has nothing, what ReFrame said."""
    with suppress(DispatchError), _reading(report, "") as found:
        failures = [_failure(case) for case in _cases(found) if case["result"] == "fail"]
        if failures:
            more = f" (and {len(failures) - 1} more)" * (len(failures) > 1)
            return one_line(failures[0]) + more
    return _reason(output)


def _untaken(selection: Sequence[str], output: str, checks: set[str]) -> Iterator[str]:
    """Yield the variables that an option sets and none of the checks has, by a dry run's output."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("-S", "--setvar", action="append", default=[])
    unset = {check: set(re.findall("'(.*?)'", names)) for check, names in _UNSET.findall(output)}
    for assignment in options.parse_known_args(selection)[0].setvar:
        name = assignment.partition("=")[0]
        check, is_of_one, variable = name.partition(".")
        having = checks & {check} if is_of_one else checks
        if all((variable or name) in unset.get(each, ()) for each in having):
            yield name


def dry_run(call: Call, limit_s: float | None = None, *, strict: bool = False) -> Session:
    """Return what ReFrame would run, found by its dry run.

    strict: variables that options set must be those of checks that run.

    Raises:
        DispatchError: ReFrame failed, took longer than the limit or warned of something left out,
            or no check is left to run.
    """
    for path in (call.config, results_directory()):
        if shown(path) != str(path):
            raise DispatchError(
                f"{shown(path)}: ReFrame reads only paths that are UTF-8; rename it"
            )
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        its = answer(
            call.command(["--dry-run"], report),
            limit_s,
            DispatchError,
            what="ReFrame's dry run",
            env=_environment() | call.env,
        )
        output = its.stdout + its.stderr
        for line in output.splitlines():
            if "WARNING" in line and any(warning in line for warning in WARNINGS):
                raise DispatchError(f"ReFrame leaves out a part of the campaign: {line}")
        if its.returncode != 0:
            raise DispatchError(f"ReFrame's dry run failed: {_why_failed(report, output)}")
        if not report.is_file():
            raise DispatchError(f"nothing to run: {_why_no_check(call, report, limit_s)}")
        with _reading(report, f"it said: {_reason(output)}") as found:
            session = _read(found, call.variables)
            checks = {case["display_name"].split()[0] for case in _cases(found)}
    if strict and (untaken := next(_untaken(call.selection, output, checks), "")):
        there = ", ".join(sorted(checks))
        raise DispatchError(f"--setvar={untaken}: no check that runs has it; these run: {there}")
    if not session.wanted:
        reasons = {job.skipped_because for job in session.jobs}
        raise DispatchError(f"nothing to run: {'; '.join(sorted(reasons))}")
    return session


def _why_no_check(call: Call, report: Path, limit_s: float | None) -> str:
    """Return why a dry run found no check."""
    ask = call.command(["--show-config=systems/0/name"], report)
    env, name = _environment() | call.env, ""
    with suppress(UnansweredError):
        name = answer(ask, limit_s, env=env).stdout.strip()
    if name == '"generic"':  # ReFrame's own, for hosts that no file names
        return (
            f"no hostnames in {call.config} match this host, {socket.gethostname()}: add them, or "
            "name the system: -- --system=NAME"
        )
    return (
        f"no check matches {' '.join(call.selection) or 'this configuration'}, or no partition and "
        "environment both have the feature mpi; --name takes a regular expression for names such "
        "as 'collective%scale=1_node%kind=bcast'"
    )


def run(call: Call, planned: Session, log: Path, tick: Callable[[], None]) -> Session:
    """Run what a dry run has found, one job at a time, and call `tick` every half second.

    On Ctrl-C, SIGTERM and SIGHUP ReFrame is interrupted and waited for; KeyboardInterrupt or
    SystemExit passes on.

    Raises:
        DispatchError: ReFrame ended without a report, or did not run what was planned.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    report = log.with_suffix(".json")
    report.unlink(missing_ok=True)  # of a run that this one resumes
    command = call.command(["--run"], report)
    with log.open("ab") as output:
        # ReFrame has a session of its own, so that a Ctrl-C reaches it once, from here; also where
        # a shell's background makes this process ignore it.
        process = subprocess.Popen(
            command,
            env=_environment() | call.env,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        try:
            with exits_on(signal.SIGTERM, signal.SIGHUP):
                while process.poll() is None:
                    tick()
                    time.sleep(POLL_S)
        except BaseException:
            # ReFrame kills a launcher that it has asked to end, and Open MPI's ranks outlive one.
            with all_below(process.pid):
                process.send_signal(signal.SIGINT)
                process.wait()
            raise
    if not report.is_file():
        raise DispatchError(f"ReFrame ended without a report; its output is in {log}")
    with _reading(report, f"its output is in {log}") as found:
        session = _read(found, call.variables)
    missing = {job.key for job in planned.wanted} - {job.key for job in session.wanted}
    if missing:
        names = "; ".join(" ".join(key) for key in sorted(missing))
        raise DispatchError(f"planned but not run: {names}; ReFrame's output is in {log}")
    return session


@contextmanager
def _reading(report: Path, said: str) -> Iterator[dict[str, Any]]:
    """Yield a report. Raise DispatchError if it proves to be none. said: what else ReFrame said."""
    try:
        yield json.loads(report.read_text())
    except (ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise DispatchError(f"{report}: not a report of ReFrame ({why}); {said}") from error


def _cases(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the test cases; of one that ReFrame has retried, its last run."""
    cases = (case for run in report["runs"] for case in run["testcases"])
    return list({(case["display_name"], _place(case)): case for case in cases}.values())


def _read(report: dict[str, Any], variables: dict[str, str]) -> Session:
    """Read a report. Fixtures, which build the kernels, are not jobs, but they can fail as well."""
    cases = _cases(report)
    unbuilt = {_place(case): case["skipped_because"] for case in cases if case["fixture"]}
    for case, (name, value) in product(cases, variables.items()):
        if not case["fixture"] and str(case.get(name)) != value:
            if name in case:
                raise DispatchError(
                    f"{case['filename']}: {name} should be {value} but is {case[name]}; set it "
                    f"with an option of this command, not with -S"
                )
            raise DispatchError(f"{case['filename']}: no variable {name} to set to {value}")
    for case in cases:
        case["skipped_because"] = case["skipped_because"] or unbuilt.get(_place(case), "")
    return Session(
        jobs=[_job(case) for case in cases if not case["fixture"]],
        failures=[_failure(case) for case in cases if case["result"] == "fail"],
        stage=Path(report["session_info"]["prefix_stage"]),
        output=Path(report["session_info"]["prefix_output"]),
        build_s=sum(case["time_compile"] or 0.0 for case in cases if case["fixture"]),
    )


def _place(case: dict[str, Any]) -> tuple[str, str, str]:
    return case["system"], case["partition"], case["environ"]


def _job(case: dict[str, Any]) -> Job:
    return Job(
        name=case["display_name"],
        system=f"{case['system']}:{case['partition']}",
        environment=case["environ"],
        operation=case["operation"],
        pattern=case["pattern"],
        scale=case["scale"],
        procs=case["num_tasks"],
        ppn=case["num_tasks_per_node"],
        launches=len(case["keep_files"]),
        result=case["result"],
        skipped_because=case["skipped_because"],
        sizes=case["sizes"],
        methods=case["methods"],
        cache=case["cache"],
        oversubscribed=case["oversubscribed"],
        races=case["races"],
        batches=case["batches"],
        scheduler=case["scheduler"],
    )


def _failure(case: dict[str, Any]) -> str:
    """Return what failed, and why; how a job ended comes first, if not by itself."""
    what = f"{case['display_name']} @{case['environ']}"
    reason = case["fail_reason"].removeprefix("sanity error: ")
    if reason.startswith("job "):
        return f"{reason}: {what}"
    return f"{what}: {case['fail_phase']}: {case['fail_reason']}"
