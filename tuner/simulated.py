"""Simulated machines: SimGrid's SMPI runs the kernels on the model of a torus.

Nothing there is measured: times follow from latency, bandwidth and an overhead of each message,
and are the same to the last digit at every run.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tuner.mpi import Launch, Mpi, build_root

SYSTEM = "simulated"  # ReFrame's name of all simulated machines
TOOLCHAIN = "simgrid.cmake"  # of the kernels, for CMake


@dataclass(frozen=True)
class Torus:
    """A 3-D torus of nodes with `cores` ranks each; links have latency and bandwidth."""

    sizes: tuple[int, int, int]
    cores: int = 16
    latency_s: float = 0.5e-6
    bytes_per_s: float = 12.5e9
    loopback_latency_s: float = 0.3e-6
    loopback_bytes_per_s: float = 10e9
    overhead_s: float = 0.5e-6  # of each send and of each receive

    @property
    def nodes(self) -> int:
        """How many there are."""
        return math.prod(self.sizes)

    @property
    def name(self) -> str:
        """As the partition is called: torus-4x4x2."""
        return f"torus-{'x'.join(map(str, self.sizes))}"


TORUS = Torus((4, 4, 2))
MACHINES = {torus.name: torus for torus in (TORUS,)}

# What SMPI leaves out by default, or does in ways that take quadratic time to compute.
SETTINGS = {
    "network/model": "CM02",
    "smpi/simulate-computation": "no",
    "smpi/wtime": "0",
    "smpi/test": "0",
    "smpi/iprobe": "2e-7",
    "smpi/grow-injected-times": "no",
    "smpi/coll-selector": "ompi",
    "smpi/allreduce": "rdb",
    "smpi/reduce": "binomial",
    "smpi/bcast": "binomial_tree",
    "contexts/stack-size": "256",
}


def machine(name: str) -> Torus:
    """The machine that a partition is called after. Raises ValueError when there is none."""
    if name not in MACHINES:
        raise ValueError(f"no simulated machine {name!r}; there is {', '.join(MACHINES)}")
    return MACHINES[name]


def launch(torus: Torus, mpi: Mpi, procs: int, ppn: int) -> Launch:
    """How to simulate `procs` ranks, `ppn` on each node beginning with the first.

    The launcher ends with success even where all ranks wait for ever or one aborts: what counts is
    the closing record of a raw file.

    Raises:
        ValueError: the torus has no room for the ranks.
    """
    if procs < 1 or ppn < 1 or -(-procs // ppn) > torus.nodes:
        raise ValueError(f"{torus.name} has no room for {procs} processes, {ppn} on a node")
    platform, hosts = _write(torus, ppn)
    overhead = f"0:{torus.overhead_s:g}:0"
    settings = SETTINGS | {f"smpi/{what}": overhead for what in ("os", "ois", "or")}
    options = [f"--cfg={name}:{value}" for name, value in settings.items()]
    files = ["-platform", str(platform), "-hostfile", str(hosts)]
    return Launch([mpi.mpiexec, *files, *options, "--log=root.thresh:warning", "-np", str(procs)])


def _write(torus: Torus, ppn: int) -> tuple[Path, Path]:
    """The files of a machine, written where everything built lies."""
    directory = build_root() / "simulated"
    directory.mkdir(parents=True, exist_ok=True)
    platform, hosts = directory / f"{torus.name}.xml", directory / f"{torus.name}-{ppn}.hosts"
    for path, text in (
        (platform, _platform(torus)),
        (hosts, "".join(f"node{number}:{ppn}\n" for number in range(torus.nodes))),
    ):
        if not path.is_file() or path.read_text() != text:
            # Aside and renamed: launches beside this one read whole files only.
            partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
            partial.write_text(text)
            partial.replace(path)
    return platform, hosts


def _platform(torus: Torus) -> str:
    import jinja2  # here, because all launches know of this module, and few simulate

    loader = jinja2.PackageLoader("templates", "")
    environment = jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, autoescape=True
    )
    template = environment.get_template("torus.xml.j2")
    return template.render(asdict(torus), nodes=torus.nodes)
