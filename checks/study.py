"""The launches of a study (tuner/campaign/studied.py), which no campaign keeps."""

import os
import shlex
import shutil
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from checks.campaign import LaunchesCheck, OrderedMixin
from tuner.campaign import order

if STUDY := os.environ.get(order.STUDY):
    wanted = order.STUDIES.load(Path(STUDY))

    @rfm.simple_test
    class studied(OrderedMixin, LaunchesCheck):
        """The launches of one operation with one pattern on one layout."""

        descr = "launches of a study"
        number = parameter(range(len(wanted.jobs)), loggable=True)
        pattern = variable(str, value="")
        tags = {"study"}

        @run_after("init")
        def set_wanted(self) -> None:
            """Set system, operation and layout from the order."""
            self.wanted = wanted.jobs[self.number]
            self.valid_systems = [wanted.system]
            self.valid_prog_environs = [wanted.environment]
            self.operation, self.pattern = self.wanted.operation, self.wanted.pattern
            self.scale = f"{self.wanted.nodes} x {self.wanted.ppn}"
            self.budget_s = wanted.budget_s
            self.env_vars |= {name: shlex.quote(value) for name, value in self.wanted.env.items()}

        def measured_options(self, number: int, pattern: str) -> dict[str, str]:
            """Return the options of the order for one launch."""
            return {"--op": self.operation, "--pattern": pattern, **self.wanted.launches[number]}

        @run_after("sanity")
        def keep(self) -> None:
            """Copy the raw files to where the study reads them."""
            if not self.is_dry_run():
                for number, name in zip(self.numbers, self.keep_files, strict=True):
                    shutil.copy(Path(self.stagedir) / name, wanted.raw_file(self.number, number))
