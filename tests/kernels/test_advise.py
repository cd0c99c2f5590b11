"""`switchpoint advise` with real programs: its runs, and what is left of them."""

import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests import synthetic
from tests.conftest import Require, by_day
from tests.foreign.programs import mpi_libraries
from tests.kill_commands import started_for
from tests.processes import TIMEOUT_S
from tuner.advice import measuring, paired_runs
from tuner.advice.paired_runs import BudgetError, PairedRuns, TableError
from tuner.advice.proof import LEAST_PAIRS
from tuner.advice.running import Application
from tuner.advice.site import Site
from tuner.campaign.order import SoakJob, SoakLaunch
from tuner.campaign.plans import Entrants, PlannedCase
from tuner.campaign.reframe import DispatchError
from tuner.machine.mpi import find_mpis, mpi_of
from tuner.machine.systems import LOCAL, BuiltKernels
from tuner.rawfile.ingest import ingest
from tuner.rawfile.kinds import soak as soaks
from tuner.selection.tuning import tune
from tuner.store.store import Store

from .advice import ALLTOALL, command, kept, tabled_results
from .conftest import Kernels, finish


def environment(kernels: Kernels, results: Path) -> dict[str, str]:
    """Return variables for results of their own, and these kernels."""
    own = {"SWITCHPOINT_RESULTS": str(results), "SWITCHPOINT_KERNELS": str(kernels.build)}
    return os.environ | own


def advised(
    kernels: Kernels,
    results: Path,
    program: Path,
    *arguments: str,
    options: Sequence[str] = (),
    more: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Return how advice on a program ended, with more variables."""
    return subprocess.run(
        command(program, *arguments, options=options),
        env=environment(kernels, results) | (more or {}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def test_a_program_that_computes_gains_nothing(any_kernels: Kernels, tmp_path: Path) -> None:
    program = any_kernels.build / "tests/swp_mix"
    # Of two processes, one may wait for the other long enough to be worth measuring.
    done = advised(
        any_kernels,
        tmp_path,
        program,
        "20",
        "64",
        "5000",
        options=["-n", "1", "--budget", "10s", "--json"],
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["verdict"] == "none" and said["program"] == "swp_mix"
    assert said["bound_s"] < said["seconds"]
    assert "mixed" in done.stderr and "expected gain by the table: none" in done.stderr


def test_runs_with_the_table_dispatch_and_those_without_do_not(
    kernels: Kernels, tmp_path: Path
) -> None:
    table = tmp_path / "a.table"
    table.write_text("switchpoint-table 1\nrule op=alltoall method=bruck\n")
    program = str(kernels.build / "tests/swp_mix")
    app = Application(kernels.mpi, kernels.build, 2, [program, "10", "64", "0"])
    runs = PairedRuns(app, table, usual_s=1.0, end_s=math.inf)
    proof = next(runs.proofs())
    assert len(proof.pairs) == 1 and proof.outcome == "open"
    dispatched, *left = runs.dispatched
    assert dispatched == "alltoall by bruck: 10 calls of 64 to 64 bytes"
    no_rule = r"MPI_\w+ left to the MPI library \(the table has no rule .*\): \d calls"
    assert left and all(re.fullmatch(no_rule, each) for each in left)
    lines = ["export SWITCHPOINT_REPORT=1", *app.lines(table)]
    done = finish(["sh", "-e", "-c", "\n".join(lines)], os.environ, TIMEOUT_S)
    assert "alltoall by bruck: 10 calls of 64 to 64 bytes" in done.stderr
    its = mpi_of(program, find_mpis())
    assert its is not None and its.family == kernels.mpi.family


def test_a_program_that_fails_ends_advice(any_kernels: Kernels, tmp_path: Path) -> None:
    done = advised(
        any_kernels, tmp_path, any_kernels.build / "tests/swp_mix", "1", "8", "0", "abort"
    )
    assert done.returncode == 1 and "swp_mix 1 8 0 abort` ended with" in done.stderr


def script(path: Path, text: str) -> str:
    """Return a program that runs these lines."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("left_s", [math.inf, pytest.param(3.0, marks=pytest.mark.check)])
def test_a_program_that_hangs_with_the_table_is_ended(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_s: float
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))  # by which its processes are found
    monkeypatch.setattr(paired_runs, "HANG_S", 1.0 if left_s > 3 else 60.0)
    program = script(tmp_path / "hangs", '[ -z "$SWITCHPOINT_TABLE" ] || sleep 1000')
    app = Application(kernels.mpi, kernels.build, 2, [program])
    runs = PairedRuns(app, tmp_path / "a.table", usual_s=0.1, end_s=time.monotonic() + left_s)
    error, words = (
        (BudgetError, "; it may hang with the table")
        if left_s == 3
        else (TableError, "did not end")
    )
    with pytest.raises(error, match=words):
        next(runs.proofs())
    assert not started_for(tmp_path)


def test_a_failed_launch_leaves_what_others_have_measured(
    any_kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    fails = 'case "$*" in *"--op alltoall"*) echo no memory >&2; exit 3 ;; esac'
    bench = script(tmp_path / "bench", f'{fails}\nexec "{any_kernels.build}/bench/swpbench" "$@"')
    built = BuiltKernels(any_kernels.mpi, any_kernels.build, Path(bench))
    app = Application(any_kernels.mpi, any_kernels.build, 1, ["app"])
    cases = [
        PlannedCase(LOCAL, any_kernels.mpi.name, name, "blocks", "1_on_1_node", 1, 1, [8])
        for name in ("alltoall", "bcast")
    ]
    systems, failure = measuring.measure(cases, Site.of(app, built), 1.0)
    assert "alltoall blocks on 1 processes (launch 0)" in failure and "\n" not in failure
    with Store.open(tmp_path / "results/switchpoint.db", readonly=True) as store:
        assert [*store.systems()["system"]] == systems


def test_winners_are_soaked_as_they_were_measured(
    any_kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    bench = script(tmp_path / "bench", f'exec "{any_kernels.build}/bench/swpbench" "$@"')
    app = Application(any_kernels.mpi, any_kernels.build, 2, ["app"])
    site = Site.of(app, BuiltKernels(any_kernels.mpi, any_kernels.build, Path(bench)))
    launches_of = [
        SoakLaunch(20.0, [Entrants([8], [method], 50)], operation)
        for operation, method in (("bcast", "binomial"), ("allgather", "ring"))
    ]
    place = LOCAL, any_kernels.mpi.name
    jobs = [SoakJob(*place, 1, 2, launches_of), SoakJob(*place, 2, 1, launches_of)]
    soak = measuring.soak_request(site, 50, 60.0).run
    assert soak is not None
    soak(jobs)  # those on two nodes cannot start here
    with Store.open(tmp_path / "results/switchpoint.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        done = soaks.stored(store, str(system))
    assert sorted(done["method"]) == ["binomial", "ring"]
    assert {*done["executions"]} == {50} and done["passed"].all()
    script(tmp_path / "bench", "echo no memory >&2; exit 3")
    with pytest.raises(DispatchError, match="no memory"):
        soak(jobs)


@pytest.fixture
def tabled(any_kernels: Kernels, tmp_path: Path) -> Path:
    """Return results with a table: of MPI_Alltoall, bruck is the best at 64 bytes."""
    return tabled_results(any_kernels, tmp_path / "results")


@pytest.mark.check
def test_a_program_gains_by_the_table_that_it_uses(any_kernels: Kernels, tmp_path: Path) -> None:
    spec = replace(ALLTOALL, environment=any_kernels.mpi.name, methods=("vendor", "shared"))
    spec = replace(spec, times=lambda method, size: 2e-6 if method == "shared" else 4e-6)
    ingest(tmp_path / "switchpoint.db", synthetic.write(tmp_path, spec))
    with Store.open(tmp_path / "switchpoint.db") as store:
        system = str(store.systems()["system"].iloc[0])
        tune(store, system, required_executions=0)
    program = any_kernels.build / "tests/swp_mix"
    options = ["--system", system, "--budget", "35s", "--json"]  # too little to measure
    done = advised(any_kernels, tmp_path, program, "200", "64", "0", options=options)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["pairs"] and said["verdict"] != "failed"
    assert "alltoall by shared: 200 calls of 64 to 64 bytes" in said["dispatched"]
    assert not started_for(tmp_path)


@pytest.mark.parametrize(
    ("lost_s", "calls"),
    by_day([pytest.param("1", "300", marks=pytest.mark.check)], [("0", "300000")]),
)
def test_two_starts_agree_on_what_a_program_gains(
    any_kernels: Kernels, tmp_path: Path, lost_s: str, calls: str
) -> None:
    mix = f'exec "{any_kernels.build}/tests/swp_mix" {calls} 64 0'
    # Most of the time is the same on a busy machine, too.
    text = f'sleep {lost_s}; [ -n "$SWITCHPOINT_TABLE" ] || sleep {lost_s}\n{mix}'
    program = Path(script(tmp_path / "gains", text))
    # The budget is too little to measure.
    options = ["--environment", any_kernels.mpi.name, "--budget", "40s", "--json"]
    ends = []
    for name in ("one", "other"):
        results = tabled_results(any_kernels, tmp_path / name)
        done = advised(any_kernels, results, program, options=options)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert len(said["pairs"]) >= LEAST_PAIRS, done.stdout
        ends.append((said["low"], said["high"]))
        assert not started_for(results)
    assert max(low for low, _ in ends) <= min(high for _, high in ends)


def test_what_differs_in_command_or_rules_is_another_comparison(
    any_kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, rule = tmp_path / "a.table", "rule op=alltoall method=bruck"
    app = Application(any_kernels.mpi, any_kernels.build, 2, ["true", "1"])
    begun_ns = time.time_ns()

    def identity(rules: str, app: Application = app) -> str:
        table.write_text(f"switchpoint-table 1\n{rules}\n")
        return PairedRuns(app, table, 1.0, math.inf, begun_ns).identity({"alltoall"})

    same = f'rule op=bcast method=ring\n{rule} evidence="measured anew"'
    assert identity(rule) == identity(same) != identity(f"{rule}:radix=4")
    assert identity(rule) != identity(rule, replace(app, command=["true", "2"]))
    output, source = tmp_path / "output", tmp_path / "input.py"
    source.write_text("of the user")
    program = script(tmp_path / "program", "exit")
    own = replace(app, command=[program, str(source), str(output), str(tmp_path)])
    os.utime(source, ns=(begun_ns - 2, begun_ns - 2))
    before = identity(rule, own)
    output.write_text("of a run")
    assert identity(rule, own) == before
    os.utime(source, ns=(begun_ns - 1, begun_ns - 1))
    edited = identity(rule, own)
    assert edited != before
    script(tmp_path / "program", "exit 0")
    rebuilt = identity(rule, own)
    assert rebuilt != edited
    monkeypatch.setenv("OMP_NUM_THREADS", "4321")
    threaded = identity(rule, own)
    assert threaded != rebuilt
    monkeypatch.setenv("OMPI_MCA_odd", os.fsdecode(b"\xff"))
    assert identity(rule, own) != threaded


def test_a_table_with_which_the_program_fails_ends_with_an_error(
    any_kernels: Kernels, tabled: Path, tmp_path: Path
) -> None:
    mix = f'exec "{any_kernels.build}/tests/swp_mix" 20 64 10'
    program = script(tmp_path / "fails", f'[ -z "$SWITCHPOINT_TABLE" ] || exit 5\n{mix}')
    with Store.open(tabled / "switchpoint.db") as store:
        system = str(store.systems()["system"].iloc[0])
    # What a busy machine makes it measure is of another system, and leaves the table.
    options = ["--environment", any_kernels.mpi.name, "--system", system, "--json"]
    done = advised(any_kernels, tabled, Path(program), options=options)
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert said["verdict"] == "failed" and "ended with 5" in said["ended"]
    assert "the table is not recommended: with the table, " in done.stderr
    assert kept(tabled)[0].ended == said["ended"]


def test_the_budget_is_for_the_first_runs_too(any_kernels: Kernels, tmp_path: Path) -> None:
    done = advised(
        any_kernels,
        tmp_path,
        Path(script(tmp_path / "long", "sleep 1000")),
        options=["--budget", "1s"],
    )
    assert "all that the budget has left: give a larger --budget" in done.stdout
    assert done.returncode == 1 and "no profile within the budget" in done.stderr
    assert not started_for(tmp_path)
    app = Application(any_kernels.mpi, any_kernels.build, 1, ["true"])
    left = PairedRuns(app, tmp_path / "a.table", usual_s=60.0, end_s=time.monotonic() + 100.0)
    assert [*left.proofs()] == []


def test_the_seconds_of_a_run_that_the_budget_cut_off_are_none(
    any_kernels: Kernels, tabled: Path, tmp_path: Path
) -> None:
    mix = f'"{any_kernels.build}/tests/swp_mix" 20 64 10'
    program = Path(script(tmp_path / "long", f"{mix}\nsleep 1000"))
    done = advised(
        any_kernels,
        tabled,
        program,
        options=["--environment", any_kernels.mpi.name, "--budget", "3s"],
    )
    assert done.returncode == 0, done.stderr
    (its,) = kept(tabled)
    assert its.calls and "no room" in its.ended and its.recorded_s is None


@pytest.mark.parametrize("name", ["openmpi", pytest.param("openmpi5", marks=pytest.mark.check)])
def test_a_program_without_finalize_is_advised_on(
    kernels_of: Callable[[str], Kernels], tmp_path: Path, name: str
) -> None:
    kernels = kernels_of(name)  # whose launcher calls that an error
    mix = f'"{kernels.build}/tests/swp_mix" 10 64 0 exit'
    once = f'[ -z "$SWITCHPOINT_PROFILE" ] || exec {mix}\nexit 7'
    for text, code in ((f"exec {mix}", 0), (once, 1)):
        program = Path(script(tmp_path / "exits", text))
        done = advised(
            kernels, tmp_path, program, options=["--environment", name, "--budget", "30s"]
        )
        assert done.returncode == code, done.stderr
        said = "the program does not call MPI_Finalize: all its runs end with 1"
        assert (said in done.stdout) == (code == 0)
    assert "ended with 1, but without a profile" in done.stderr


def test_a_program_that_fails_without_finalize_ends_advice(
    kernels: Kernels, tmp_path: Path
) -> None:
    mix = f'"{kernels.build}/tests/swp_mix" 10 64 0 exit'
    program = Path(script(tmp_path / "fails", f"{mix}\nexit 1"))
    done = advised(
        kernels, tmp_path, program, options=["--environment", kernels.mpi.name, "--budget", "30s"]
    )
    assert done.returncode == 1 and "ended with 1" in done.stderr
    assert "does not call MPI_Finalize" not in done.stdout
    assert any(tmp_path.glob("profiles/*.profile/*"))


def test_another_system_that_is_asked_for_is_not_replaced(
    any_kernels: Kernels, tabled: Path
) -> None:
    box = replace(ALLTOALL, system="box:cpu", environment=any_kernels.mpi.name)
    ingest(tabled / "switchpoint.db", synthetic.write(tabled, box))
    done = advised(
        any_kernels,
        tabled,
        any_kernels.build / "tests/swp_mix",
        *("20", "4096", "0"),
        options=["--system", "box", "--budget", "60s"],
    )
    assert "not measured, as --system box-cpu-" in done.stdout, done.stdout + done.stderr


@pytest.mark.check
def test_what_is_measured_here_does_not_replace_a_system_of_the_same_name(
    any_kernels: Kernels, tabled: Path
) -> None:
    with Store.open(tabled / "switchpoint.db") as store:
        (system,) = store.systems()["system"]  # of another version of the library
    done = advised(
        any_kernels,
        tabled,
        any_kernels.build / "tests/swp_mix",
        *("2000", "4096", "0"),
        options=["--system", system, "--budget", "60s"],
    )
    assert done.returncode == 0, done.stderr
    assert f", not --system {system}, whose table stays" in done.stdout
    assert "with what was measured:" not in done.stdout


def test_a_program_in_python_is_advised_on(
    any_kernels: Kernels, require: Require, tmp_path: Path
) -> None:
    require("mpi4py", importlib.util.find_spec("mpi4py") is not None, "mpi4py is not installed")
    text = "from mpi4py.MPI import COMM_WORLD\nfor _ in range(50): COMM_WORLD.Bcast(bytearray(8))"
    options = ["-n", "1", "--environment", any_kernels.mpi.name, "--budget", "30s", "--json"]
    abi = {"MPI4PY_MPIABI": any_kernels.mpi.family}
    done = advised(
        any_kernels,
        tmp_path,
        Path(sys.executable),
        "-c",
        text,
        options=options,
        more=mpi_libraries(any_kernels) | abi,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["verdict"] == "none" and said["finalized"]
    assert {each["call"]: each["count"] for each in said["calls"]}["Bcast"] == 50


CXX = """
#include <mpi.h>
#include <vector>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  std::vector<double> values(8), sums(8);
  for (int step = 0; step < 50; step++)
    MPI_Allreduce(values.data(), sums.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""

FORTRAN = """
program sums
  use mpi
  implicit none
  double precision :: values(8), sums_of(8)
  integer :: step, error
  values = 1
  call MPI_Init(error)
  do step = 1, 50
    call MPI_Allreduce(values, sums_of, 8, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  end do
  call MPI_Finalize(error)
end program
"""


@pytest.mark.parametrize(
    ("wrapper", "compiler", "source", "text"),
    [("mpicxx", "g++", "sums.cpp", CXX), ("mpif90", "gfortran", "sums.f90", FORTRAN)],
)
def test_programs_in_other_languages_are_advised_on(
    any_kernels: Kernels,
    require: Require,
    tmp_path: Path,
    wrapper: str,
    compiler: str,
    source: str,
    text: str,
) -> None:
    mpicc = Path(shutil.which(any_kernels.mpi.mpicc) or any_kernels.mpi.mpicc)
    its = mpicc.with_name(mpicc.name.replace("mpicc", wrapper))
    works = its.exists() and shutil.which(compiler) is not None
    require("fortran" if wrapper == "mpif90" else "c++", works, f"no {compiler}, or no {its}")
    (tmp_path / source).write_text(text)
    program = tmp_path / "sums"
    subprocess.run([its, tmp_path / source, "-o", program], check=True)
    options = ["-n", "1", "--budget", "30s", "--json"]
    done = advised(any_kernels, tmp_path / "results", program, options=options)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["verdict"] == "none" and said["finalized"]
    assert {(each["call"], each["bytes"]): each["count"] for each in said["calls"]} == {
        ("Allreduce", 64): 50
    }
