"""The reader of patterns in Matrix Market files (math.nist.gov/MatrixMarket/formats.html).

It reads coordinate files: those that kernels/bench/products/matrix_market.c accepts, and also
rectangular ones. Values are checked, and not kept. Files are read and parsed in blocks; a block
that is not plainly valid is parsed line by line.
"""

import io
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
import pandas as pd

from tuner.errors import SwitchpointError
from tuner.files import open_file
from tuner.inputs.matrices.packed import unpacked
from tuner.stats import Floats, Integers
from tuner.units import parse_number

Indices = Integers

BANNER = "%%MatrixMarket"
SUFFIXES = (".mtx.gz", ".mtx")

_VALUES = {"real": 1, "integer": 1, "complex": 2, "pattern": 0}  # numbers of each entry
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_BLOCK_BYTES = 1 << 24
_LARGEST = 2**61 - 1
_ROWS_MOST, _ROWS_PER_ENTRY_MOST = 1 << 20, 64  # rows take memory, a size line does not
_LINE_BYTES = 1 << 16
_INTEGER = re.compile(r"([-+]?)0*([0-9]{1,19})")
_PLAIN = b"0123456789+-.eE \t\n"  # all that pandas may see: it takes other blanks and words too
_NEAR_LARGEST = 1e308  # rounding beyond it may differ


class MatrixError(SwitchpointError):
    """Error raised when a matrix cannot be read, made or used; the message says what to do."""


@dataclass(frozen=True)
class Pattern:
    """The entries of a sparse matrix: the i-th is at rows[i], columns[i], both from 0.

    Entries that the file leaves to symmetry are included. A position that the file has twice is
    there twice.
    """

    shape: tuple[int, int]
    rows: Indices
    columns: Indices


def stem(path: Path) -> str:
    """Return the file's name without the suffixes of Matrix Market files: `a.mtx.gz` → `a`."""
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.stem


def read_pattern(path: Path) -> Pattern:
    """Read the pattern of a file.

    Raises:
        MatrixError: it cannot be read or is malformed, with the line.
    """
    with open_lines(path) as lines:
        return _EntryReader(path, lines).read()


@contextmanager
def open_lines(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked on the way when it is compressed by gzip.

    Raises:
        MatrixError: it cannot be read, also later on.
    """
    try:
        with open_file(path) as file:
            yield unpacked(file)
    except (EOFError, zlib.error) as error:
        raise MatrixError(f"{path}: cannot be unpacked: {error}") from error
    except OSError as error:
        raise MatrixError(f"{path}: cannot be read: {error.strerror or error}") from error


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield blocks of whole lines; only one that is too long may be cut."""
    while block := file.read(_BLOCK_BYTES):
        yield block + file.readline(_LINE_BYTES + 2)


def has_long_line(block: bytes) -> bool:
    """Return whether a line is too long, by one step for many short lines."""
    start = 0
    while len(block) - start > _LINE_BYTES:
        end = block.rfind(b"\n", start, start + _LINE_BYTES + 1)
        if end < 0:
            return True
        start = end + 1
    return False


class _EntryReader:
    """One pass over a file."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        self.line = 0

    def refuse(self, what: str) -> NoReturn:
        """Raise MatrixError with file and line."""
        raise MatrixError(f"{self.path}:{self.line}: {what}")

    def read(self) -> Pattern:
        self._read_banner()
        self._read_size()
        blocks = list(self._read_entries())
        rows, columns = np.concatenate(blocks, axis=1)
        del blocks
        if self.symmetry != "general":
            mirrored = rows != columns
            rows, columns = (
                np.concatenate((rows, columns[mirrored])),
                np.concatenate((columns, rows[mirrored])),
            )
        return Pattern(self.shape, rows, columns)

    def _next_line(self) -> list[str] | None:
        """Return the next line's words; None at the end of the file."""
        line = self.file.readline(_LINE_BYTES + 2)
        self.line += bool(line)
        return self._words(line.removesuffix(b"\n")) if line else None

    def _words(self, line: bytes) -> list[str]:
        if b"\0" in line:
            self.refuse("a NUL byte: this is not a text file")
        if len(line) > _LINE_BYTES:
            self.refuse(f"a line of over {_LINE_BYTES} characters: the file has another format")
        return re.findall("[^ \t]+", line.rstrip(b"\r").decode("ascii", "replace"))

    def _read_banner(self) -> None:
        words = self._next_line()
        if words is None:
            self.line = 1
            self.refuse("the file is empty")
        if not words or words[0].lower() != BANNER.lower():
            self.refuse(f"the first line does not begin with {BANNER}")
        if len(words) != 5:
            self.refuse(f'the first line is not "{BANNER} matrix coordinate FIELD SYMMETRY"')
        kind, form, field, symmetry = (word.lower() for word in words[1:])
        if (kind, form) != ("matrix", "coordinate"):
            self.refuse('only "matrix coordinate" files can be read')
        if field not in _VALUES:
            self.refuse(f"the field is none of {', '.join(_VALUES)}")
        if symmetry not in _SYMMETRIES:
            self.refuse(f"the symmetry is none of {', '.join(_SYMMETRIES)}")
        if (field == "pattern" and symmetry not in _SYMMETRIES[:2]) or (
            field != "complex" and symmetry == "hermitian"
        ):
            self.refuse("this field cannot have this symmetry")
        self.field, self.symmetry = field, symmetry

    def _read_size(self) -> None:
        words = self._next_line()
        while words is not None and (not words or words[0].startswith("%")):
            words = self._next_line()
        if words is None:
            self.refuse("the file ends before the line with the size")
        size = [_whole(word) for word in words]
        rows, columns, entries = size if len(size) == 3 else (0, 0, 0)
        if not (1 <= rows <= _LARGEST and 1 <= columns <= _LARGEST and 0 <= entries <= _LARGEST):
            self.refuse('the size is not "ROWS COLUMNS ENTRIES", at least 1 1 0')
        if self.symmetry != "general" and rows != columns:
            self.refuse("a symmetric matrix is square")
        if entries > rows * columns:
            self.refuse("more entries than the matrix has places")
        if rows > _ROWS_MOST + _ROWS_PER_ENTRY_MOST * entries:
            self.refuse(f"more rows than {_ROWS_MOST} plus {_ROWS_PER_ENTRY_MOST} for each entry")
        self.shape, self.entries = (rows, columns), entries

    def _read_entries(self) -> Iterator[Indices]:
        """Yield rows and columns, from 0, of the file's own entries."""
        count = 0
        yield np.empty((2, 0), dtype=np.int64)
        for block in blocks(self.file):
            entries = self._parse(block)
            if count + entries.shape[1] > self.entries:
                self._find_surplus(block, self.entries - count)
            count += entries.shape[1]
            self.line += block.count(b"\n") + (not block.endswith(b"\n"))
            yield entries
        if count < self.entries:
            self.refuse(f"the file ends after {count} of its {self.entries} entries")

    def _parse(self, block: bytes) -> Indices:
        """Parse all lines at once.

        When something may be wrong they are parsed one by one, to report what and where.
        """
        plain = block.replace(b"\r\n", b"\n")
        if plain.translate(None, _PLAIN) or has_long_line(block):
            return self._parse_lines(block)
        numbers = 2 + _VALUES[self.field]
        values = {} if self.field == "integer" else dict.fromkeys(range(2, numbers), np.float64)
        try:
            frame = pd.read_csv(
                io.BytesIO(plain),
                sep=r"\s+",
                header=None,
                dtype=values,  # integers are recognized: if told, pandas would take 1.0 for one
                quoting=3,
                na_filter=False,
                engine="c",
            )
        except pd.errors.EmptyDataError:
            return np.empty((2, 0), dtype=np.int64)
        except (ValueError, OverflowError):
            return self._parse_lines(block)
        if list(frame.dtypes) != [values.get(place, np.int64) for place in range(numbers)]:
            return self._parse_lines(block)
        positions = frame[[0, 1]].to_numpy().T - 1
        if not self._valid(positions, frame.iloc[:, 2:].to_numpy()):
            return self._parse_lines(block)
        return positions

    def _valid(self, positions: Indices, values: Floats) -> bool:
        rows, columns = positions
        inside = rows.min() >= 0 and rows.max() < self.shape[0]
        inside &= columns.min() >= 0 and columns.max() < self.shape[1]
        lower = {"general": True, "skew-symmetric": np.all(rows > columns)}
        return bool(
            inside
            and lower.get(self.symmetry, np.all(rows >= columns))
            and (self.field == "integer" or np.all(np.abs(values) < _NEAR_LARGEST))
        )

    def _parse_lines(self, block: bytes) -> Indices:
        entries = []
        before = self.line
        for line in _lines(block):
            self.line += 1
            if words := self._words(line):
                entries.append(self._entry(words))
        self.line = before
        return np.array(entries, dtype=np.int64).reshape(-1, 2).T

    def _entry(self, words: list[str]) -> tuple[int, int]:
        if words[0].startswith("%"):
            self.refuse("a comment among the entries")
        if len(words) != 2 + _VALUES[self.field]:
            self.refuse("an entry of this field does not have this many numbers")
        row, column = _whole(words[0]), _whole(words[1])
        if not 1 <= row <= self.shape[0]:
            self.refuse("the row is not an integer from 1 to the number of rows")
        if not 1 <= column <= self.shape[1]:
            self.refuse("the column is not an integer from 1 to the number of columns")
        if not all(_is_value(self.field, word) for word in words[2:]):
            self.refuse("a value is not a finite number of the file's field")
        if self.symmetry != "general" and row < column:
            self.refuse("an entry above the diagonal of a symmetric matrix")
        if self.symmetry == "skew-symmetric" and row == column:
            self.refuse("an entry on the diagonal of a skew-symmetric matrix")
        return row - 1, column - 1

    def _find_surplus(self, block: bytes, left: int) -> NoReturn:
        for line in _lines(block):
            self.line += 1
            left -= bool(self._words(line))
            if left < 0:
                break
        self.refuse("more entries than the size line says")


def _lines(block: bytes) -> list[bytes]:
    return block.removesuffix(b"\n").split(b"\n")


def _integer(word: str) -> int | None:
    """Return the 64-bit decimal integer that the whole word is."""
    found = _INTEGER.fullmatch(word)
    number = int("".join(found.groups())) if found else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _whole(word: str) -> int:
    """Return a decimal integer; -1, which no size or index is, for anything else."""
    number = _integer(word)
    return -1 if number is None else number


def _is_value(field: str, word: str) -> bool:
    if field == "integer":
        return _integer(word) is not None
    try:
        return math.isfinite(parse_number(word))
    except ValueError:
        return False
