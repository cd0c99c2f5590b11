"""The expected features of patterns, computed independently of swpbench."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OracleHalo:
    """The items by (sender, receiver)."""

    procs: int
    items: dict[tuple[int, int], int]

    def features(self, item_bytes: int) -> dict[str, float]:
        """Return the features as in a case record."""
        messages: dict[int, int] = defaultdict(int)
        volume: dict[int, int] = defaultdict(int)
        for (sender, _), items in self.items.items():
            messages[sender] += 1
            volume[sender] += items * item_bytes
        return {
            "mmax": max(messages.values(), default=0),
            "mavg": sum(messages.values()) / self.procs,
            "vavg_bytes": sum(volume.values()) / self.procs,
            "vmax_bytes": max(volume.values(), default=0),
        }

    def mean_bytes(self, item_bytes: int) -> int:
        """Return the mean payload of a message, rounded down."""
        total = sum(self.items.values()) * item_bytes
        return total // len(self.items) if self.items else 0


def read_entries(path: Path) -> tuple[int, list[tuple[int, int]]]:
    """Return rows and the positions of all entries, mirrored ones included, from 1."""
    lines = [line.split() for line in path.read_text().splitlines()]
    mirrored = lines[0][4].lower() != "general"
    body = [line for line in lines[1:] if line and not line[0].startswith("%")]
    entries = [(int(line[0]), int(line[1])) for line in body[1:]]
    if mirrored:
        entries += [(column, row) for row, column in entries]
    return int(body[0][0]), entries


def blocks(count: int, procs: int) -> list[int]:
    """Return the owner of each of `count` items, in contiguous blocks, the first ones larger."""
    sizes = [count // procs + (rank < count % procs) for rank in range(procs)]
    return [rank for rank, size in enumerate(sizes) for _ in range(size)]


def matrix_halo(path: Path, procs: int, owners: list[int] | None = None) -> OracleHalo:
    """Return what the product of the matrix with a vector needs from other ranks.

    Rows are in blocks by default.
    """
    rows, entries = read_entries(path)
    owner = blocks(rows, procs) if owners is None else owners
    needed: dict[tuple[int, int], set[int]] = defaultdict(set)
    for row, column in entries:
        needed[owner[column - 1], owner[row - 1]].add(column)
    return OracleHalo(
        procs, {pair: len(items) for pair, items in needed.items() if pair[0] != pair[1]}
    )


def stencil_halo(grid: tuple[int, ...], points: int, edge: int) -> OracleHalo:
    """Return the halo of blocks of edge^dim points on an open grid of ranks."""
    procs = 1
    for size in grid:
        procs *= size
    places = [_place(rank, grid) for rank in range(procs)]
    star = points == 2 * len(grid) + 1
    items = {}
    for sender, a in enumerate(places):
        for receiver, b in enumerate(places):
            steps = [abs(x - y) for x, y in zip(a, b, strict=True)]
            moved = sum(steps)
            if moved and max(steps) == 1 and not (star and moved > 1):
                items[sender, receiver] = edge ** (len(grid) - moved)
    return OracleHalo(procs, items)


def _place(rank: int, grid: tuple[int, ...]) -> tuple[int, ...]:
    place = []
    for size in reversed(grid):
        rank, coordinate = divmod(rank, size)
        place.append(coordinate)
    return tuple(reversed(place))
