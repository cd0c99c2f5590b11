"""The parameters of a system as text, as the command and the pages show them."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import msgspec

from tuner.models.loggp import LogGP
from tuner.models.maxrate import MaxRate
from tuner.models.parameter import NotIdentified, Parameter
from tuner.models.singles import UNITS, singles
from tuner.models.system import SystemModel
from tuner.units import significant, size_text

_LOGGP = {
    "L us": "latency",
    "o_s us": "overhead_send",
    "o_r us": "overhead_receive",
    "g us": "gap",
    "G ns/B": "gap_per_byte",
    "loaded g us": "loaded_gap",
    "loaded G ns/B": "loaded_gap_per_byte",
    "alpha us": "alpha",
    "beta ns/B": "beta",
    "loaded alpha us": "loaded_alpha",
    "loaded beta ns/B": "loaded_beta",
}
_MAXRATE = {"alpha us": "alpha", "B_max GB/s": "b_max", "B_inj GB/s": "b_inj", "B_N GB/s": "b_node"}


class ShownParameter(NamedTuple):
    """A parameter of a model, or of none; where a whole model was not fitted, without heading."""

    value: Parameter
    model: str = ""
    scope: str = ""
    sizes: str = ""
    heading: str = ""

    @property
    def name(self) -> str:
        """Return the heading without unit."""
        return self.heading.rpartition(" ")[0]

    @property
    def reason(self) -> str:
        """Return why it is not identified; empty when it is."""
        return self.value.reason if isinstance(self.value, NotIdentified) else ""

    @property
    def text(self) -> str:
        """Return the value with its interval; `-` when it is not identified."""
        if isinstance(self.value, NotIdentified):
            return "-"
        unit = UNITS[self.heading.rpartition(" ")[2]]
        value, *ends = (significant(unit * each) for each in msgspec.structs.astuple(self.value))
        return f"{value} [{', '.join(ends)}]"


def shown_parameters(model: SystemModel) -> Iterator[ShownParameter]:
    """Yield the parameters of each model, then the single ones, those of all ranks last."""
    for title, name, columns in (("LogGP", "loggp", _LOGGP), ("max-rate", "maxrate", _MAXRATE)):
        for scope, pair in model.pairs.items():
            fitted: LogGP | MaxRate | NotIdentified = getattr(pair, name)
            if isinstance(fitted, NotIdentified):
                yield ShownParameter(fitted, title, scope)
                continue
            for each in fitted.protocols:
                sizes = _sizes_text(each.from_bytes, each.up_to_bytes)
                for heading, field in columns.items():
                    yield ShownParameter(getattr(each, field), title, scope, sizes, heading)
    found = [
        (single, scope, getattr(part, name))
        for scope, part in [("", model), *model.pairs.items()]
        for name, single in singles(type(part)).items()
    ]
    for single, scope, value in sorted(found, key=lambda each: each[0].is_of_all_ranks):
        if model.together or not single.is_of_all_ranks:
            heading = single.heading.format(scope=scope, together=model.together)
            yield ShownParameter(value, heading=heading)


def tables(shown: Iterable[ShownParameter]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield a model's title, its headings, and rows that begin with scope and sizes."""
    fitted = (each for each in shown if each.model and each.heading)
    for title, its in groupby(fitted, lambda each: each.model):
        rows = [list(row) for _, row in groupby(its, lambda each: (each.scope, each.sizes))]
        texts = [[row[0].scope, row[0].sizes, *(each.text for each in row)] for row in rows]
        yield title, [each.heading for each in rows[0]], texts


def _sizes_text(from_bytes: int, up_to_bytes: int | None) -> str:
    if up_to_bytes is None:
        return f"from {size_text(from_bytes)}"
    return f"{size_text(from_bytes)} to {size_text(up_to_bytes)}"
