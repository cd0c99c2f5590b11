"""Base classes of all checks of a campaign: several launches of swpbench in one job.

A check sets `operation` in its class, and `pattern` and `scale` as parameters. The base class sets
everything that ReFrame needs: the tasks after set-up, the command before the run.
"""

import math
import os
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    fixture,
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)

import tuner.machine.sites.slurm  # noqa: F401  else a preempted job is waited for without end
from checks import scales
from checks.kernels import build_kernels
from checks.performance import medians_us
from tuner.campaign.durations import BEYOND_S
from tuner.campaign.launches import words_of
from tuner.campaign.plans import MOST_BATCHES
from tuner.campaign.worthiest import worthiest
from tuner.domain.operations import RULED_OPERATIONS, sizes_for
from tuner.inputs.matrices.gallery import write_matrix
from tuner.machine.mpi import LaunchCommand, identify
from tuner.machine.sites.jobs import ending
from tuner.machine.systems import launch_on
from tuner.paths import campaign_name
from tuner.rawfile import keeping
from tuner.selection import off
from tuner.store.database import StoreError

identify_once = cache(identify)  # many jobs use few MPIs

# All checks of one ReFrame session belong to one campaign.
STARTED = campaign_name()


class OrderedMixin(rfm.RegressionMixin):
    """The launches of a job in an order, on its layout; subclasses set `wanted`, the job."""

    scale = variable(str, value="")

    def layout(self, cores: int, extras: dict[str, Any]) -> scales.ScaleLayout:
        """Return the layout of the order."""
        return scales.ScaleLayout(self.wanted.nodes, self.wanted.ppn)

    @property
    def runs(self) -> int:
        """Return the number of launches of the order."""
        return len(self.wanted.launches)


class LaunchesCheck(rfm.RunOnlyRegressionTest):
    """Launches of one operation with one pattern; every launch writes a raw file.

    Subclasses set `scale`.
    """

    valid_systems = ["+mpi"]
    valid_prog_environs = ["+mpi"]
    sourcesdir = None
    kernels = fixture(build_kernels, scope="environment")
    tags = {"tuning"}
    maintainers = ["switchpoint"]

    command = "run"  # of swpbench
    operation = variable(str, loggable=True)
    campaign = variable(str, value=STARTED, loggable=True)
    methods = variable(str, value="all", loggable=True)
    sizes = variable(str, value="")
    cache = variable(str, value="", loggable=True)  # of `swpbench run`
    # Replaces the program that the fixture installs.
    swpbench = variable(str, value="")
    # Few launches settle large differences; six settle most sizes.
    launches = variable(int, value=6)
    budget_s = variable(float, value=3.0)
    # For published results: another name for the system, and no host names.
    system_name = variable(str, value="")
    anonymous = variable(bool, value=False)
    # For the report, which has no field of its own for the reason of a skip.
    skipped_because = variable(str, value="")
    # For the report too: what the layout is, whether a campaign may race the case, and in how many
    # batches of jobs at most; 0 means that one job decides between its launches.
    races = variable(bool, value=False)
    oversubscribed = variable(bool, value=False)
    batches = variable(int, value=0)

    @run_after("setup")
    def resolve_scale(self) -> None:
        """Set the processes of the scale, from the processors of the system."""
        try:
            layout = self.layout(self.cores, self.current_partition.extras)
            self.oversubscribed = layout.ppn > self.cores
            if self.oversubscribed and "mpiexec" not in self.current_environ.extras:
                raise scales.ScaleError(
                    "oversubscribed, and it is not known how to make ranks yield"
                )
        except scales.ScaleError as reason:
            self.leave_out(str(reason))
        self.num_tasks = layout.procs
        self.num_tasks_per_node = layout.ppn
        self.find_unmeasured()
        limit_s = sum(map(self.launch_limit_s, self.numbers))
        simulated = "simulated" in self.current_partition.features
        # A limit would be in real seconds; the budget of a simulated machine is in its own.
        self.time_limit: float | None = None if simulated else limit_s
        self.races = self.interleaved and self.operation in RULED_OPERATIONS and not simulated
        if not self.is_local():
            # In LSF's whole minutes: ReFrame leaves seconds out.
            self.time_limit = 60 * math.ceil(limit_s / 60)
            most = int(self.current_partition.extras.get("max_batches", MOST_BATCHES))
            self.batches = max(most, 1)

    def layout(self, cores: int, extras: dict[str, Any]) -> scales.ScaleLayout:
        """Return the layout of the scale on nodes of so many cores. Raise ScaleError.

        The extras of the partition give the most nodes, and whether to oversubscribe cores.
        """
        return scales.resolve(
            self.scale,
            cores,
            int(extras.get("max_nodes", 1)),
            oversubscribed=bool(extras.get("oversubscribed")),
        )

    def find_unmeasured(self) -> None:
        """Leave out launches that an interrupted campaign of this name has in the results."""
        there = keeping.numbers_there(
            self.campaign, self.recorded_system, self.current_environ.name, self.raw_name
        )
        self.numbers = [number for number in range(self.runs) if number not in there]
        if not self.numbers:
            self.leave_out("all its launches are already among the results")

    def leave_out(self, reason: str) -> None:
        """Skip this case, and keep the reason for the report."""
        self.skipped_because = reason
        self.skip(reason)

    @property
    def recorded_system(self) -> str:
        """Return the name of the system in raw files."""
        return self.system_name or self.current_partition.fullname

    @property
    def runs(self) -> int:
        """Return the number of launches, each of which writes a raw file."""
        return self.launches

    @property
    def interleaved(self) -> bool:
        """Return whether all methods run in the rounds of a launch."""
        return True

    def launch_limit_s(self, number: int) -> float:
        """Return the time limit of the launch of that number, in seconds of this machine."""
        return self.budget_s + BEYOND_S

    @run_before("run")
    def set_command(self) -> None:
        """Make the first launch the test's executable; the others follow it in the same job."""
        start = self.launch_command()
        self.env_vars |= {name: shlex.quote(value) for name, value in start.env.items()}
        raw_files = [f"{self.raw_name}-{number}.jsonl" for number in self.numbers]
        self.keep_files = raw_files
        layout = self.num_tasks, self.num_tasks_per_node
        keeping.expect(Path(self.stagedir), dict.fromkeys(raw_files, layout))
        # What a killed session left here is of no use.
        self.prerun_cmds = [f"rm -f {' '.join(raw_files)}"]
        self.executable = shlex.quote(str(self.program))
        pattern = self.written(self.pattern)
        commands = []
        for numbers in self.starts:
            words = [self.command]
            for number in numbers:
                words += ["--then"] * (number != numbers[0])
                words += self.launch_options(number, pattern, start.yield_setting)
            commands.append(words)
        self.executable_opts = commands[0]
        command = f"{self.job.launcher.run_command(self.job)} {self.executable}"
        self.postrun_cmds = [f"{command} {' '.join(following)}" for following in commands[1:]]

    @run_before("run")
    def switch_methods_off(self) -> None:
        """Set the methods that are off here in the job too: not all schedulers export variables."""
        if listed := os.environ.get(off.VARIABLE):
            self.env_vars.setdefault(off.VARIABLE, shlex.quote(listed))

    @run_before("run")
    def delete_earlier_output(self) -> None:
        """Delete the output of an earlier batch in this stage: some schedulers append to it."""
        for name in (self.job.stdout, self.job.stderr):
            (Path(self.stagedir) / name).unlink(missing_ok=True)

    @property
    def starts(self) -> list[list[int]]:
        """Return the numbers of the launches that share a start of the processes: of each alone."""
        return [[number] for number in self.numbers]

    @property
    def cores(self) -> int:
        """Return the physical cores of a node, 0 if they are not known."""
        processor = self.current_partition.processor
        return (processor.num_cpus or 0) // (processor.num_cpus_per_core or 1)

    @property
    def cores_of_job(self) -> int | None:
        """Return the cores of all nodes of the job, None if they are not known."""
        return self.cores * -(-self.num_tasks // self.num_tasks_per_node) or None

    @property
    def program(self) -> Path:
        """Return the path of swpbench."""
        return Path(self.swpbench or self.kernels.installation / "bin" / "swpbench")

    @property
    def raw_name(self) -> str:
        """Return the stem of raw files' names, by which an interrupted campaign knows them."""
        return self.file_stem(self.operation, self.pattern)

    def file_stem(self, *words: str) -> str:
        """Return a stem of words, the scale and its layout: that may change until a resumption."""
        layout = f"{self.num_tasks}-ranks-{self.num_tasks_per_node}-a-node"
        return re.sub(r"[^A-Za-z0-9]+", "-", "-".join([*words, self.scale, layout]))

    def launch_options(self, number: int, pattern: str, yield_setting: str) -> list[str]:
        """Return the options of one launch, quoted for the job script."""
        own = {"--out": f"{self.raw_name}-{number}.jsonl", "--launch": str(number)}
        own |= self.measured_options(number, pattern) | {"--yield": yield_setting}
        return list(map(shlex.quote, self.with_common(own)))

    def with_common(self, options: dict[str, str]) -> list[str]:
        """Return the words of options, with those of all launches."""
        place = self.recorded_system, self.current_environ.name
        # Ranks of a job may be bound, or get a part of a node, so what they may use depends on the
        # layout. In hardware threads, as swpbench counts.
        cores = None if self.is_local() else self.current_partition.processor.num_cpus
        words = words_of(options, self.campaign, place, self.launcher_name, cores)
        return words + ["--anonymous"] * self.anonymous

    @property
    def launcher_name(self) -> str:
        """Return the program that starts the ranks; "" where they start by themselves."""
        words = shlex.split(self.job.launcher.run_command(self.job))
        return Path(words[0]).name if words else ""

    def measured_options(self, number: int, pattern: str) -> dict[str, str]:
        """Return the options that select the measurements of one launch."""
        return {
            "--op": self.operation,
            "--methods": self.methods,
            "--cache": self.cache if self.command == "run" else "",
            "--pattern": pattern,
            "--sizes": sizes_for(
                self.operation, self.sizes or default_sizes(self.operation, self.pattern)
            ),
            "--budget": f"{self.budget_s:g}",
            # Each launch runs the methods in a different order.
            "--seed": str(number + 1),
        }

    def launch_command(self) -> LaunchCommand:
        """Make the job's launcher start the ranks of a launch, and return the rest of the start.

        If the environment has an mpiexec, the tuner starts ranks with it.
        """
        # ReFrame sets these fields of the job only later, but launchers read them here.
        self.job.num_tasks, self.job.num_tasks_per_node = self.num_tasks, self.num_tasks_per_node
        mpiexec = self.current_environ.extras.get("mpiexec")
        if mpiexec is None:
            return LaunchCommand([])
        mpi = identify_once(self.current_environ.cc, mpiexec)
        if mpi is None:
            modules = " ".join(self.current_environ.modules)
            raise rfm.core.exceptions.ReframeError(
                f"{mpiexec} and {self.current_environ.cc} do not belong to one known MPI"
                + (f"; load the modules of the environment before: {modules}" if modules else "")
            )
        start = launch_on(
            self.current_partition.fullname,
            mpi,
            self.num_tasks,
            self.num_tasks_per_node,
            self.kernels.installation,
            self.operation,
            None if self.is_local() else self.cores_of_job,
        )
        command = [shlex.quote(word) for word in start.argv_prefix]
        self.job.launcher.command = lambda job: command
        return start

    def written(self, pattern: str) -> str:
        """Return a pattern as swpbench takes it; write a matrix into the stage directory."""
        kind, _, name = pattern.partition(":")
        if kind != "matrix":
            return pattern
        return f"matrix:{write_matrix(name, Path(self.stagedir)).name}"

    def ended_by_itself(self) -> Any:
        """Return the check that nothing ended the job; its message is the scheduler's reason."""
        scheduler, how = self.current_partition.scheduler, ""
        if not scheduler.is_local:
            files = [Path(self.stagedir) / name for name in (self.job.stdout, self.job.stderr)]
            written = [path.read_text(errors="replace") for path in files if path.is_file()]
            how = ending(scheduler.registered_name, self.job.jobid, "\n".join(written))
        return sn.assert_eq(how, "", msg="{0}")

    def layouts_are_right(self) -> Any:
        """Return the check that every launch had all its ranks, on as many nodes as planned.

        A launcher without integration may start all ranks on one node.
        """
        found = sn.extractall(
            r"^swpbench: ranks ([0-9]+)\nswpbench: nodes ([0-9]+)$", self.stdout, (1, 2), int
        )
        nodes = math.ceil(self.num_tasks / self.num_tasks_per_node)
        return sn.assert_eq(
            found,
            [(self.num_tasks, nodes)] * len(self.numbers),
            msg="launches had (ranks, nodes) {0}, expected {1}",
        )

    @sanity_function
    def launches_are_right(self) -> Any:
        """Check the end of the job, the payload, the layout, and that raw files are complete."""
        return sn.all(
            [
                self.ended_by_itself(),
                sn.assert_eq(
                    sn.count(sn.findall(r"^swpbench: payload ok$", self.stdout)),
                    len(self.numbers),
                    msg="payload verified in {0} of {1} launches",
                ),
                self.layouts_are_right(),
                sn.assert_eq(
                    sn.count(sn.findall(r"^swpbench: complete ", self.stdout)),
                    len(self.numbers),
                    msg="{0} of {1} launches completed their raw file",
                ),
            ]
        )

    @run_after("sanity")
    def keep(self) -> None:
        """Add the raw files to the results and to the store."""
        if not self.is_dry_run():
            keeping.keep([Path(self.stagedir) / name for name in self.keep_files])

    @run_before("performance")
    def report_medians(self) -> None:
        """Make medians of the job's raw files ReFrame's performance variables."""
        if not self.is_dry_run():
            medians = medians_us(Path(self.stagedir) / name for name in self.keep_files)
            self.perf_variables = {
                name: sn.make_performance_function(sn.defer(median), "us")
                for name, median in medians.items()
            }


class CampaignCheck(LaunchesCheck):
    """The same launches at every scale, of all methods at the same sizes."""

    scale = parameter([*scales.SCALES, scales.WORTHIEST], loggable=True)

    def layout(self, cores: int, extras: dict[str, Any]) -> scales.ScaleLayout:
        """Return the layout of the scale; that to measure next depends on the store."""
        if self.scale != scales.WORTHIEST:
            return super().layout(cores, extras)
        if self.operation not in RULED_OPERATIONS or not self.interleaved:
            raise scales.ScaleError("its methods do not race")
        if extras.get("fixed_layouts"):
            raise scales.ScaleError("the extras of the partition fix the layouts")

        def fits(nodes: int, ppn: int) -> bool:
            few = nodes * ppn <= scales.MOST_OVERSUBSCRIBED_PROCS and extras.get("oversubscribed")
            return nodes <= int(extras.get("max_nodes", 1)) and (ppn <= cores or bool(few))

        try:
            found = worthiest(
                self.current_partition.fullname, self.current_environ.name, fits, self.system_name
            )
        except StoreError as error:
            raise scales.ScaleError(str(error)) from error
        if found is None:
            raise scales.ScaleError("no layout that was not measured promises enough")
        return scales.ScaleLayout(*found)

    @property
    def runs(self) -> int:
        """Return the number of launches: one on a simulated machine, where all are equal."""
        return 1 if "simulated" in self.current_partition.features else self.launches

    @run_after("init")
    def mark_smoke(self) -> None:
        """Mark one short check of each operation as a smoke test of a system."""
        if self.is_first and self.scale == "1_node":
            self.tags = self.tags | {"smoke"}

    @property
    def is_first(self) -> bool:
        """Return whether this check represents its operation in a short campaign."""
        return self.operation == "spmv" or self.pattern.startswith("random:")


def default_sizes(operation: str, pattern: str) -> str:
    """Return a coarse grid of bytes per message, or for a matrix per item of a message.

    A message of a matrix has many items. An item of a product is an element of each vector.
    """
    if operation == "spmv":
        return "8,64"
    return "8:2K:x4" if pattern.startswith("matrix:") else "8:128K:x4"
