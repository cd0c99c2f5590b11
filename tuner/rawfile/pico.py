"""Raw files made of the results of PICO (arXiv 2508.16809), one for each of its tests.

LOCATION_metadata.csv has a row for each test, whose results are in LOCATION/TIMESTAMP/TEST_ID/ or
in LOCATION/TIMESTAMP.tar.gz: COUNT_ALGORITHM[_SEGMENT]_TYPE.csv has a line for each iteration,
which begins with the nanoseconds of the slowest rank.
"""

import csv
import gzip
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tuner import atomic
from tuner.domain.operations import ALGORITHM, FOREIGN
from tuner.domain.records import Problem
from tuner.files import files_below, one_line, open_file, read_bytes, shown
from tuner.rawfile import reading
from tuner.rawfile.keeping import campaign_directory
from tuner.rawfile.kinds.kind import UnusableError
from tuner.units import size_text

METADATA = "_metadata.csv"
ARCHIVE = ".tar.gz"

OPERATIONS = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "scatter")
VECTORS = ("allreduce", "bcast", "reduce")
"""Operations whose count is that of the vector; those of others are of all ranks' blocks."""

TYPE_BYTES = {
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "int": 4,
    "float": 4,
    "double": 8,
    "char": 1,
    "unsigned_char": 1,
}
LIBRARIES = {"OMPI": ("openmpi", "Open MPI v"), "MPICH": ("mpich", "MPICH Version: ")}
"""The environment and the banner of an MPI library, by PICO's name."""

NAMES = {
    "allgather k_bruck_ompi": "bruck",
    "allreduce linear_ompi": "basic_linear",
    "allreduce non_overlapping_ompi": "nonoverlapping",
    "allreduce ring_segmented_ompi": "segmented_ring",
    "bcast binary_ompi": "binary_tree",
    "bcast linear_ompi": "basic_linear",
    "bcast split_binary_ompi": "split_binary_tree",
    "gather linear_ompi": "basic_linear",
    "gather linear_synch_ompi": "linear_sync",
    "reduce in_order_ompi": "in-order_binary",
    "scatter linear_ompi": "basic_linear",
    "allgather non_blocking_mpich": "nb",
    "allgather recexch_mpich": "recexch_doubling",
    "allreduce k_rabenseifner_mpich": "k_reduce_scatter_allgather",
    "allreduce non_blocking_mpich": "nb",
    "allreduce rabenseifner_mpich": "reduce_scatter_allgather",
    "allreduce rechexch_mpich": "recexch",
    "alltoall non_blocking_mpich": "nb",
    "bcast non_blocking_mpich": "nb",
    "gather non_blocking_mpich": "nb",
    "reduce non_blocking_mpich": "nb",
    "reduce rabenseifner_mpich": "reduce_scatter_gather",
    "scatter non_blocking_mpich": "nb",
}
"""The library's names of algorithms that have another in PICO."""

UNKNOWN = "not recorded"

_TIMESTAMP = r"(\d{4})_(\d\d)_(\d\d)___(\d\d)_(\d\d)_(\d\d)"
_RESULT = re.compile(
    rf"(\d{{1,15}})_([a-zA-Z0-9][\w.-]*?)(?:_(\d{{1,15}}))?_({'|'.join(TYPE_BYTES)})\.csv", re.ASCII
)
_ITERATIONS_MOST = 65536  # rounds are 16 bits in the store
_MEMBER_BYTES_MOST = 1 << 28
_ARCHIVE_BYTES_MOST = 1 << 30
_READ_ERRORS = (OSError, EOFError, tarfile.TarError, zlib.error)
_HEADER_ERRORS = (ArithmeticError, LookupError, ValueError, RecursionError)
"""What tarfile raises for some headers, beside its own errors."""


class _Test(NamedTuple):
    """A row of the metadata, checked."""

    row: dict[str, str]
    run: Path  # the directory of its timestamp, which may be an archive instead
    number: int
    date: str
    operation: str
    nodes: int
    ppn: int  # the most on a node
    procs: int


class _Result(NamedTuple):
    """One algorithm at one size."""

    size_bytes: int
    method: str
    file: str
    samples_ns: list[int]


def is_metadata(path: Path) -> bool:
    """Return whether a file is named like PICO's metadata."""
    return path.name.endswith(METADATA) and not path.is_dir()


def translated(sources: Sequence[Path]) -> tuple[list[Path], list[Problem]]:
    """Return raw files made of PICO's results in `sources`, and what could not be used.

    Sources are metadata files, or directories that contain them. The raw files are kept among the
    results; one that holds less than before is not. Raise OSError when one cannot be written.
    """
    made: list[Path] = []
    problems: list[Problem] = []
    for source in sources:
        inside = files_below(source, METADATA) if source.is_dir() else [source]
        for metadata in filter(is_metadata, inside):
            made += _of_metadata(metadata, problems)
    return list(dict.fromkeys(made)), problems


def _of_metadata(metadata: Path, problems: list[Problem]) -> Iterator[Path]:
    """Yield the raw files of all tests of a metadata file."""
    try:
        text = read_bytes(metadata, _MEMBER_BYTES_MOST).decode()
        rows = list(csv.DictReader(StringIO(text), restkey="", restval="", strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        problems.append(Problem(shown(metadata), 1, f"cannot be read: {reason}"))
        return
    for line, row in enumerate(rows, start=2):
        try:
            yield _raw_file(_test(metadata, row), problems)
        except UnusableError as error:
            problems.append(Problem(shown(metadata), line, str(error)))


def _test(metadata: Path, row: dict[str, str]) -> _Test:
    """Return a row's test. Raise UnusableError if it cannot be used."""
    for name in ("timestamp", "collective_type", "mpi_lib", "mpi_lib_version", "gpu_awareness"):
        if not row.get(name):
            raise UnusableError(f"no {name}: not PICO's metadata of a test")
    timestamp, collective = row["timestamp"], one_line(row["collective_type"])
    date = re.fullmatch(_TIMESTAMP, timestamp, re.ASCII)
    if date is None:
        raise UnusableError(f"timestamp {one_line(timestamp)} is not YYYY_MM_DD___HH_MM_SS")
    if collective.lower() not in OPERATIONS:
        raise UnusableError(f"unknown operation {collective}; not imported")
    if row["gpu_awareness"] != "no":
        raise UnusableError("buffers were on GPUs; not imported")
    numbers = [_number(row, name) for name in ("test_id", "nnodes", "tasks_per_node")]
    run = metadata.parent / metadata.name.removesuffix(METADATA) / timestamp
    day, time = "-".join(date.groups()[:3]), ":".join(date.groups()[3:])
    number, nodes, ppn = numbers
    if nodes * ppn == 0:
        raise UnusableError("nnodes or tasks_per_node is 0")
    return _Test(row, run, number, f"{day}T{time}Z", collective.lower(), nodes, ppn, nodes * ppn)


def _number(row: dict[str, str], name: str) -> int:
    text = row.get(name) or ""
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise UnusableError(f"{name} {one_line(text)!r} is not a number")
    return int(text)


def _raw_file(test: _Test, problems: list[Problem]) -> Path:
    """Return the raw file of a test, made of its results. Raise UnusableError if there are none."""
    files = dict(_files(test))
    test, hosts = _located(test, files)
    results: dict[tuple[int, str], _Result] = {}
    for name, content in files.items():
        if not (name.startswith(f"{test.number}/") and name.endswith(".csv")):
            continue
        try:
            result = _result(test, name, content)
            first = results.setdefault((result.size_bytes, result.method), result)
            if first is not result:
                raise UnusableError(f"of the same method and size as {first.file}; not used")
        except UnusableError as error:
            problems.append(Problem(shown(test.run / name), 1, str(error)))
    if not results:
        raise UnusableError(f"{shown(test.run / str(test.number))} has no results that can be used")
    ordered = [results[key] for key in sorted(results)]
    first_line = msgspec.json.encode(_header(test, hosts))
    header = reading.read_header(first_line)
    if header is None:
        raise UnusableError("its nodes, tasks, date or library are out of range")
    samples = sum(len(result.samples_ns) for result in ordered)
    end = {"record": "end", "cases": len(ordered), "samples": samples, "skipped": []}
    lines = [first_line, *(msgspec.json.encode(_case(result)) for result in ordered)]
    content = b"\n".join([*lines, msgspec.json.encode(end), b""])
    name = f"pico-{test.operation}-{test.nodes}-x-{test.ppn}-{test.number}.jsonl"
    target = campaign_directory(header) / name
    before = _beginning(target, len(content) + 1)
    if before and not before.startswith(first_line + b"\n"):
        raise UnusableError(
            f"its metadata or hosts differ from those that {shown(target)} was made of: delete it "
            "and the store, import again, and run `switchpoint ingest`"
        )
    if len(before) < len(content):
        atomic.write(target, content)
    elif before != content:
        raise UnusableError(f"holds no more than {shown(target)}, which stays as it is")
    return target


def _beginning(path: Path, most_bytes: int) -> bytes:
    """Return what a file begins with, nothing if there is none."""
    if not path.exists():
        return b""
    with open_file(path) as file:
        return file.read(most_bytes)


def _files(test: _Test) -> Iterator[tuple[str, bytes]]:
    """Yield the names within the run, and the contents, of a test's files and of those above it.

    Raise UnusableError.
    """
    archive = test.run.with_name(test.run.name + ARCHIVE)
    try:
        if test.run.is_dir() or not archive.is_file():
            for directory in (test.run, test.run / str(test.number)):
                for path in sorted(directory.iterdir()):
                    if path.suffix == ".csv" and path.is_file():
                        yield str(path.relative_to(test.run)), read_bytes(path, _MEMBER_BYTES_MOST)
            return
        # As a stream, which refuses to go back, and so ends.
        with _Unpacked(archive) as file, tarfile.open(fileobj=file, mode="r|") as tar:
            for member in tar:
                name = member.name.removeprefix("./").partition("/")[2]
                place = name.rpartition("/")[0]
                if member.isreg() and name.endswith(".csv") and place in ("", str(test.number)):
                    yield name, _content(tar, member)
    except (*_READ_ERRORS, *_HEADER_ERRORS) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or one_line(str(error))
        source = archive if archive.is_file() else test.run / str(test.number)
        where = shown(getattr(error, "filename", None) or source)
        raise UnusableError(f"{where} cannot be read: {reason}") from error


class _Unpacked(gzip.GzipFile):
    """The content of an archive, of which no more than the limit is read."""

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes. Raise UnusableError beyond the limit."""
        content = super().read(size)
        if self.tell() > _ARCHIVE_BYTES_MOST:
            raise UnusableError(f"over {_ARCHIVE_BYTES_MOST >> 20} MiB; unpack it into a directory")
        return content


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Return the content of a member. Raise UnusableError for a sparse or too large one."""
    if member.issparse() or not 0 <= member.size <= _MEMBER_BYTES_MOST:
        most = size_text(_MEMBER_BYTES_MOST)
        raise UnusableError(f"{one_line(member.name)} is sparse, or larger than {most}")
    file = tar.extractfile(member)
    return file.read() if file else b""


def _located(test: _Test, files: dict[str, bytes]) -> tuple[_Test, list[str]]:
    """Return a test with its true layout, and its hosts, where PICO listed those of all ranks.

    Its metadata have the nodes that were asked for, which may be one machine.
    """
    for name in (f"alloc_{test.procs}.csv", "alloc.csv"):
        rows = files.get(name, b"").decode(errors="replace").splitlines()[1:]
        hosts = [one_line(row.split(",")[1]) for row in rows if row.count(",") > 0]
        if len(hosts) == test.procs:
            counts = Counter(hosts)
            return test._replace(nodes=len(counts), ppn=max(counts.values())), list(counts)
    return test, []


def _result(test: _Test, name: str, content: bytes) -> _Result:
    """Return the result in a file. Raise UnusableError if it cannot be used."""
    found = _RESULT.fullmatch(name.rpartition("/")[2])
    if found is None:
        raise UnusableError("its name is not COUNT_ALGORITHM_TYPE.csv; not used")
    count, algorithm, segment, type_name = found.groups()
    elements = int(count)
    if test.operation not in VECTORS:
        elements //= test.procs
    if elements == 0:
        raise UnusableError("there are fewer elements than processes; not used")
    head, *lines = content.splitlines() or [b""]
    if head.split(b",")[0] != b"highest":
        raise UnusableError("its first line does not begin with `highest`; not used")
    samples_ns = []
    for number, line in enumerate(lines, start=2):
        text = line.split(b",")[0]
        if not re.fullmatch(rb"\d{1,18}", text) or int(text) == 0:
            shortened = one_line(text.decode(errors="backslashreplace"))
            raise UnusableError(
                f"line {number} has no time in nanoseconds: {shortened!r}; not used"
            )
        samples_ns.append(int(text))
    if not 0 < len(samples_ns) <= _ITERATIONS_MOST:
        raise UnusableError(f"{len(samples_ns)} iterations, not 1 to {_ITERATIONS_MOST}; not used")
    method = _method(test.operation, algorithm, segment)
    return _Result(elements * TYPE_BYTES[type_name], method, name, samples_ns)


def _method(operation: str, algorithm: str, segment: str | None) -> str:
    """Return the spec of an algorithm: the MPI library's, or one that only PICO has."""
    name, _, library = algorithm.rpartition("_")
    if segment:
        return f"{FOREIGN}algorithm={algorithm},segment={segment}"
    if library not in ("ompi", "mpich"):
        return f"{FOREIGN}algorithm={algorithm}"
    if name == "default":
        return "vendor"
    return f"{ALGORITHM}{NAMES.get(f'{operation} {algorithm}', name)}"


def _header(test: _Test, hosts: list[str]) -> dict[str, Any]:
    library, version = test.row["mpi_lib"], test.row["mpi_lib_version"]
    environment, banner = LIBRARIES.get(library, (library.lower(), f"{library} "))
    return {
        "record": "header",
        "schema": reading.SCHEMA,
        "program": f"PICO, libbine {test.row.get('libbine_version') or UNKNOWN}",
        "system": f"pico:{shown(Path(test.run.parent.name))}",
        "environment": environment,
        "campaign": test.run.name,
        "launch": test.number,
        "date": test.date,
        "hostnames": hosts,
        "cpu_model": UNKNOWN,
        "cores": 1,
        "mpi_library": banner + version,
        "mpi_standard": UNKNOWN,
        "compiler": UNKNOWN,
        "flags": UNKNOWN,
        "commit": "",
        "operation": test.operation,
        "pattern": "blocks:root=0",
        "procs": test.procs,
        "nodes": test.nodes,
        "ppn": test.ppn,
        "oversubscribed": False,
        "yield": "",
        "binding": "",
        "seed": 0,
        "sync": "barrier",
        "clock": {"name": "MPI_Wtime", "tick_s": 1e-9},
        "load": [0.0, 0.0, 0.0],
        "buffers": "warm",
        "budget_s": 0.0,
        "pico": test.row,
    }


def _case(result: _Result) -> dict[str, Any]:
    count = len(result.samples_ns)
    return {
        "record": "case",
        "method": result.method,
        "size_bytes": result.size_bytes,
        "bytes": result.size_bytes,
        "features": {"mmax": 0, "mavg": 0.0, "vavg_bytes": 0.0, "vmax_bytes": 0},
        "statistics": {},
        "inner": 1,
        "samples_s": [sample / 1e9 for sample in result.samples_ns],
        "round": list(range(count)),
        "late": [0] * count,
        "canary_s": [0.0] * count,
        "plan_s": [],
        "verified": 1,
        "file": result.file,
    }
