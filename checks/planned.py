"""The unfinished launches of a plan (tuner/campaign/plans.py).

Where no queue forbids it, a job for each system and environment decides between its launches;
elsewhere the launches of a batch are dealt over jobs.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.backends import getlauncher
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable

from checks.campaign import LaunchesCheck
from checks.scales import ScaleLayout
from tuner.campaign import order
from tuner.machine.directories import python_path
from tuner.paths import results_directory

if PLAN := os.environ.get(order.PLAN):
    # These imports are slow, and no other call of ReFrame needs them.
    from tuner.campaign import race_job
    from tuner.campaign.plan_state import remaining
    from tuner.campaign.plans import RAW_NAME, PlannedCase, dealt

    PLAN_FILE = Path(PLAN)
    plan = order.PLANS.load(PLAN_FILE)
    tasks = remaining(plan)

    class PlannedCheck(LaunchesCheck):
        """Launches of a plan, each with its own methods and sizes."""

        pattern = variable(str, value="")
        scale = variable(str, value="")
        tags = {"planned"}

        def set_case(self, case: PlannedCase) -> None:
            """Make this the check of a case of the plan."""
            self.operation = case.operation
            self.pattern = case.pattern
            self.scale = case.scale
            self.num_tasks, self.num_tasks_per_node = case.procs, case.ppn

        def with_written(self, options: Mapping[str, str]) -> dict[str, str]:
            """Return options, with a pattern as swpbench takes it."""
            return {**options, "--pattern": self.written(options.get("--pattern", ""))}

        def layout(self, cores: int, extras: dict[str, Any]) -> ScaleLayout:
            """Return the layout of the plan."""
            return ScaleLayout(self.num_tasks // self.num_tasks_per_node, self.num_tasks_per_node)

        @property
        def raw_name(self) -> str:
            """Return the file stem used to find finished launches."""
            return RAW_NAME

    if not plan.in_job:
        jobs = dealt(plan, tasks)

        @rfm.simple_test
        class planned(PlannedCheck):
            """Launches of several cases in a batch; the first is shown for all."""

            descr = "planned launches"
            number = parameter(range(len(jobs)), loggable=True)

            @run_after("init")
            def find_tasks(self) -> None:
                """Set the launches, and what they share, from the plan."""
                self.tasks = {task.number: task for task in jobs[self.number]}
                case = plan.cases[jobs[self.number][0].case]
                self.valid_systems, self.valid_prog_environs = [case.system], [case.environment]
                self.set_case(case)
                self.launches = len(self.tasks)
                self.env_vars |= {
                    name: shlex.quote(value) for name, value in case.switched_off.items()
                }

            def find_unmeasured(self) -> None:
                """Select the launches that the plan still lacks."""
                self.numbers = list(self.tasks)

            def launch_limit_s(self, number: int) -> float:
                """Return the time limit of a launch by its own budget."""
                return self.tasks[number].limit_s

            def measured_options(self, number: int, pattern: str) -> dict[str, str]:
                """Return the options of the plan for one launch."""
                task = self.tasks[number]
                return self.with_written(plan.cases[task.case].options) | task.options

    else:

        @rfm.simple_test
        class race(PlannedCheck):
            """All launches of the plan on one system, planned between them."""

            descr = "launches that follow from those before them"
            number = parameter(range(len(plan.places)), loggable=True)

            @run_after("init")
            def set_place(self) -> None:
                """Set the system and environment from the plan."""
                self.place = system, environment = plan.places[self.number]
                self.valid_systems = [system]
                self.valid_prog_environs = [environment]
                self.operation = "race"

            @run_after("setup")
            def resolve_scale(self) -> None:
                """Set the one task of the job itself, and its limit; the race ends by itself."""
                self.num_tasks = self.num_tasks_per_node = 1
                self.numbers = [0]
                # A budget that is a share is not known yet.
                self.time_limit = None if plan.share else 2 * plan.budget_s + self.launch_limit_s(0)

            @run_before("run")
            def set_command(self) -> None:
                """Make the race the test's executable, which starts the ranks of its launches."""
                own = getlauncher("local")()
                path = Path(self.stagedir) / "starts.json"
                its = PLAN_FILE, plan, self.place, self.program
                race_job.Starts.of(*its, self.start_of).save(path)
                self.operation, self.pattern, self.scale = "race", "", ""
                self.num_tasks = self.num_tasks_per_node = 1
                self.job.launcher = own
                self.env_vars["SWITCHPOINT_RESULTS"] = shlex.quote(
                    str(results_directory().absolute())
                )
                self.env_vars["PYTHONPATH"] = shlex.quote(python_path())
                self.keep_files = []
                self.executable = shlex.quote(sys.executable)
                self.executable_opts = ["-m", race_job.__name__, path.name]

            def start_of(self, case: PlannedCase, options: Mapping[str, str]) -> race_job.Start:
                """Return how a case starts with these options."""
                self.set_case(case)
                start = self.launch_command()
                launcher = replace(
                    start,
                    argv_prefix=shlex.split(self.job.launcher.run_command(self.job)),
                    env=start.env | case.switched_off,
                )
                return race_job.Start(launcher, self.with_common(self.with_written(options)))

            @sanity_function
            def launches_are_right(self) -> Any:
                """Check that the race ended by itself; say which launch failed, and why."""
                said = sn.evaluate(sn.extractall(rf"^{race_job.FAILED}(.*)$", self.stdout, 1))
                ended = sn.count(sn.extractall(rf"^{race_job.ENDED}$", self.stdout))
                return sn.all(
                    [
                        self.ended_by_itself(),
                        sn.assert_eq("; ".join(said), "", msg="{0}"),
                        sn.assert_eq(ended, 1, msg="the race did not end by itself"),
                    ]
                )

            @run_after("sanity")
            def keep(self) -> None:
                """Leave the raw files, which the race has kept."""
