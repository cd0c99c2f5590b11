"""The two readers of matrices, in C and in Python, accept the same files and find the same."""

import gzip
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.conftest import Kernels
from tuner.inputs.matrices.market import MatrixError, read_pattern

MATRICES = sorted((Path(__file__).parents[1] / "data" / "matrix").glob("*/*.mtx"))
CONTENTS = [path.read_bytes() for path in MATRICES]
HEADER = b"%%MatrixMarket matrix coordinate "
LONGEST = 1 << 16

Read = Callable[[Path], str]

# What is next to what the format says, and what one language takes for a blank or a number.
PIECES = [
    *(b"\n", b" ", b"\t", b"\r", b"\r\n", b"\v", b"\f", b"\0", b"\x1c", b"\x85", b"\xa0", b"%"),
    *(b"0", b"1", b"2", b"-", b"+", b".", b"e", b"_", b"1.0", b"1e0", b"0x1", b"inf", b"nan"),
    *(b"True", b"1e400", b'"', b",", b"9223372036854775807", b"9223372036854775808"),
    *(b" 1\n", b"1 1 1\n", b"1 1\n", b"2 1 -3.5e-2\n", b"\xd9\xa3"),
]


@pytest.fixture(scope="module")
def read_in_c(any_kernels: Kernels) -> Iterator[Read]:
    with subprocess.Popen(
        [any_kernels.build / "tests/swp_matrix"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        errors="backslashreplace",
    ) as program:
        assert program.stdin
        assert program.stdout

        def read(path: Path) -> str:
            program.stdin.write(f"{path}\n")
            program.stdin.flush()
            return program.stdout.readline().rstrip("\n")

        yield read


def read_in_python(path: Path) -> str:
    """What the program in C says of an accepted file; of a refused one, why."""
    try:
        pattern = read_pattern(path)
    except MatrixError as error:
        return str(error)
    if pattern.shape[0] != pattern.shape[1]:
        return "a rectangular matrix, which only Python reads"
    words = path.read_bytes().split(None, 5)
    if words[4].lower() != b"general":  # in the file, an entry is on or below the diagonal
        own = pattern.rows >= pattern.columns
        return f"accepted {pattern.rows[own].sum()} {pattern.columns[own].sum()}"
    return f"accepted {pattern.rows.sum()} {pattern.columns.sum()}"


def assert_agreed(path: Path, read_in_c: Read) -> bool:
    """Return whether both accept the file."""
    in_c, in_python = read_in_c(path), read_in_python(path)
    if in_c.startswith("accepted") or in_python.startswith("accepted"):
        assert in_c == in_python, path.read_bytes()[:1000]
    return in_c.startswith("accepted")


@pytest.mark.parametrize("path", MATRICES, ids=lambda path: path.stem)
def test_listed_files(read_in_c: Read, path: Path) -> None:
    assert assert_agreed(path, read_in_c) == (path.parent.name == "good")


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("line", [b"1 1", HEADER + b"pattern general", b"2 2 1", b"%"])
def test_long_lines(read_in_c: Read, tmp_path: Path, line: bytes, end: bytes) -> None:
    lines = [HEADER + b"pattern general", b"%", b"2 2 1", b"1 1"]
    place = lines.index(line)
    accepted = []
    for length in (LONGEST - 1, LONGEST, LONGEST + 1):
        lines[place] = line.ljust(length)
        path = tmp_path / "a.mtx"
        path.write_bytes((end or b"\n").join(lines) + end)
        accepted.append(assert_agreed(path, read_in_c))
    carriage = end == b"\r\n"  # which is of the line
    assert accepted == [True, not carriage, False]


@pytest.mark.parametrize("content", [CONTENTS[0], b"no gzip"])
@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz"])
def test_compression_is_seen_in_the_content(
    read_in_c: Read, tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    for written in (content, gzip.compress(content)):
        path.write_bytes(written)
        assert_agreed(path, read_in_c)


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """A listed file with pieces put in or in the place of some bytes."""
    content = draw(st.sampled_from(CONTENTS))
    after_banner = content.find(b"\n") + 1
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(after_banner, max(len(content), after_banner)))
        gone = draw(st.integers(0, 3))
        piece = draw(st.sampled_from(PIECES) | st.binary(max_size=2))
        content = content[:place] + piece + content[place + gone :]
    return content


@given(content=changed())
@settings(max_examples=1000)
def test_changed_files(
    read_in_c: Read, tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.mtx"
    path.write_bytes(content)
    assert_agreed(path, read_in_c)
