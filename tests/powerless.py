"""What a disk may hold after a loss of power, of changes that faults.c recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

SECTOR_BYTES = 512  # written whole or not at all


@dataclass(frozen=True)
class FileChange:
    """A change of a file, in the order of the program that made it."""

    kind: str  # make, cut, write, move, delete or sync
    offset: int
    path: Path
    second: Path  # where it moves to
    data: bytes


def changes(record: Path) -> list[FileChange]:
    """Return the changes that were recorded."""
    found, rest = [], record.read_bytes()
    while rest:
        head, path, second, rest = rest.split(b"\0", 3)
        kind, offset, count = head.split()
        data, rest = rest[: int(count)], rest[int(count) :]
        places = Path(path.decode()), Path(second.decode())
        found.append(FileChange(kind.decode(), int(offset), *places, data))
    return found


class Disk:
    """Files below a directory as programs see them, and what of them is sure to be on the disk.

    Data is sure once its file was synced. Until then each sector of each write, and each cut, is
    there or not. Names change in their order, as file systems with a journal have it; they are sure
    up to the last sync of a directory.
    """

    def __init__(self, directory: Path) -> None:
        self._sure: dict[int, bytes] = {}
        self._names: dict[Path, int] = {}
        for path in directory.rglob("*"):
            if path.is_file():
                self._names[path] = len(self._sure)
                self._sure[len(self._sure)] = path.read_bytes()
        self._open: dict[int, list[FileChange]] = defaultdict(list)
        self._sure_names = dict(self._names)
        self._moves: list[dict[Path, int]] = []  # the names after each change of them

    def apply(self, change: FileChange) -> None:
        """Let a program make a change."""
        number = self._names.get(change.path)
        match change.kind:
            case "make":
                self._names[change.path] = len(self._sure)
                self._sure[len(self._sure)] = b""
            case "delete":
                self._names.pop(change.path, None)
            case "move":
                self._names[change.second] = self._names.pop(change.path)
            case "sync" if number is None:  # a directory
                self._sure_names = dict(self._names)
                self._moves.clear()
            case "sync":
                self._sure[number] = _after(self._sure[number], self._open.pop(number, []))
            case _ if number is not None:  # else it has no name any more
                self._open[number].append(change)
        if change.kind in ("make", "delete", "move"):
            self._moves.append(dict(self._names))

    def seen(self) -> dict[Path, bytes]:
        """Return each file as programs see it."""
        return {
            path: _after(self._sure[number], self._open.get(number, ()))
            for path, number in self._names.items()
        }

    def lose_power(self, random: Random) -> dict[Path, bytes]:
        """Return each file as it may be when the machine starts again."""
        names = random.choice([self._sure_names, *self._moves])
        return {
            path: _after(self._sure[number], _survivors(self._open.get(number, ()), random))
            for path, number in names.items()
        }


def _survivors(changes: Sequence[FileChange], random: Random) -> Iterable[FileChange]:
    share = random.choice([0.0, 0.5, 0.95])  # of what reached the disk
    for change in changes:
        for piece in _sectors(change) if change.kind == "write" else [change]:
            if random.random() < share:
                yield piece


def _sectors(change: FileChange) -> Iterable[FileChange]:
    begin, end = change.offset, change.offset + len(change.data)
    while begin < end:
        until = min(end, (begin // SECTOR_BYTES + 1) * SECTOR_BYTES)
        data = change.data[begin - change.offset : until - change.offset]
        yield FileChange("write", begin, change.path, change.second, data)
        begin = until


def _after(content: bytes, changes: Iterable[FileChange]) -> bytes:
    held = bytearray(content)
    for change in changes:
        if change.kind == "cut":
            held[change.offset :] = bytes(max(0, change.offset - len(held)))
        else:
            held.extend(bytes(max(0, change.offset - len(held))))
            held[change.offset : change.offset + len(change.data)] = change.data
    return bytes(held)
