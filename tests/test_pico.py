"""Results of PICO, real and made, on their way to tables."""

import gzip
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli import call, succeed
from tests.conftest import Require
from tuner.domain.tables import Table
from tuner.export.forms import export
from tuner.export.mpi_library import openmpi_algorithms
from tuner.machine.mpi import find_mpis
from tuner.rawfile import pico, reading
from tuner.store.store import Store
from tuner.studies.regret.measuring import rivals
from tuner.studies.regret.problems import RegretProblem

SAMPLE = Path(__file__).parent / "data" / "pico"
RUN = Path("local") / "2026_11_24___16_19_43"
HEADING = (SAMPLE / "local_metadata.csv").read_text().splitlines()[0]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Copy the sample, which a test may spoil."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "pico"))


def problems(source: Path) -> list[str]:
    """Return the problems of an ingest, which ends well and prints each in one line."""
    answer = call("ingest", source)
    assert answer.exit_code == 0, answer.output
    return [line for line in answer.stderr.splitlines() if line.startswith("warning: ")]


def write_run(
    root: Path, day: int, times_ns: dict[str, int], operation: str = "allreduce", count: int = 128
) -> None:
    """Write a run of PICO with one test, two nodes of one process, and 20 iterations."""
    metadata = root / "made_metadata.csv"
    timestamp = f"2026_11_{day:02}___10_00_00"
    row = (
        f"{timestamp},0,2,1,{operation.upper()},OMPI,4.1.4,1.0.0,no,null,null,summarized,null,null"
    )
    root.mkdir(exist_ok=True)
    before = metadata.read_text() if metadata.exists() else HEADING + "\n"
    metadata.write_text(f"{before}{row}\n")
    place = root / "made" / timestamp / "0"
    place.mkdir(parents=True)
    for algorithm, time_ns in times_ns.items():
        lines = [str(time_ns + 7 * ((day + i) % 5)) for i in range(20)]
        (place / f"{count}_{algorithm}_int32.csv").write_text("\n".join(["highest", *lines, ""]))


def test_every_iteration_of_the_sample_arrives(results: Path) -> None:
    assert "2 launches with 360 samples from 2 files" in succeed("ingest", SAMPLE)
    with Store.open(results / "switchpoint.db", readonly=True) as store:
        cells = store.cells()
        (launch, *_) = store.launches().values()
        kept = store.contents(str(cells["system"][0]))
    assert {(row.nodes, row.ppn, row.n, row.launches) for row in cells.itertuples()} == {
        (1, 2, 20, 1)  # the two nodes of the metadata are one host
    }
    assert json.loads(launch.header)["pico"]["libbine_version"] == "1.0.0"
    of_ring = next(
        cell
        for cell in kept
        if (cell.key.method, cell.key.case.bytes) == ("vendor:algorithm=ring", 64)
    )
    written = (SAMPLE / RUN / "0" / "16_ring_ompi_int32.csv").read_text().split()[1:]
    assert of_ring.samples_s.tolist() == pytest.approx([int(ns) * 1e-9 for ns in written])
    assert set(cells["method"]) == {
        "vendor",
        "vendor:algorithm=recursive_doubling",
        "vendor:algorithm=ring",
        "vendor:algorithm=rabenseifner",
        "vendor:algorithm=binomial",
        "vendor:algorithm=split_binary_tree",
        "pico:algorithm=ring_over",
        "pico:algorithm=bine_bdw_remap_segmented_over,segment=16384",
    }
    shown = succeed("show")
    assert "pico-local-openmpi" in shown
    assert "Open MPI v4.1.4" in shown
    tuned = succeed("tune")
    assert "pico:" not in tuned
    assert "`switchpoint ingest pico/results/local_metadata.csv`" in tuned
    assert "2 of them already present" in succeed("ingest", SAMPLE / "local_metadata.csv")


def test_an_archive_is_read_as_its_directory(results: Path, theirs: Path) -> None:
    of_directory, found = pico.translated([theirs])
    assert found == []
    before = [path.read_bytes() for path in of_directory]
    run = theirs / RUN
    with tarfile.open(run.with_name(run.name + ".tar.gz"), "w:gz") as archive:
        archive.add(run, arcname=run.name)
    shutil.rmtree(run)
    shutil.rmtree(results)
    again, found = pico.translated([theirs])
    assert (again, found) == (of_directory, [])
    assert [path.read_bytes() for path in again] == before


def member(name: str, content: bytes, kind: bytes = tarfile.REGTYPE, size: int = -1) -> bytes:
    """Return a member of an archive, of another size than its content's if one is given."""
    header = tarfile.TarInfo(f"{RUN.name}/{name}")
    header.type, header.size = kind, len(content) if size == -1 else size
    return header.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def cut_map() -> bytes:
    """Return the header of a sparse member whose map would go on behind it."""
    header = bytearray(member("0/a.csv", b"", tarfile.GNUTYPE_SPARSE))
    header[482] = 1
    header[148:154] = b"%06o" % tarfile.calc_chksums(bytes(header))[0]
    return bytes(header)


FIRST = member("alloc.csv", b"")
CRAFTED = {
    "back to itself": FIRST + member("0/16_ring_ompi_int32.csv", b"", size=-512),
    "negative": FIRST + member("0/16_ring_ompi_int32.csv", b"", size=-2),
    "long names": 999 * member("x", b"x" * 512, tarfile.GNUTYPE_LONGNAME),
    "no number": member("x", b"21 GNU.sparse.size=x\n", tarfile.XHDTYPE) + FIRST,
    "cut map": FIRST + cut_map(),
    "large": FIRST + member("x.csv", bytes(1 << 20)),
}


@pytest.mark.parametrize("archive", CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_archive_is_one_line(
    theirs: Path, results: Path, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pico, "_ARCHIVE_BYTES_MOST", 1 << 20, raising=False)
    run = theirs / RUN
    shutil.rmtree(run)
    run.with_name(f"{run.name}.tar.gz").write_bytes(gzip.compress(archive))
    made, found = pico.translated([theirs / "local_metadata.csv"])
    assert made == []
    assert f"{run.name}.tar.gz cannot be read" in found[0].message


def test_a_directory_whose_name_is_not_utf8_is_read(results: Path, theirs: Path) -> None:
    for name in ("local", "local_metadata.csv"):
        (theirs / name).rename(theirs / os.fsdecode(name.replace("l", "\xff", 1).encode("latin-1")))
    assert problems(theirs) == []
    assert "pico-xffocal-openmpi" in succeed("show")


def test_runs_choose_among_the_librarys_algorithms_alone(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are chosen without the soaks that no machine here can run, and marked."""
    monkeypatch.delenv("SWITCHPOINT_REQUIRE_SOAK")
    times_ns = {"default_ompi": 9000, "ring_ompi": 6000, "linear_ompi": 12000, "ring_over": 3000}
    for day in range(10, 18):
        write_run(tmp_path / "pico", day, times_ns)
        write_run(tmp_path / "pico2", day, {"default_ompi": 9000, "chain_ompi": 9900}, "bcast")
    succeed("ingest", tmp_path / "pico", tmp_path / "pico2")
    tuned = succeed("tune")
    assert "not soaked: allreduce vendor:algorithm=ring on 2 x 1" in tuned
    assert "switchpoint soak" not in tuned
    with Store.open(results / "switchpoint.db", readonly=True) as store:
        table = store.table(str(store.systems()["system"][0]))
    assert table is not None
    assert {(rule.operation, rule.method) for rule in table.rules} == {
        ("allreduce", "vendor:algorithm=ring"),
        ("bcast", "vendor"),
    }
    assert re.findall(r"^provenance \w+ *$", export(table, "table"), re.MULTILINE) == []
    chosen = {
        operation: rivals(table, RegretProblem(operation, "blocks", 2, 1, (512,), True), 512)
        for operation in ("allreduce", "bcast", "reduce")
    }
    assert chosen == {
        "allreduce": dict.fromkeys(("rival", "rival's least mean"), "vendor:algorithm=ring"),
        "bcast": dict.fromkeys(("rival", "rival's least mean"), "vendor"),
        "reduce": {"rival": "vendor"},
    }


def test_the_least_mean_counts_at_the_nearest_size(results: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "small", 10, {"default_ompi": 9000, "ring_ompi": 9900})
    write_run(tmp_path / "large", 11, {"default_ompi": 9000, "ring_ompi": 8100}, count=32768)
    succeed("ingest", tmp_path)
    succeed("tune")
    with Store.open(results / "switchpoint.db", readonly=True) as store:
        table: Table | None = store.table(str(store.systems()["system"][0]))
    assert table is not None
    problem = RegretProblem("allreduce", "blocks", 2, 1, (), True)
    means = [rivals(table, problem, size)["rival's least mean"] for size in (8, 4096, 16384)]
    assert means == ["vendor", "vendor", "vendor:algorithm=ring"]
    assert rivals(table, problem, 131072)["rival"] == "vendor"  # one run shows nothing


def test_a_run_that_grew_replaces_what_was_there(results: Path, theirs: Path) -> None:
    late = theirs / RUN / "1" / "4096_binomial_ompi_int32.csv"
    text = late.read_text()
    late.unlink()
    assert problems(theirs) == []
    late.write_text(text)
    assert problems(theirs) == []
    late.unlink()
    (problem,) = problems(theirs)
    assert "holds no more than" in problem
    with Store.open(results / "switchpoint.db", readonly=True) as store:
        assert len(store.launches()) == 2
        assert store.cells()["n"].sum() == 360


SPOILT: dict[str, Callable[[Path], object]] = {
    "has no time in nanoseconds: 'x'": lambda file: file.write_text("highest\n12\nx\n"),
    "has no time in nanoseconds: '0'": lambda file: file.write_text("highest,rank0\n0,0\n"),
    "does not begin with `highest`": lambda file: file.write_text("12\n13\n"),
    "0 iterations": lambda file: file.write_bytes(b"highest\n"),
    "its name is not COUNT_ALGORITHM_TYPE.csv": lambda file: file.rename(file.with_name("a.csv")),
    "of the same method and size": lambda file: file.rename(
        file.with_name("4096_ring_ompi_float.csv")
    ),
    "fewer elements than processes": lambda file: file.rename(
        file.with_name("0_ring_ompi_int32.csv")
    ),
}


@pytest.mark.parametrize("message", SPOILT)
@pytest.mark.usefixtures("results")
def test_a_bad_file_is_one_line_and_the_rest_arrives(theirs: Path, message: str) -> None:
    SPOILT[message](theirs / RUN / "0" / "16_ring_ompi_int32.csv")
    (problem,) = problems(theirs)
    assert message in problem
    with Store.open(Path(theirs.parent / "results" / "switchpoint.db"), readonly=True) as store:
        assert store.cells()["n"].sum() == 340


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2026_11_24___16_19_43,0", "monday,0", "timestamp monday is not YYYY_MM_DD"),
        ("2026_11_24___16_19_43,0", "2026_13_24___16_19_43,0", "cannot be read"),
        (",0,2,1,", ",0,2x2,1,", "nnodes '2x2' is not a number"),
        (",0,2,1,ALLREDUCE", ",0,0,1,ALLTOALL", "nnodes or tasks_per_node is 0"),
        (",0,2,1,", ",7,2,1,", "cannot be read: No such file or directory"),
        ("ALLREDUCE", "REDUCE_SCATTER", "unknown operation REDUCE_SCATTER"),
        ("1.0.0,no", "1.0.0,yes", "buffers were on GPUs"),
        ("OMPI,4.1.4,1.0.0,no", "", "no mpi_lib: not PICO's metadata"),
    ],
)
@pytest.mark.usefixtures("results")
def test_a_bad_row_is_one_line_and_the_others_arrive(
    theirs: Path, old: str, new: str, message: str
) -> None:
    metadata = theirs / "local_metadata.csv"
    metadata.write_text(metadata.read_text().replace(old, new, 1))
    (problem,) = problems(theirs)
    assert f"{metadata}:2: " in problem
    assert message in problem


@pytest.mark.parametrize("name", ["local_metadata.csv", f"{RUN}/0/16_ring_ompi_int32.csv"])
@pytest.mark.usefixtures("results")
def test_a_file_that_is_too_large_is_one_line(theirs: Path, name: str) -> None:
    os.truncate(theirs / name, 1 << 29)
    _, (problem,) = pico.translated([theirs])
    assert "cannot be read: larger than 256 MiB" in problem.message
    assert name in str(problem)


@given(
    of_file=st.binary(max_size=60) | st.text("0123456789,\nhigest", max_size=60).map(str.encode),
    of_row=st.binary(max_size=80),
)
@settings(max_examples=15, deadline=None)
def test_garbage_is_reported_and_never_raises(
    tmp_path_factory: pytest.TempPathFactory, of_file: bytes, of_row: bytes
) -> None:
    root = tmp_path_factory.mktemp("garbage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWITCHPOINT_RESULTS", str(root / "results"))
        write_run(root / "pico", 10, {"default_ompi": 9000})
        place = root / "pico" / "made" / "2026_11_10___10_00_00"
        (place / "0" / "16_ring_ompi_int32.csv").write_bytes(b"highest\n" + of_file)
        (place / "alloc_2.csv").write_bytes(of_file)
        metadata = root / "pico" / "made_metadata.csv"
        metadata.write_bytes(metadata.read_bytes() + of_row)
        made, found = pico.translated([root / "pico"])
    assert all("\n" not in str(problem) for problem in found)
    assert [problem for path in made for problem in reading.read(path).problems] == []


def test_uneven_hosts_have_the_processes_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    write_run(tmp_path / "pico", 10, {"default_ompi": 9000}, "alltoall", 4 * 16)
    metadata = tmp_path / "pico" / "made_metadata.csv"
    metadata.write_text(metadata.read_text().replace(",0,2,1,", ",0,2,2,"))
    hosts = "".join(f"{rank},{host}\n" for rank, host in enumerate("aaab"))
    (tmp_path / "pico" / "made" / "2026_11_10___10_00_00" / "alloc_4.csv").write_text(
        f"rank,host\n{hosts}"
    )
    (made,), problems = pico.translated([tmp_path / "pico"])
    found = reading.read(made)
    assert problems == found.problems == []
    assert found.header is not None
    assert (found.header.nodes, found.header.ppn, found.header.procs) == (2, 3, 4)
    assert {case.bytes for case in found.cases} == {4 * 16}


def test_names_are_those_of_the_library(require: Require) -> None:
    here = [mpi for mpi in find_mpis() if mpi.family == "openmpi" and mpi.version[0] == "4"]
    require("openmpi4", bool(here), "no Open MPI 4 on the path")
    algorithms = openmpi_algorithms(here[0])
    named = {key: name for key, name in pico.NAMES.items() if key.endswith("_ompi")}
    assert named
    for key, name in named.items():
        assert name in algorithms[key.split()[0]], key
