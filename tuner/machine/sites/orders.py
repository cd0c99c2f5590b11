"""Where systems with names of their own were measured, by the orders of their campaigns."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from tuner.domain.cases import NodeCores
from tuner.domain.operations import known_cores
from tuner.files import read_json
from tuner.machine.systems import VIRTUAL, unreal
from tuner.paths import results_directory

PLAN_FILES, FIXED_FILES = ("plans", ".json"), ("logs", ".order.json")
"""Directory among the results, and end of the name, of the orders of both kinds of campaigns."""


class _Case(msgspec.Struct):
    system: str


class _Call(msgspec.Struct):
    config: str = ""
    variables: dict[str, str] = {}


class _Order(_Call):
    """What a plan has itself and other orders have in their call."""

    cases: list[_Case] = []
    request: _Call | None = None
    systems: list[str] = []


class Place(NamedTuple):
    """ReFrame's name of a system, and the configuration with which it was measured last, if known.

    Neither may be in what others see of a system with a name of its own.
    """

    name: str
    config: Path | None = None


def measured_as(name: str) -> Place:
    """Return where a system was measured; its name as it is where no order has that."""
    if ":" in name:
        return Place(name)
    own, _, _ = name.partition("+")  # virtual nodes add how ranks lie
    paths = [
        path
        for directory, suffix in (PLAN_FILES, FIXED_FILES)
        for path in (results_directory() / directory).glob(f"*{suffix}")
    ]
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with suppress(OSError, ValueError):
            order = read_json(path, _Order)
            call = order.request or order
            systems = order.systems or [case.system for case in order.cases]
            if call.variables.get("system_name") == own and systems:
                return Place(systems[0], Path(call.config))
    return Place(name)


def node_cores(name: str, cpu_model: str, cores: int) -> NodeCores:
    """Return the `cores` that are stored for a system, and whether its nodes share them.

    Virtual nodes do. A name of their own says so itself, where ranks were placed, or by where they
    were measured.
    """
    shared = VIRTUAL in (unreal(name, cpu_model), unreal(measured_as(name).name, cpu_model))
    return NodeCores(known_cores(name, cores), shared)
