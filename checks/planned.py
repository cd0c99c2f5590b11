"""The unfinished launches of a plan (tuner/campaign/plans.py): a job for each case."""

import os
import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from checks.campaign import LaunchesCheck
from tuner.campaign import order
from tuner.domain import off

if PLAN := os.environ.get(order.PLAN):
    # This import is slow, and no other call of ReFrame needs it.
    from tuner.campaign import planned as planning

    plan = order.PLANS.load(Path(PLAN))
    tasks = planning.remaining(plan)

    @rfm.simple_test
    class planned(LaunchesCheck):
        """Launches, each with its own methods and sizes."""

        descr = "planned launches"
        case = parameter(sorted({task.case for task in tasks}), loggable=True)
        pattern = variable(str)
        scale = variable(str)
        tags = {"planned"}

        @run_after("init")
        def set_case(self):
            """Set the case from the plan."""
            case = plan.cases[self.case]
            self.valid_systems = [case.system]
            self.valid_prog_environs = [case.environment]
            self.operation = case.operation
            self.pattern = case.pattern
            self.scale = case.scale
            self.tasks = {task.number: task for task in tasks if task.case == self.case}
            self.launches = len(self.tasks)
            self.budget_s = max(task.budget_s for task in self.tasks.values())
            if case.failed:
                listed = [os.environ.get(off.VARIABLE, ""), *case.failed]
                self.env_vars[off.VARIABLE] = shlex.quote(" ".join(listed).strip())

        def find_unmeasured(self):
            """Select the launches that the plan still lacks."""
            self.numbers = list(self.tasks)

        @property
        def raw_name(self):
            """Return the file stem used to find finished launches."""
            return planning.RAW_NAME

        def measured_options(self, number, pattern):
            """Return the options of the plan for one launch."""
            task = self.tasks[number]
            return super().measured_options(number, pattern) | {
                "--methods": "",
                "--sizes": "",
                "--races": "|".join(map(self.race_option, task.races)),
                "--budget": f"{task.budget_s:g}",
            }

        @staticmethod
        def race_option(race):
            """Return one race in the form of the option."""
            sizes = ",".join(map(str, race.sizes))
            return f"{sizes} {race.samples} {' '.join(race.methods) or 'all'}"
