"""The methods that can be counted, by the specs that the library takes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tuner.errors import SwitchpointError
from tuner.inputs.structure import grid as grids
from tuner.inputs.structure.direct import direct
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.nap import nap
from tuner.inputs.structure.stfw import stfw
from tuner.inputs.structure.traffic import MessageStage, Traffic


class MethodError(SwitchpointError):
    """Error raised when a method spec cannot be counted; the message says why."""


@dataclass(frozen=True)
class Method:
    """A method on a number of processes. No process exceeds `message_bound`, if it is known."""

    spec: str
    layout: str
    message_bound: int | None
    stages: Callable[[Halo, int], Iterator[MessageStage]]
    """A function that yields a halo's messages, with so many processes per node."""

    def count(self, halo: Halo, ppn: int) -> Traffic:
        """Return the counts of a halo's messages, with `ppn` processes per node."""
        return Traffic(halo, ppn, self.stages(halo, ppn))


def standard_specs(procs: int) -> list[str]:
    """Return `direct`, `stfw` with each possible number of dimensions, and `nap`."""
    return ["direct", *stfw_specs(procs), "nap"]


def stfw_specs(procs: int) -> list[str]:
    """Return `stfw` with each number of dimensions; the most, ⌊lg procs⌋, have a radix of 2."""
    most = procs.bit_length() - 1
    return [*(f"stfw:dims={n}" for n in range(2, most)), *["stfw:radix=2"] * (most > 1)]


def method(spec: str, procs: int) -> Method:
    """Return the method of a spec on `procs` processes.

    Raises:
        MethodError: the spec cannot be counted, or is not applicable there.
    """
    if spec == "direct":
        return Method(spec, "", max(procs - 1, 0), direct)
    if spec.startswith("stfw"):
        return _stfw(spec, procs)
    if found := re.fullmatch(r"nap(?::sharing=(yes|no))?", spec):
        return Method(spec, "", None, partial(nap, sharing=found[1] != "no"))
    raise _not_counted(spec)


def stfw_grid(spec: str, procs: int) -> grids.Grid:
    """Return the grid of a spec of `stfw`.

    Raises:
        MethodError: it is none, or there is no such grid.
    """
    found = re.fullmatch(
        r"stfw(?::(?:dims=([0-9]{1,9})|radix=([0-9]{1,5})|grid=([0-9]{1,9}(?:x[0-9]{1,9})*)))?",
        spec,
    )
    if found is None:
        raise _not_counted(spec)
    dims, radix, sizes = found.groups()
    if sizes:
        grid = grids.from_sizes(procs, tuple(map(int, sizes.split("x"))))
    elif radix:
        grid = grids.of_radix(procs, int(radix))
    elif (count := int(dims or 2)) > 1:
        grid = grids.choose(procs, count)
    else:
        grid = None
    if grid is None:
        raise MethodError(f"{spec} has no grid for {procs} processes")
    return grid


def _not_counted(spec: str) -> MethodError:
    return MethodError(
        f"{spec}: methods counted from a pattern are direct, stfw, stfw:dims=N, stfw:radix=N, "
        "stfw:grid=AxB…, nap and nap:sharing=no"
    )


def _stfw(spec: str, procs: int) -> Method:
    grid = stfw_grid(spec, procs)
    layout = f"{grid}" if grid.complete else f"{grid} incomplete"
    return Method(spec, layout, grid.message_bound, lambda halo, ppn: stfw(halo, grid))
