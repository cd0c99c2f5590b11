"""The checks that stress-test methods, to find hangs, wrong bytes and leaks."""

import os
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable

from checks.campaign import LaunchesCheck, OrderedMixin
from tuner.campaign import order
from tuner.campaign.durations import HANG_LIMIT_S, SOAK_LIMIT_S
from tuner.domain.operations import COLLECTIVES, MOST_CALLED, sizes_for
from tuner.rawfile import keeping


class SoakCheck(LaunchesCheck):
    """Methods executed back to back; subclasses set `kind`, the operation."""

    # In a simulation, all executions are equal.
    valid_systems = ["+mpi -simulated"]
    command = "soak"
    operation = "soak"
    # Executions per method and size.
    executions = variable(int, value=10_000)
    # When this time ends, the executions of the running method so far count.
    budget_s = 60.0
    tags = set()

    def launch_limit_s(self, number: int) -> float:
        """Return the time limit of a launch in seconds, including the time to detect a hang."""
        return self.budget_s + SOAK_LIMIT_S

    @property
    def raw_name(self) -> str:
        """Return a stem that differs from that of launches which measure the same operation."""
        return self.file_stem("soak", self.kind)

    def measured_options(self, number: int, pattern: str) -> dict[str, str]:
        """Return options for all methods at a small size and a larger one."""
        return {
            "--op": self.kind,
            "--methods": self.methods,
            "--pattern": pattern,
            "--sizes": sizes_for(self.kind, self.sizes or "8,4K"),
            "--executions": str(self.executions),
            "--limit": f"{HANG_LIMIT_S:g}",
            "--budget": f"{self.budget_s:g}",
            "--seed": str(number + 1),
        }

    @run_before("sanity")
    def keep(self) -> None:
        """Keep the results, also of failed methods, so that those are not chosen."""
        if not self.is_dry_run():
            keeping.keep(keeping.complete_of_campaign(Path(self.stagedir), self.campaign))

    @sanity_function
    def launches_are_right(self) -> Any:
        """Check that the job ended by itself, that no method failed, and the layout."""
        passed = sn.count(sn.findall(r"^swpbench: soak passed$", self.stdout))
        failed = sn.extractall(r"^.* FAILED: .*$", self.stdout, 0)
        return sn.all(
            [
                self.ended_by_itself(),
                sn.assert_eq(failed, [], msg="failed, and excluded from tables: {0}"),
                sn.assert_eq(passed, len(self.numbers), msg="{0} of {1} launches passed"),
                self.layouts_are_right(),
            ]
        )


@rfm.simple_test
class soak(SoakCheck):
    """Soaks of all methods, as often as a site wants."""

    descr = "stress test of methods"
    scale = parameter(["1_node", "2_nodes"], loggable=True)
    kind = parameter(["exchange", "discovery", *COLLECTIVES], loggable=True)
    pattern = variable(str, value="")

    @run_after("init")
    def set_kind(self) -> None:
        """Set the pattern; four collectives are soaked by default, as in campaigns."""
        self.pattern = order.soaked_pattern(self.kind)
        if self.kind in ("exchange", "discovery", *MOST_CALLED):
            self.tags = {"soak"}

    @property
    def runs(self) -> int:
        """Return one: a single launch holds all executions."""
        return 1


if WANTED := os.environ.get(order.SOAKS):
    wanted = order.SOAKINGS.load(Path(WANTED)).jobs

    @rfm.simple_test
    class winners(OrderedMixin, SoakCheck):
        """Soaks that a table needs (tuner/campaign/soaking.py), of each method where it won."""

        descr = "stress test of winning methods"
        number = parameter(range(len(wanted)), loggable=True)
        kind = "winners"
        pattern = variable(str)

        @run_after("init")
        def set_wanted(self) -> None:
            """Set the layout from the wanted soaks."""
            self.wanted = wanted[self.number]
            self.valid_systems = [self.wanted.system]
            self.valid_prog_environs = [self.wanted.environment]
            self.pattern = ""
            self.scale = f"{self.wanted.nodes} x {self.wanted.ppn}"

        @property
        def raw_name(self) -> str:
            """Return a stem of this job alone: systems may share a partition and layout."""
            return f"{super().raw_name}-{self.number}"

        def launch_limit_s(self, number: int) -> float:
            """Return the time limit of a launch by its own budget."""
            return self.wanted.launches[number].budget_s + SOAK_LIMIT_S

        @property
        def starts(self) -> list[list[int]]:
            """Return all launches as one start, but for those of methods that need their own."""
            return self.wanted.starts(self.numbers)

        def measured_options(self, number: int, pattern: str) -> dict[str, str]:
            """Return options for the sizes at which the methods of an operation won."""
            return self.wanted.launches[number].options(number)
