"""Advice measures what it lacks: where the program runs, and on from what was interrupted."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import synthetic, test_soaks
from tests.cli import call, fail, succeed
from tests.profiles import content, parse, tally
from tuner.advice import measuring, mix, paired_runs
from tuner.advice.running import Application
from tuner.advice.site import Site
from tuner.campaign.order import PLANS
from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.machine.mpi import PRELOAD_LIBRARY, PROFILE_LIBRARY, Mpi
from tuner.machine.systems import BuiltKernels
from tuner.paths import only_here


def site(*launcher: str, procs: int = 2) -> Site:
    """Return where a program runs that is started by these words."""
    mpi = Mpi("mpich", "mpich", "4.0.2", "mpicc", "mpiexec")
    app = Application(mpi, Path(), procs, ["app"], launcher)
    return Site.of(app, BuiltKernels(mpi, Path(), Path()))


LAUNCHERS = pytest.mark.parametrize("launcher", [(), ("srun",)])


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Return a build whose libraries are empty."""
    for name in (PRELOAD_LIBRARY, PROFILE_LIBRARY):
        (tmp_path / name).touch()
    return tmp_path


@LAUNCHERS
def test_all_runs_preload_what_the_user_does_behind_a_library_that_begins_mpi(
    build: Path, monkeypatch: pytest.MonkeyPatch, launcher: tuple[str, ...]
) -> None:
    monkeypatch.setenv(
        "LD_PRELOAD", "/a/libxalt.so /a/libswitchpoint_pmpi.so:/a/b.so:/a/libxalt.so"
    )
    app = dataclasses.replace(site(*launcher).app, build=build)
    for start, library in (
        (app.untabled(), PRELOAD_LIBRARY),
        (app.tabled(build), PRELOAD_LIBRARY),
        (app.profiled(build), PROFILE_LIBRARY),
    ):
        named = [word for word in start.command if "libxalt" in word]
        assert [word.removeprefix("LD_PRELOAD=") for word in named] == [
            f"{build / library}:/a/libxalt.so:/a/b.so"
        ]
    monkeypatch.setenv("LD_PRELOAD", "/a/libxalt.so")
    assert not any("LD_PRELOAD" in word for word in app.preloading(None).command)
    monkeypatch.setenv("LD_PRELOAD", "/a/libswitchpoint_pmpi.so")
    assert not any(PRELOAD_LIBRARY in word for word in app.untabled().command)
    monkeypatch.delenv("LD_PRELOAD")
    assert not any("LD_PRELOAD" in word for word in app.untabled().command)


@LAUNCHERS
def test_processes_have_the_table_of_their_run_wherever_they_are(
    build: Path, launcher: tuple[str, ...]
) -> None:
    app = dataclasses.replace(site(*launcher).app, build=build, variables={"OMPI_MCA_a": "1"})
    for start, table, key, value in (
        (app.untabled(), "", "SWITCHPOINT_TABLE", ""),
        (app.profiled(build / "its"), "", "SWITCHPOINT_PROFILE", f"{build}/its"),
        (app.tabled(build / "a"), f"{build}/a", "OMPI_MCA_a", "1"),
    ):
        given = dict(word.split("=") for word in start.command if "=" in word) | start.env
        assert (given["SWITCHPOINT_TABLE"], given[key]) == (table, value)
        assert bool(start.env) != bool(launcher)  # which need not pass it on
    *exports, command = app.lines(build / "a")
    assert f"SWITCHPOINT_TABLE={build}/a" in (command if launcher else exports[0])
    assert "SWITCHPOINT_TABLE" not in app.by_srun()


def test_cases_are_measured_with_the_arrivals_of_the_program() -> None:
    for late_s, arrival_s in ((2e-4, 6e-4), (0.0, 0.0), (0.9, measuring.LATEST_S)):
        calls = [tally("Bcast", 8, 0.4), tally("Bcast", 4096, 0.1), tally("Gather", 8, 0.2)]
        its = parse(content(*calls, late_s=(0.0, late_s)))
        cases = measuring.cases_of(mix.mix(its, None).to_measure, site())
        found = [(case.operation, case.sizes, case.arrival_s, case.weight) for case in cases]
        assert found == [
            ("bcast", [8, 4096], pytest.approx(arrival_s), pytest.approx(0.5)),
            ("gather", [8], 0.0, pytest.approx(0.2)),  # of which no call was sampled
        ]


def test_cells_are_measured_by_the_launcher_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_PARTITION", "cpu")
    two = site("srun", "--mpi=pmi2", procs=4)
    assert two.system.endswith(":cpu")
    of_all, of_half = two.start(2, 2, 4), two.start(1, 2, 2)
    assert of_all and of_all.argv_prefix == ["srun", "--mpi=pmi2", "-n", "4"]
    assert of_half
    assert of_half.argv_prefix[2:] == ["--nodes=1", "--ntasks-per-node=2", "-n", "2"]
    assert two.start(3, 2, 4) is None  # uneven in another way than the launcher's
    other = site("launch", procs=4)
    assert other.start(2, 2, 4) and other.start(1, 2, 2) is None
    here = site(procs=4)
    assert here.start(1, 2, 2) and here.start(2, 2, 4) is None
    calls = content(tally("Bcast", 8, 0.4))
    for its, system in ((here, "local:cpu"), (two, two.system)):
        (case,) = measuring.cases_of(mix.mix(parse(calls), None).to_measure, its)
        assert (case.system, case.scale) == (system, "2_on_1_node")
    assert not measuring.cases_of(mix.mix(parse(calls), None).to_measure, other)


def test_a_launcher_without_the_name_of_its_nodes_is_one_line() -> None:
    launcher = "switchpoint nodes exec --name"
    said = fail("advise", "-n", "2", "--launcher", launcher, "--", "true")
    assert said == f"Error: --launcher {launcher}: argument --name: expected one argument"


def test_what_is_not_utf_8_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / os.fsdecode(b"\xff")
    odd.mkdir()
    command = ("advise", "-n", "2", "--", "touch")
    named = call(*command, odd / "made")
    monkeypatch.chdir(odd)
    there = call(*command, "made")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LD_PRELOAD", f"{odd}/library.so")
    preloaded = call(*command, odd.parent / "made")
    for said in (named, there, preloaded):
        assert said.exit_code == 2 and r"\xff" in said.stderr, said.output
        assert "is not UTF-8" in said.stderr
    assert not [*odd.iterdir()]
    assert [*tmp_path.iterdir()] == [odd]


def test_a_communicator_is_crowded_by_its_own_processes_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = mix.mix(parse(content(tally("Bcast", 8, 0.4))), None).to_measure  # on 2 processes
    for cores, crowded in ((2, False), (1, True)):
        monkeypatch.setattr("tuner.advice.site.available_cores", lambda cores=cores: cores)
        (case,) = measuring.cases_of(calls, site(procs=8))
        assert case.oversubscribed == crowded


@pytest.mark.parametrize(("number", "crowded"), [("1", True), ("2", False), ("1(x2)", False)])
def test_nodes_of_a_job_have_the_cores_that_slurm_gave_it(
    monkeypatch: pytest.MonkeyPatch, number: str, crowded: bool
) -> None:
    monkeypatch.setattr("tuner.advice.site.available_cores", lambda: 2)
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", number)
    calls = mix.mix(parse(content(tally("Bcast", 8, 0.4))), None).to_measure  # on 2 processes
    (case,) = measuring.cases_of(calls, site("srun"))
    assert case.oversubscribed == crowded


@pytest.mark.usefixtures("synthetic_machine")
def test_methods_that_failed_a_soak_are_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.setenv("SWITCHPOINT_OFF", "lent")
    test_soaks.write(tmp_path, test_soaks.failed("binomial", operation="bcast"))
    succeed("ingest")
    calls = mix.mix(parse(content(tally("Bcast", 8, 0.4))), None).to_measure
    (case,) = measuring.cases_of(calls, site())
    assert case.failed == ["binomial"]
    assert case.switched_off == {"SWITCHPOINT_OFF": "lent binomial"}


def test_calls_of_sizes_that_round_to_one_weigh_together() -> None:
    calls = mix.mix(parse(content(tally("Bcast", 4, 0.2), tally("Bcast", 8, 0.4))), None).to_measure
    (case,) = measuring.cases_of(calls, site())
    assert case.sizes == [8]
    assert case.weight == pytest.approx(sum(each.more_s for each in calls))
    assert case.weight > calls[0].more_s


@pytest.mark.parametrize("call", ["Bcast", "Allgatherv"])
def test_no_size_is_measured_that_swpbench_refuses(call: str) -> None:
    largest = parse(content(tally(call, 8, 0.4))).calls[0].shape.most_bytes
    its = mix.mix(parse(content(tally(call, largest, 0.4))), None)
    (case,) = measuring.cases_of(its.to_measure, site())
    assert case.sizes == [largest // 8 * 8]


def test_a_barrier_is_measured_at_the_size_as_which_it_counts() -> None:
    its = mix.mix(parse(content(tally("Barrier", 1, 0.4))), None)
    (case,) = measuring.cases_of(its.to_measure, site())
    assert (case.operation, case.sizes) == ("barrier", [1])


IS_FREE = """
import sys
from tuner.paths import only_here
with only_here(sys.argv[1]) as is_free:
    print(is_free)
"""


@pytest.fixture
def unused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RacePlan:
    """Return the plan of an interrupted race for the program at `site()`."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    its = site()
    place = its.system, its.kernels.mpi.name
    case = PlannedCase(*place, "bcast", "blocks", "2_on_1_node", 2, 2, [8])
    plan = RacePlan("20260101T000000Z", "local.py", 0.0, [case], advises=its.app.name)
    PLANS.save(plan, PLANS.path_of(plan.campaign))
    return plan


@pytest.mark.parametrize(
    ("use", "step"),
    [
        (lambda its: measuring.measure([], its, 1.0), "advice.measuring._covers"),
        (measuring.interrupted, "advice.measuring.keep_finished"),
        (measuring.end, "campaign.order.Orders.save"),
    ],
)
def test_no_other_process_gets_an_interrupted_race_that_is_used(
    unused: RacePlan, monkeypatch: pytest.MonkeyPatch, use: Callable[[Site], object], step: str
) -> None:
    said = []

    def ask(*_: object) -> bool:
        command = [sys.executable, "-c", IS_FREE, unused.campaign]
        said.append(subprocess.check_output(command, text=True))
        return True

    monkeypatch.setattr(measuring, "_race", lambda *_: ([], ""))
    monkeypatch.setattr(f"tuner.{step}", ask)
    use(site())
    assert said == ["False\n"]


def test_an_interrupted_race_that_another_process_ends_is_not_taken(
    unused: RacePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at it and its lock."""

    @contextmanager
    def late(campaign: str) -> Iterator[bool]:
        PLANS.save(dataclasses.replace(unused, advises=""), PLANS.path_of(unused.campaign))
        with only_here(campaign) as is_free:
            yield is_free

    monkeypatch.setattr(measuring, "only_here", late)
    monkeypatch.setattr(measuring, "_race", lambda plan, *_: ([plan.campaign], ""))
    (taken,), _ = measuring.measure(unused.cases, site(), 1.0)
    assert taken != unused.campaign


@pytest.mark.usefixtures("synthetic_machine")
def test_an_interrupted_race_goes_on_on_its_machine_alone(
    unused: RacePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Homes and results are shared."""
    made: list[RacePlan] = []
    monkeypatch.setattr(
        measuring, "_race", lambda plan, *_: made.append(plan) or ([plan.campaign], "")
    )
    synthetic.write(tmp_path, synthetic.Campaign(name=unused.campaign, launches=1))
    assert measuring.interrupted(site())
    assert measuring.measure(unused.cases, site(), 1.0) == ([unused.campaign], "")
    monkeypatch.setattr("tuner.machine.systems.available_cores", lambda: 9999)
    assert not measuring.interrupted(site())
    (taken,), _ = measuring.measure(unused.cases, site(), 1.0)
    assert taken != unused.campaign and made[-1].for_advice
    measuring.end(site())
    assert PLANS.load(PLANS.path_of(unused.campaign)).advises


def test_all_that_the_preload_says_of_calls_is_kept() -> None:
    lines = [
        "bcast by binomial: 5 calls of 8 to 8 bytes",
        "bcast not by ring (it does not apply): 5 calls of 8 to 8 bytes",
        "MPI_Ialltoall left to the MPI library (nonblocking): 2 calls",
    ]
    said = "".join(f"switchpoint: {line}\n" for line in ["3 rules; calls of rank 0:", *lines])
    assert paired_runs._SAID.findall(said) == lines
