"""Matrix Market files as Python reads them, and partitions of their rows."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tuner.matrices import market
from tuner.matrices.market import MatrixError, Pattern, read_pattern, stem
from tuner.matrices.ownership import contiguous, strided
from tuner.matrices.partition import ownership

DATA = Path(__file__).parent / "data" / "matrix"
LINES = {  # where the reader finds what is wrong, when it is not the first line
    "column-beyond": 4,
    "column-not-integer": 3,
    "comment-among-entries": 4,
    "huge-size": 2,
    "nul-byte": 3,
    "skew-diagonal": 3,
    "surplus-entry": 4,
    "truncated": 4,
    "value-word": 4,
}


def entries(path: Path) -> list[tuple[int, int]]:
    """Positions from 0, one line after the other, with what symmetry leaves out."""
    lines = [line.split() for line in path.read_text().splitlines()]
    body = [line for line in lines[1:] if line and not line[0].startswith("%")][1:]
    found = [(int(line[0]) - 1, int(line[1]) - 1) for line in body]
    if lines[0][4].lower() != "general":
        found += [(column, row) for row, column in found if row != column]
    return sorted(found)


@pytest.mark.parametrize("path", sorted((DATA / "good").glob("*.mtx")), ids=lambda path: path.stem)
@pytest.mark.parametrize("block_bytes", [1, 40, 1 << 20])
def test_good_files(path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market, "_BLOCK_BYTES", block_bytes)
    pattern = read_pattern(path)
    assert sorted(zip(pattern.rows, pattern.columns, strict=True)) == entries(path)


@pytest.mark.parametrize(
    "path", sorted((DATA / "broken").glob("*.mtx")), ids=lambda path: path.stem
)
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_broken_files(path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market, "_BLOCK_BYTES", block_bytes)
    with pytest.raises(MatrixError) as error:
        ownership(path, read_pattern(path), "contiguous", 2)
    assert str(error.value).startswith(f"{path}:")
    if path.stem in LINES:
        assert str(error.value).startswith(f"{path}:{LINES[path.stem]}: ")


def test_a_packed_file(tmp_path: Path) -> None:
    path = DATA / "good" / "symmetric-integer.mtx"
    packed = tmp_path / "a.mtx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert np.array_equal(read_pattern(packed).rows, read_pattern(path).rows)
    assert stem(packed) == stem(tmp_path / "a.mtx") == "a"
    for bad in (packed.read_bytes()[:-20], b"no gzip"):
        packed.write_bytes(bad)
        with pytest.raises(MatrixError, match="cannot be unpacked"):
            read_pattern(packed)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"none\.mtx: cannot be read: No such file"):
        read_pattern(tmp_path / "none.mtx")


@given(st.integers(0, 200), st.integers(1, 30))
def test_rows_dealt_by_rule(count: int, procs: int) -> None:
    for owned in (contiguous(count, procs), strided(count, procs)):
        sizes = np.diff(owned.first)
        assert sizes.sum() == count
        assert sizes.max() - sizes.min() <= 1
        assert np.array_equal(owned.order[owned.first[owned.owner] + owned.place], range(count))
    assert np.all(np.diff(contiguous(count, procs).owner) >= 0)
    assert np.array_equal(strided(count, procs).owner, np.arange(count) % procs)


def square(count: int) -> Pattern:
    matrix = sparse.eye(count, format="coo")
    return Pattern((count, count), matrix.row, matrix.col)


def test_a_partition_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.part"
    path.write_text("1\n0\n1\n")
    owned = ownership(tmp_path / "a.mtx", square(3), str(path), 3)
    assert owned.owner.tolist() == [1, 0, 1]
    assert owned.place.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0\n1\n", "2 parts for the 3 rows"),
        ("0\n1\n3\n", "not from 0 to 2"),
        ("0\n-1\n1\n", "not from 0 to 2"),
        ("0\n1.5\n1\n", "not a partition"),
        ("0\nx\n1\n", "not a partition"),
        ("0\n99999999999999999999\n1\n", "not a partition"),
        ("é", "not a partition"),
    ],
)
def test_a_broken_partition(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "a.part"
    path.write_text(text)
    with pytest.raises(MatrixError, match=reason) as error:
        ownership(tmp_path / "a.mtx", square(3), str(path), 3)
    assert str(path) in str(error.value)


def test_a_partition_that_is_not_there() -> None:
    with pytest.raises(MatrixError, match="nowhere: the partition cannot be read"):
        ownership(Path("a.mtx"), square(3), "nowhere", 3)
