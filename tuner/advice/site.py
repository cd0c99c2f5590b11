"""Places where an application's processes run, and the start of measurements there."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join

from tuner.advice.profile import Shape
from tuner.advice.running import Application
from tuner.machine import mpi as this_machine
from tuner.machine.mpi import LaunchCommand, available_cores, needed
from tuner.machine.nodes import launch as virtual
from tuner.machine.nodes.namespaces import Nodes, NodesError, meant
from tuner.machine.sites.configuration import host_stem
from tuner.machine.sites.environments import reframe_name
from tuner.machine.sites.jobs import cpus_on_node
from tuner.machine.systems import LOCAL, BuiltKernels

_EXEC = ["nodes", "exec"]  # of `switchpoint`, which starts ranks on virtual nodes


@dataclass(frozen=True)
class Site:
    """The system on which an application runs, by ReFrame's name, and how ranks start there.

    That is this machine, its virtual nodes, or whatever another launcher reaches, such as the nodes
    of a job.
    """

    app: Application
    kernels: BuiltKernels
    system: str
    nodes: Nodes | None = None
    cores: int | None = None  # of a node, as recorded with the system

    @classmethod
    def of(
        cls, app: Application, kernels: BuiltKernels, name: str = "", cores: int | None = None
    ) -> Site:
        """Return the site of an application; `name` and `cores` are of a system that is known.

        Raise NodesError: the virtual nodes that the launcher is for are not up.
        """
        if (nodes := _nodes_of(app.launcher)) is not None:
            over = app.procs > available_cores()
            its = needed(app.mpi, app.build, oversubscribed=over, over_tcp=True)
            app = replace(app, preloads=its)
        return cls(app, kernels, system_at(app.launcher, name), nodes, cores)

    def is_oversubscribed(self, shape: Shape) -> bool:
        """Return whether a communicator alone, as it is measured, has more processes than cores."""
        cores = available_cores()
        if self.nodes:  # see checks/config/nodes.py
            cores = max(2, cores // self.nodes.count)
        elif self.app.launcher:
            cores = cpus_on_node() or cores
        return shape.ppn > cores

    def start(self, nodes: int, ppn: int, procs: int) -> LaunchCommand | None:
        """Return how ranks start on a layout; None where the launcher does not know layouts."""
        mpi, build = self.kernels.mpi, self.kernels.root
        if nodes != -(-procs // ppn):
            return None
        if self.nodes:
            try:
                return virtual.launch(self.nodes, mpi, procs, ppn, build)
            except NodesError:
                return None
        if not self.app.launcher:
            return this_machine.launch(mpi, procs, build=build) if nodes == 1 else None
        if procs == self.app.procs:
            layout = []  # that of the application
        elif Path(self.app.launcher[0]).name == "srun" and nodes * ppn == procs:
            layout = [f"--nodes={nodes}", f"--ntasks-per-node={ppn}"]
        else:
            return None
        return LaunchCommand([*self.app.launcher, *layout, "-n", str(procs)])


def system_at(launcher: Sequence[str], name: str = "") -> str:
    """Return ReFrame's name of the system that a launcher reaches; `name` where that was chosen.

    Raise NodesError: the virtual nodes that the launcher is for are not up.
    """
    if not launcher:
        return LOCAL
    nodes = _nodes_of(launcher)
    return f"{virtual.VIRTUAL_NODES}:{nodes.partition}" if nodes else name or _here(launcher)


def _nodes_of(launcher: Sequence[str]) -> Nodes | None:
    """Return the virtual nodes on which `switchpoint nodes exec` starts ranks, None for others.

    Raise NodesError: they are not up, or an option has no value.
    """
    words = list(launcher)
    at = next((n for n in range(len(words)) if words[n : n + len(_EXEC)] == _EXEC), None)
    if at is None:
        return None
    options = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    options.add_argument("--name")
    try:
        named, _ = options.parse_known_args(words[at + len(_EXEC) :])
    except argparse.ArgumentError as error:
        raise NodesError(f"--launcher {join(launcher)}: {error}") from error
    return meant(named.name)


def _here(launcher: Sequence[str]) -> str:
    """Return a name made of host and partition, as `switchpoint site init` makes them."""
    partition = os.environ.get("SLURM_JOB_PARTITION") or Path(launcher[0]).name
    return f"{reframe_name(host_stem())}:{reframe_name(partition)}"
