"""The readers of matrices and partitions, in C and in Python, accept and find the same."""

import gzip
import subprocess
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Require
from tests.kernels.conftest import Kernels
from tuner.inputs.matrices.market import MatrixError, open_lines, read_pattern
from tuner.inputs.matrices.packed import PIECE_BYTES
from tuner.inputs.matrices.partition import read_parts

MATRICES = sorted((Path(__file__).parents[1] / "data" / "matrix").glob("*/*.mtx"))
CONTENTS = [path.read_bytes() for path in MATRICES]
HEADER = b"%%MatrixMarket matrix coordinate "
LONGEST = 1 << 16
SMALL = HEADER + b"pattern general\n2 2 1\n2 1\n"
ROWS, PARTS = 4, 3  # of partitions, as in kernels/tests/parsers/bench.c

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
    """Return what the program in C says of an accepted file; of a refused one, why."""
    try:
        pattern = read_pattern(path)
    except MatrixError as error:
        return str(error)
    if pattern.shape[0] != pattern.shape[1]:
        return "a rectangular matrix, which only Python reads"
    with open_lines(path) as lines:
        symmetry = lines.readline().split()[4]
    if symmetry.lower() != b"general":  # in the file, an entry is on or below the diagonal
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


@pytest.fixture(scope="module")
def unpacking(read_in_c: Read, require: Require, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where the kernels cannot unpack."""
    path = tmp_path_factory.mktemp("packed") / "a.mtx"
    path.write_bytes(gzip.compress(SMALL))
    require("zlib", "without zlib" not in read_in_c(path), "the kernels were built without it")


@pytest.mark.usefixtures("unpacking")
@pytest.mark.parametrize(("content", "accepted"), [(SMALL, True), (b"no gzip", False)])
@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz"])
def test_compression_is_seen_in_the_content(
    read_in_c: Read, tmp_path: Path, name: str, content: bytes, accepted: bool
) -> None:
    path = tmp_path / name
    for written in (content, gzip.compress(content)):
        path.write_bytes(written)
        assert assert_agreed(path, read_in_c) == accepted


def packed(content: bytes, flags: int = 0, announced: bytes = b"") -> bytes:
    """Return a member of gzip's form, with flags and what they announce."""
    member = gzip.compress(content, mtime=0)
    return member[:3] + bytes([flags]) + member[4:10] + announced + member[10:]


MEMBER = packed(SMALL)
CHECK, EXTRA, NAME, COMMENT, RESERVED = 2, 4, 8, 16, 128
CHECKED = (zlib.crc32(packed(b"", CHECK)[:10]) & 0xFFFF).to_bytes(2, "little")
FIRST, LAST = SMALL[:-4], SMALL[-4:]
FULL = packed(SMALL.replace(b"\n", b"\n%%\n" + b"%\n" * (PIECE_BYTES - len(SMALL) // 2 - 2), 1))
"""A member whose content fills the buffer into which zlib unpacks, of two pieces."""


def of_bytes(size: int) -> bytes:
    """Return a member of the first lines that has this many bytes."""
    return packed(FIRST, COMMENT, b"x" * (size - len(packed(FIRST)) - 1) + b"\0")


@pytest.mark.parametrize(
    ("content", "accepted"),
    [
        *((MEMBER + rest, True) for rest in (b"x", b"\n", b"\x1f", b"\0\0", LAST)),
        (MEMBER + MEMBER, False),
        (MEMBER.ljust(PIECE_BYTES, b"x") + MEMBER, True),
        (packed(FIRST) + packed(LAST), True),
        (packed(FIRST) + bytes(4) + packed(LAST), False),
        (b"".join(packed(bytes([byte])) for byte in SMALL), True),
        (packed(b"") + MEMBER + packed(b""), True),
        *((of_bytes(PIECE_BYTES + more) + packed(LAST), True) for more in (-2, -1, 0, 1)),
        *((MEMBER[:size], False) for size in (1, 2, 9, 10, len(MEMBER) - 8, len(MEMBER) - 1)),
        (FULL, True),
        *((FULL[:-gone], False) for gone in (1, 8, 9)),
        (MEMBER[:-1] + b"\1", False),  # another length
        (MEMBER[:-8] + bytes(4) + MEMBER[-4:], False),
        (MEMBER[:2] + b"\7" + MEMBER[3:], False),  # another way to compress
        (packed(SMALL, CHECK, CHECKED), True),
        (packed(SMALL, CHECK, CHECKED[::-1]), False),
        (packed(SMALL, EXTRA, b"\2\0ab"), True),
        (packed(SMALL, NAME, b"a.mtx\0"), True),
        (packed(SMALL, RESERVED), False),
    ],
    ids=count(),
)
def test_packed_files(
    unpacking: None, read_in_c: Read, tmp_path: Path, content: bytes, accepted: bool
) -> None:
    path = tmp_path / "a.mtx.gz"
    path.write_bytes(content)
    assert assert_agreed(path, read_in_c) == accepted


def partition_accepted_in_c(kernels: Kernels, path: Path) -> bool:
    done = subprocess.run(
        [kernels.build / "tests/swp_parsers", "--parser=partition"],
        input=f"{path}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout == "accepted\n"


def assert_partition_agreed(kernels: Kernels, path: Path, accepted: bool) -> None:
    in_python = True
    try:
        read_parts(path, ROWS, PARTS)
    except MatrixError:
        in_python = False
    assert (partition_accepted_in_c(kernels, path), in_python) == (accepted, accepted)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("row", range(ROWS))
def test_long_lines_of_partitions(
    any_kernels: Kernels, tmp_path: Path, row: int, end: bytes
) -> None:
    path = tmp_path / "p"
    for length in (LONGEST - 1, LONGEST, LONGEST + 1):
        lines = [b"1"] * ROWS
        lines[row] = b"1".rjust(length)
        path.write_bytes((end or b"\n").join(lines) + end)
        accepted = length + (end == b"\r\n") <= LONGEST
        assert_partition_agreed(any_kernels, path, accepted)


@pytest.mark.parametrize(
    ("content", "accepted"),
    [
        (packed(b"0\n1\n2\n0\n"), True),
        (packed(b"0\n1\n") + packed(b"2\n0") + b"\n1\n", True),
        (packed(b"0\n1\n") + b"2\n0\n", False),
        (packed(b"0\n1\n2\n0\n")[:-1], False),
        (packed(b"0\n1\n2\n0\n1\n"), False),
        (b"\x1f\x8b", False),
    ],
    ids=count(),
)
def test_packed_partitions(
    unpacking: None, any_kernels: Kernels, tmp_path: Path, content: bytes, accepted: bool
) -> None:
    path = tmp_path / "p"
    path.write_bytes(content)
    assert_partition_agreed(any_kernels, path, accepted)


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """Return a listed file with pieces put in or in the place of some bytes."""
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
