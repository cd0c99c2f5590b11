"""Matrix and partition files of which swpbench says in one line what is wrong."""

import gzip
from pathlib import Path

import pytest

from tests.kernels.benchrun import MATRICES, SEVEN, bench, complaint
from tests.kernels.conftest import Kernels

# File: line of the error, and words of the message.
BROKEN = {
    "array": (1, "coordinate"),
    "carriage-return-before-row": (3, "row"),
    "carriage-return-in-line": (3, "this many numbers"),
    "carriage-returns-end-lines": (3, "this many numbers"),
    "column-beyond": (4, "column"),
    "column-not-integer": (3, "column"),
    "column-with-point": (3, "column"),
    "comment-among-entries": (4, "comment"),
    "complex-without-imaginary": (3, "this many numbers"),
    "empty-file": (1, "empty"),
    "entry-of-one-number": (3, "this many numbers"),
    "file-separator": (3, "this many numbers"),
    "form-feed-in-size": (2, "size"),
    "huge-size": (2, "size"),
    "integer-too-large": (3, "value"),
    "integer-with-fraction": (3, "value"),
    "integer-with-point": (3, "value"),
    "negative-size": (2, "size"),
    "no-banner": (1, "%%MatrixMarket"),
    "no-size": (2, "ends before"),
    "nul-byte": (3, "NUL"),
    "rectangular": (2, "square"),
    "row-beyond": (3, "row"),
    "row-with-exponent": (3, "row"),
    "row-zero": (4, "row"),
    "short-banner": (1, "FIELD SYMMETRY"),
    "size-of-two": (2, "size"),
    "size-too-large": (2, "size"),
    "skew-diagonal": (3, "diagonal"),
    "skew-pattern": (1, "symmetry"),
    "surplus-entry": (4, "more entries"),
    "symmetric-rectangular": (2, "square"),
    "too-many-for-places": (2, "places"),
    "too-many-rows": (2, "rows"),
    "truncated": (4, "2 of its 3"),
    "unknown-field": (1, "field"),
    "unknown-symmetry": (1, "symmetry"),
    "upper-triangle": (4, "above the diagonal"),
    "value-missing": (3, "this many numbers"),
    "value-not-finite": (3, "finite"),
    "value-surplus": (3, "this many numbers"),
    "value-too-large": (3, "finite"),
    "value-true": (3, "value"),
    "value-word": (4, "value"),
    "vertical-tab": (3, "column"),
}


def test_every_broken_matrix_is_named_here() -> None:
    assert set(BROKEN) == {path.stem for path in MATRICES.glob("broken/*.mtx")}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_broken_matrix(any_kernels: Kernels, tmp_path: Path, name: str) -> None:
    line, words = BROKEN[name]
    path = MATRICES / "broken" / f"{name}.mtx"
    text = complaint(bench(any_kernels, tmp_path / "o", pattern=f"matrix:{path}"))
    assert text.startswith(f"swpbench: {path}:{line}: ")
    assert words in text


@pytest.mark.parametrize("path", ["/nonexistent/file.mtx", "/", "/dev/zero"])
def test_unreadable_matrix(any_kernels: Kernels, tmp_path: Path, path: str) -> None:
    assert path in complaint(bench(any_kernels, tmp_path / "o", pattern=f"matrix:{path}"))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("0\n1\n", 2, "ends before the 7 rows"),
        ("", 0, "ends before the 7 rows"),
        ("0\n1\n0\n1\n0\n1\n0\n1\n", 8, "more lines than the 7 rows"),
        ("0\n1\n2\n1\n0\n", 3, "from 0 to 1"),
        ("0\n-1\n0\n1\n0\n", 2, "from 0 to 1"),
        ("0\n1\n0 1\n1\n0\n", 3, "from 0 to 1"),
        ("0\n1\n\n1\n0\n", 3, "from 0 to 1"),
        ("0\n1\n0\n1.5\n0\n", 4, "from 0 to 1"),
        ("0\n1\n0\n1\nlast", 5, "from 0 to 1"),
        ("0\n1\0\n0\n1\n0\n", 2, "NUL"),
        ("0\n" + 70_000 * "1", 2, "over 65536 characters"),
    ],
)
def test_broken_partition(
    any_kernels: Kernels, tmp_path: Path, text: str, line: int, words: str
) -> None:
    part = tmp_path / "p"
    part.write_text(text)
    said = complaint(bench(any_kernels, tmp_path / "o", pattern=f"matrix:{SEVEN},part={part}"))
    assert said.startswith(f"swpbench: {part}:{line}: ")
    assert words in said


@pytest.mark.parametrize("named", ["4", "0", "4294967298"])
def test_partition_for_another_number_of_ranks(
    any_kernels: Kernels, tmp_path: Path, named: str
) -> None:
    part = tmp_path / f"seven.metis.{named}.part"
    part.write_text("0\n1\n0\n1\n0\n")
    said = complaint(bench(any_kernels, tmp_path / "o", pattern=f"matrix:{SEVEN},part={part}"))
    assert f"{part} is for {named} parts, but there are 2 ranks" in said


@pytest.mark.parametrize("part", ["", "strided,part=strided", "/nonexistent/p", "stridden"])
def test_unknown_partition(any_kernels: Kernels, tmp_path: Path, part: str) -> None:
    said = complaint(bench(any_kernels, tmp_path / "o", pattern=f"matrix:{SEVEN},part={part}"))
    assert "part=" in said or f"cannot open {part}" in said


@pytest.mark.parametrize(("keep", "change"), [(-6, b""), (-40, b""), (-12, b"\1\2\3\4\5\6")])
def test_broken_compression(any_kernels: Kernels, tmp_path: Path, keep: int, change: bytes) -> None:
    path = tmp_path / "m.mtx.gz"
    path.write_bytes(gzip.compress(SEVEN.read_bytes())[:keep] + change)
    said = complaint(bench(any_kernels, tmp_path / "o", pattern=f"matrix:{path}"))
    assert str(path) in said
