"""The comments in which a file for an MPI library states its rules, for its readers and its check.

They hold what its own form cannot: layouts, and the names of algorithms that it has by number.
"""

import re
from typing import NamedTuple


class Exported(NamedTuple):
    """What the library is to run on a layout, from `low` to `high` bytes (None: unbounded)."""

    operation: str
    nodes: int
    ppn: int
    low: int
    high: int | None
    algorithm: str

    def __str__(self) -> str:
        high = "any" if self.high is None else self.high
        return (
            f"{self.operation} on {self.nodes} x {self.ppn}, {self.low} to {high} B: "
            f"{self.algorithm}"
        )


_LINE = re.compile(r"^\W*rule: (\w+) on (\d+) x (\d+), (\d+) to (\d+|any) B: (\S+)$", re.MULTILINE)


def stated_in(text: str) -> list[Exported]:
    """Return the rules that the comments of a file state."""
    return [
        Exported(op, int(nodes), int(ppn), int(low), None if high == "any" else int(high), name)
        for op, nodes, ppn, low, high, name in _LINE.findall(text)
    ]
