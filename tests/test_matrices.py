"""Matrix Market files as Python reads them, and partitions of their rows."""

import gzip
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyamg.gallery import poisson
from scipy import sparse
from scipy.io import mmwrite

from tests.conftest import Require
from tuner import atomic
from tuner.inputs.matrices import market
from tuner.inputs.matrices.market import MatrixError, Pattern, read_pattern, stem
from tuner.inputs.matrices.ownership import Ownership, contiguous, strided
from tuner.inputs.matrices.partition import kept_partition, ownership
from tuner.inputs.matrices.partitioners import PartitionerError, partitioned
from tuner.inputs.structure.quality import quality

DATA = Path(__file__).parent / "data" / "matrix"
LINES = {  # where the reader finds what is wrong, when it is not the first line
    "carriage-return-before-row": 3,
    "carriage-return-in-line": 3,
    "carriage-returns-end-lines": 3,
    "column-beyond": 4,
    "column-not-integer": 3,
    "column-with-point": 3,
    "comment-among-entries": 4,
    "entry-of-one-number": 3,
    "file-separator": 3,
    "form-feed-in-size": 2,
    "huge-size": 2,
    "integer-too-large": 3,
    "integer-with-point": 3,
    "nul-byte": 3,
    "row-with-exponent": 3,
    "size-too-large": 2,
    "skew-diagonal": 3,
    "surplus-entry": 4,
    "too-many-rows": 2,
    "truncated": 4,
    "value-too-large": 3,
    "value-true": 3,
    "value-word": 4,
    "vertical-tab": 3,
}


def entries(path: Path) -> list[tuple[int, int]]:
    """Return positions from 0, one line after the other, with what symmetry leaves out."""
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
    packed.write_bytes(packed.read_bytes()[:-20])
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
        ("0\n1\n2\n1\n", "more parts than the 3 rows"),
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


@pytest.mark.parametrize("named", ["4", "0", "4294967299"])
def test_a_partition_for_another_number_of_parts(tmp_path: Path, named: str) -> None:
    path = tmp_path / f"a.graph.{named}.part"
    path.write_text("0\n1\n2\n")
    with pytest.raises(MatrixError, match=f"is for {named} parts, but there are 3 processes"):
        ownership(tmp_path / "a.mtx", square(3), str(path), 3)
    path = path.rename(tmp_path / "a.graph.03.part")
    assert ownership(tmp_path / "a.mtx", square(3), str(path), 3).owner.tolist() == [0, 1, 2]


def test_a_partition_that_is_not_there() -> None:
    with pytest.raises(MatrixError, match="nowhere: cannot be read"):
        ownership(Path("a.mtx"), square(3), "nowhere", 3)


@pytest.fixture(params=["graph", "hypergraph"])
def partitioner(request: pytest.FixtureRequest, require: Require) -> str:
    package = {"graph": "pymetis", "hypergraph": "mtkahypar"}[request.param]
    require(package, find_spec(package) is not None, "this partitioner is not installed")
    return str(request.param)


def mesh(path: Path, side: int = 24) -> Pattern:
    """Write the five-point stencil of a square, which is `side` points wide."""
    mmwrite(path, poisson((side, side)))
    return read_pattern(path)


def test_partitioners_balance_and_save_volume(tmp_path: Path, partitioner: str) -> None:
    pattern = mesh(tmp_path / "a.mtx")
    parts = partitioned(pattern, partitioner, 9, seed=1)
    assert np.array_equal(parts, partitioned(pattern, partitioner, 9, seed=1))
    assert sorted(set(parts.tolist())) == list(range(9))
    found = quality(pattern, Ownership(9, parts))
    assert found.imbalance < 0.1
    assert found.volume < quality(pattern, contiguous(len(parts), 9)).volume


def test_volume_is_connectivity_less_one(tmp_path: Path) -> None:
    pattern = mesh(tmp_path / "a.mtx", 7)
    owned = strided(49, 5)
    nets: dict[int, set[int]] = {column: {column % 5} for column in range(49)}
    for row, column in zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True):
        nets[column].add(row % 5)
    assert quality(pattern, owned).volume == sum(len(net) - 1 for net in nets.values())


def test_partitioners_at_their_ends(tmp_path: Path, partitioner: str) -> None:
    pattern = mesh(tmp_path / "a.mtx", 3)
    assert partitioned(pattern, partitioner, 1, seed=1).tolist() == [0] * 9
    with pytest.raises(PartitionerError, match="9 rows cannot be balanced over 10 parts"):
        partitioned(pattern, partitioner, 10, seed=1)
    diagonal = partitioned(square(8), partitioner, 4, seed=1)
    assert quality(square(8), Ownership(4, diagonal)).volume == 0


def test_what_metis_prints_is_not_in_documents(
    capfd: pytest.CaptureFixture[str], require: Require
) -> None:
    require("pymetis", find_spec("pymetis") is not None, "pymetis is not installed")
    rows = np.arange(9)  # in one of which, and its column, all others are
    star = Pattern((9, 9), np.append(0 * rows, rows), np.append(rows, 0 * rows))
    partitioned(star, "graph", 8, seed=1)
    print("a document")
    out, err = capfd.readouterr()
    assert out == "a document\n" and "Cannot bisect" in err


def test_a_partition_is_kept_and_made_anew_when_its_matrix_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    pattern = mesh(path, 4)
    first = kept_partition(path, pattern, "strided", 3)
    assert first.path == tmp_path / "a.strided.3.part"
    assert first.path.read_text() == "".join(f"{row % 3}\n" for row in range(16))
    again = kept_partition(path, pattern, "strided", 3)
    assert (first.reused, again.reused) == (False, True)
    assert again.partition_s == first.partition_s

    first.path.write_text("0\n" * 16)
    assert not kept_partition(path, pattern, "strided", 3).reused
    assert not kept_partition(path, pattern, "strided", 3, seed=2).reused
    larger = mesh(path, 5)
    assert len(kept_partition(path, larger, "strided", 3).parts) == 25
    first.path.with_name("a.strided.3.part.json").write_text("{")
    assert not kept_partition(path, larger, "strided", 3).reused


def test_a_partition_that_another_process_writes_meanwhile_is_not_taken_for_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.mtx"
    pattern = mesh(path, 4)

    def write_twice(place: Path, content: bytes) -> None:
        write(place, content)
        if place.suffix == ".part":
            write(place, b"0\n" * 16)

    write = atomic.write
    with monkeypatch.context() as changed:
        changed.setattr(atomic, "write", write_twice)
        kept_partition(path, pattern, "strided", 3)
    assert not kept_partition(path, pattern, "strided", 3).reused


def test_a_partition_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    pattern = mesh(path, 2)
    theirs = tmp_path / "a.strided.2.part"
    theirs.write_text("0\n0\n0\n1\n")
    with pytest.raises(MatrixError, match="was not made by"):
        kept_partition(path, pattern, "strided", 2)
    assert theirs.read_text() == "0\n0\n0\n1\n"


def test_a_partitioner_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(PartitionerError, match=r"pip install pymetis"):
        partitioned(square(4), "graph", 2, seed=1)
