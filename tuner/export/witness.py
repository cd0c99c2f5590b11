"""Observe collective calls under an MPI library by kernels/witness.

The program is compiled with the library's own wrapper, and started with its launcher: on this
machine, or on virtual nodes for layouts with several.
"""

import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tuner.errors import SwitchpointError
from tuner.machine.mpi import FINALIZE_LIBRARY, YIELD_LIBRARY, LaunchCommand, Mpi, launch
from tuner.machine.nodes import launch as on_nodes
from tuner.machine.nodes.namespaces import Nodes
from tuner.machine.processes import answer
from tuner.paths import CHECKOUT, is_checkout

MESSAGES, CARDS, STACKS = "messages", "cards", "stacks"
"""How calls are seen: messages between ranks, bytes of nodes' cards, functions of the library."""

_SOURCES = ("witness/witness.c", "bench/base/stacks.c")
_WORKAROUNDS = {"workarounds/yield.c": YIELD_LIBRARY, "workarounds/finalize.c": FINALIZE_LIBRARY}
_SETTINGS = ("OMPI_MCA_coll_", "MPIR_CVAR_", "I_MPI_ADJUST_")
_TIMEOUT_S = 300
_TEXT = 300  # of an error that is quoted

SizedCall = tuple[str, int]
"""An operation and its bytes: of a block, or of the vector."""

Seen = dict[SizedCall, list[frozenset[str]]]
"""The words of each case, once for each time that it was asked for."""


class WitnessError(SwitchpointError):
    """Error raised when calls cannot be seen; the message says why."""


@contextmanager
def witness(mpi: Mpi) -> Iterator["Witness"]:
    """Compile the program for as long as the context lasts. Raise WitnessError."""
    if not is_checkout():
        raise WitnessError(
            "what the library runs is seen by a program of the checkout: check there"
        )
    with tempfile.TemporaryDirectory(prefix="switchpoint-witness-") as directory:
        place = Path(directory)
        _compile(mpi, _SOURCES, place / "witness")
        if (mpi.family, mpi.major) == ("mpich", 4):
            for source, library in _WORKAROUNDS.items():
                _compile(mpi, [source], place / library, "-shared", "-fPIC")
        yield Witness(mpi, place)


def _compile(mpi: Mpi, sources: Iterable[str], made: Path, *options: str) -> None:
    kernels = CHECKOUT / "kernels"
    command = [mpi.mpicc, "-std=c11", "-O1", "-rdynamic", f"-I{kernels / 'bench/base'}", *options]
    paths = [str(kernels / name) for name in sources]
    _finish([*command, *paths, "-ldl", "-lrt", "-o", str(made)], os.environ)


@dataclass(frozen=True)
class Witness:
    """The program, compiled for one MPI in a directory."""

    mpi: Mpi
    place: Path

    def start(self, layout: tuple[int, int], nodes: Nodes | None = None) -> LaunchCommand:
        """Return how it is started on so many nodes with so many processes on each.

        Raise NodesError if `nodes` do not suffice.
        """
        procs, ppn = layout[0] * layout[1], layout[1]
        if nodes is None:
            return launch(self.mpi, procs, build=self.place)
        return on_nodes.launch(nodes, self.mpi, procs, ppn, self.place)

    def see(
        self,
        how: str,
        start: LaunchCommand,
        cases: Collection[SizedCall],
        settings: Mapping[str, str],
        times: int = 1,
    ) -> Seen:
        """Return what is seen of each case, under settings of the library and no others.

        Raise WitnessError.
        """
        if how == MESSAGES:
            start = _monitored(start)
        words = [f"{operation}:{size}" for operation, size in cases for _ in range(times)]
        environment = {
            name: value
            for name, value in os.environ.items()
            if not (name.startswith(_SETTINGS) and _is_of_collectives(name))
        }
        command = [*start.argv_prefix, str(self.place / "witness"), how, *words]
        named = {(operation, str(size)): (operation, size) for operation, size in cases}
        seen: Seen = {case: [] for case in cases}
        for line in _finish(command, environment | start.env | dict(settings)).splitlines():
            match line.split():  # which may be of the library or its launcher
                case [operation, size, *found] if (operation, size) in named:
                    seen[named[operation, size]].append(frozenset(found))
        if missing := [words for words, case in named.items() if len(seen[case]) < times]:
            raise WitnessError(f"the program printed nothing of {' '.join(missing[0])}")
        return seen


def _is_of_collectives(name: str) -> bool:
    return "COLL" in name.upper() or "ALGORITHM" in name or "ADJUST" in name


def _monitored(start: LaunchCommand) -> LaunchCommand:
    """Return a start under which Open MPI counts messages."""
    argv = ["ob1,monitoring" if word == "ob1" else word for word in start.argv_prefix]
    if argv == start.argv_prefix:
        argv[1:1] = ["--mca", "pml", "ob1,monitoring"]
    return replace(start, argv_prefix=argv, env=start.env | {"OMPI_MCA_pml_monitoring_enable": "1"})


def _finish(command: list[str], environment: Mapping[str, str]) -> str:
    """Return what a program prints. Raise WitnessError if it fails."""
    done = answer(command, _TIMEOUT_S, WitnessError, env=environment)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip("- \t")]
        own = [line.removeprefix("witness: ") for line in lines if line.startswith("witness: ")]
        raise WitnessError((own or lines or ["it failed without a message"])[0][:_TEXT])
    return done.stdout
