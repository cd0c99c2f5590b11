"""The comments in which a file for an MPI library states its rules, for its readers and its check.

They hold what its own form cannot: layouts, and the names of algorithms that it has by number.
"""

import re
from typing import NamedTuple


class Exported(NamedTuple):
    """A rule for the library on a layout, from `low` to `high` bytes (None: no limit).

    An inferred rule is for all process counts up to those of a last layout.
    """

    operation: str
    nodes: int
    ppn: int
    low: int
    high: int | None
    algorithm: str
    inferred: bool = False
    last_nodes: int = 0
    last_ppn: int = 0

    def __str__(self) -> str:
        high = "any" if self.high is None else self.high
        last = f" to {self.last_nodes} x {self.last_ppn}" if self.last_nodes else ""
        return (
            f"{self.operation} on {self.nodes} x {self.ppn}{last}, {self.low} to {high} B: "
            f"{self.algorithm}{', inferred' if self.inferred else ''}"
        )

    def ends(self) -> list["Exported"]:
        """Return the rule on its first layout alone, and on its last."""
        first = self._replace(last_nodes=0, last_ppn=0)
        last = first._replace(nodes=self.last_nodes, ppn=self.last_ppn)
        return [first, last] if self.last_nodes else [first]


_N = r"[0-9]{1,18}"
_LINE = re.compile(
    rf"^[^\w\n]*rule: (\w+) on ({_N}) x ({_N})(?: to ({_N}) x ({_N}))?, ({_N}) to ({_N}|any) B: "
    r"([^\s,]+)(, inferred)?$",
    re.MULTILINE,
)


def stated_in(text: str) -> list[Exported]:
    """Return the rules that the comments of a file state."""
    return [
        Exported(
            *(operation, int(nodes), int(ppn), int(low), None if high == "any" else int(high)),
            *(algorithm, bool(inferred), int(last_nodes or 0), int(last_ppn or 0)),
        )
        for operation, nodes, ppn, last_nodes, last_ppn, low, high, algorithm, inferred in (
            _LINE.findall(text)
        )
    ]
