"""What is said of a table by fresh data, on outcomes that are known."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from tests import synthetic
from tests.cli import call, fail, succeed
from tests.decisions import PROVENANCE, on, point
from tests.kernels.conftest import build_kernels
from tuner.campaign.launches import LaunchError
from tuner.campaign.order import PLANS
from tuner.commands import check_choices
from tuner.domain.records import Features
from tuner.domain.tables import STATUSES, Soaked, Table
from tuner.export import forms
from tuner.machine.mpi import LaunchCommand, find_mpis
from tuner.machine.systems import BuiltKernels
from tuner.rawfile.reading import BenchFile, RawCase, Selected
from tuner.selection.rules import compile_rules
from tuner.store.store import Store
from tuner.studies.regret import launching
from tuner.studies.regret.judging import RegretOutcome, judge, lines
from tuner.studies.regret.measuring import (
    RegretRequest,
    WantedLaunch,
    known,
    outcomes,
    whole_launches,
)
from tuner.studies.regret.problems import RegretError, RegretProblem, problems


def outcome(
    table: float,
    default: float = 1.0,
    seen: bool = True,
    knew: str = "open",
    sd: float = 0.0,
    operation: str = "discovery",
    **others: float,
) -> RegretOutcome:
    """Return an outcome of times over that of the best."""
    problem = RegretProblem(operation, "random:degree=2,seed=1000", 1, 4, (8,), seen)
    times_s = {"table": table, "best": 1.0, "default": default, **others}
    methods = dict.fromkeys(times_s, "nbx")
    return RegretOutcome(problem, 8, knew, methods, times_s, 4, sd**2, oracle=0.01)


def test_regret_is_judged_against_the_best_and_the_default() -> None:
    summary = judge([outcome(1.0, default=2.0), outcome(1.1, default=1.0, PETSc=1.2)])
    assert summary.choosers["table"].mean == pytest.approx(0.05)
    assert summary.choosers["default"].mean == pytest.approx(0.5)
    assert (summary.choosers["PETSc"].cases, summary.choosers["PETSc"].mean) == (
        1,
        pytest.approx(0.2),
    )
    assert summary.worse == 0.5
    assert summary.gain == pytest.approx((2 / 1.1) ** 0.5)
    assert summary.unseen is None


def test_a_regret_that_launches_would_find_is_found_four_times_in_five() -> None:
    """Four launches that differ by 2 %: differences of this size, tested at 5 %."""
    resolution = judge([outcome(1.1, sd=0.02)]).operations["discovery"]
    assert (resolution.cases, resolution.table, resolution.oracle) == (1, pytest.approx(0.1), 0.01)
    random = np.random.default_rng(1)
    drawn = random.normal(math.log1p(resolution.finds), 0.02, (20000, 4))
    found = stats.ttest_1samp(drawn, 0.0, axis=1, alternative="greater").pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_launches_of_equal_problems_add_to_each_other() -> None:
    """Problems of a barrier have neither sizes nor patterns in which they could differ."""
    found = [on(point(operation="barrier"), 1, 4)]
    first, second = problems(Table(PROVENANCE, [], found), 2, seed=1)
    assert replace(second, number=first.number) == first
    one, two = (replace(outcome(1.1, sd=0.02), problem=its) for its in (first, second))
    alone, both = (judge(its).operations for its in ([one], [one, two]))
    assert both["barrier"].finds < alone["barrier"].finds


def test_the_largest_causes_come_first() -> None:
    found = [outcome(1.1), outcome(1.1), outcome(1.3, knew="no rule"), outcome(1.0, knew="faster")]
    causes = judge(found).causes
    assert list(causes) == ["no rule", "open", "faster"]
    assert (causes["open"].cases, causes["open"].mean) == (2, pytest.approx(0.1))


def test_what_the_table_knew_is_what_the_library_says(tmp_path: Path) -> None:
    found = [on(point("nap", 8), 2, ppn)._replace(status="faster") for ppn in (4, 9)]
    table = Table(PROVENANCE, compile_rules(found), found)
    path = tmp_path / "a.table"
    forms.write(table, "table", path)
    request = RegretRequest(table, path, "local:cpu", "openmpi", 1, 1.0)
    rules = [n for n, line in enumerate(path.read_text().splitlines(), 1) if line[:5] == "rule "]
    explained = [f"exchange nap, 2 groups, chosen by rule {path}:{n}; hurried" for n in rules]
    assert {known(each, request) for each in explained} == {"faster", "inferred"}
    estimated = "exchange nap, chosen by the model of x: estimated 1e-06 s, direct 2e-06 s"
    assert known(estimated, request) == "no rule, estimated"
    assert (
        known(f"exchange direct, chosen by default: no rule of {path} matches", request)
        == "no rule"
    )
    passed = f"chosen by default: no other rule of {path} matches; rule {path}:12 is passed over: x"
    assert known(f"exchange direct, {passed}", request) == "not applicable"
    assert known("", request) == "not stated"


def test_a_launch_that_left_a_method_out_is_not_compared() -> None:
    logs = {
        ("direct", 8): np.array([1.0, 2.0, 3.0]),
        ("nap", 8): np.array([4.0, math.nan, 6.0]),
        ("nap", 64): np.array([7.0, 8.0, 9.0]),
    }
    compared = whole_launches(logs, ["direct", "nap"], 8)
    assert compared.tolist() == [[1.0, 3.0], [4.0, 6.0]]
    assert whole_launches(logs, ["direct", "nap"], 64).shape == (2, 0)


class SyntheticLaunches:
    """Launches whose times follow from the method, with noise that differs between launches."""

    def __init__(self, noise: float, path: Path) -> None:
        self.random = np.random.default_rng(1)
        self.noise = noise
        self.path = path
        self.turns: list[int] = []

    def __call__(self, wanted: Sequence[Sequence[WantedLaunch]]) -> list[list[BenchFile]]:
        self.turns.append(sum(map(len, wanted)))
        return [[self.file(each) for each in its] for its in wanted]

    def file(self, wanted: WantedLaunch) -> BenchFile:
        times = {"direct": 3.0, "nap": 1.0, "stfw:dims=2": 1.4, "lent": 9.0, "auto": 1.4}
        names = times.keys() if wanted.methods[0] == "all" else map(own_name, wanted.methods)
        features = Features(1, 1.0, 8, 8, "{}")
        cases = [RawCase(name, 8, 8, features, 1, 0, 0.0, 0.0) for name in names]
        drawn = self.random.normal(0, self.noise, len(cases))
        samples_s = [times[case.method] * math.exp(z) for case, z in zip(cases, drawn, strict=True)]
        chosen = Selected("stfw:dims=2", f"stfw:dims=2, chosen by default: no rule of {self.path}")
        return BenchFile("", cases=cases, samples_s=np.array(samples_s), selected={8: chosen})


def own_name(spec: str) -> str:
    return spec.removesuffix(":")


@pytest.mark.parametrize(
    ("noise", "at_once", "turns"),
    [(0.001, False, [4, 8]), (0.1, False, [4, 8, 2, 2, 2]), (0.1, True, [4, 8, 6])],
)
def test_launches_follow_until_a_difference_would_show(
    tmp_path: Path, noise: float, at_once: bool, turns: list[int]
) -> None:
    table = Table(PROVENANCE, [], [])
    request = RegretRequest(table, tmp_path / "a.table", "local:cpu", "mpich", 7, 1.0)
    asked = [
        RegretProblem("exchange", f"random:degree=2,seed={n}", 1, 4, (8,), True) for n in (1, 2)
    ]
    measured = SyntheticLaunches(noise, request.path)
    found = list(outcomes(asked, request, measured, at_once))
    assert measured.turns == turns
    assert [each.problem for each in found] == asked
    for each in found:
        assert each.launches == (4 if noise < 0.01 else 7)
        assert each.methods == {"table": "stfw:dims=2", "default": "direct", "best": "nap"}
        assert each.regret() == pytest.approx(0.4, abs=2 * noise)


def test_sizes_with_nothing_to_compare_show_nothing(tmp_path: Path) -> None:
    """At 512 B launches differ by 5 %, and elsewhere one method is so slow that one races alone."""
    table = Table(PROVENANCE, [], [])
    request = RegretRequest(table, tmp_path / "a.table", "local:cpu", "mpich", 20, 1.0)
    chosen = Selected("direct", f"direct, chosen by default: no rule of {request.path}")

    def launch(wanted: WantedLaunch) -> BenchFile:
        features, sizes = Features(1, 1.0, 8, 8, "{}"), wanted.problem.sizes
        times_s = {
            (method, size): 1.0 if method == "direct" else nap_s
            for size in sizes
            for nap_s in [1.02 * math.exp(0.05 * (-1) ** wanted.number) if size == 512 else 9.0]
            for method in ("direct", "nap")
        }
        cases = [RawCase(*case, 8, features, 1, 0, 0.0, 0.0) for case in times_s]
        samples_s = np.array([*times_s.values()])
        return BenchFile(
            "", cases=cases, samples_s=samples_s, selected=dict.fromkeys(sizes, chosen)
        )

    def measure(wanted: Sequence[Sequence[WantedLaunch]]) -> list[list[BenchFile]]:
        return [[*map(launch, its)] for its in wanted]

    def found(*sizes: int) -> list[RegretOutcome]:
        problem = RegretProblem("exchange", "random:degree=2,seed=1", 1, 4, sizes, True)
        return list(outcomes([problem], request, measure, at_once=False))

    alone, compared, both = found(8, 64), found(512), found(8, 64, 512)
    assert [each.launches for each in alone] == [4, 4]
    assert 4 < compared[0].launches < 20
    assert [each.launches for each in both] == 3 * [compared[0].launches]
    of_alone, of_compared, of_both = (
        judge(its).operations["exchange"] for its in (alone, compared, both)
    )
    assert (of_alone.finds, of_alone.oracle) == (None, None)
    assert of_compared.finds == of_both.finds == pytest.approx(0.05, abs=0.005)
    assert of_compared.oracle == of_both.oracle == pytest.approx(0.05, abs=0.03)


def test_a_problem_that_nothing_measured_leaves_the_others(tmp_path: Path) -> None:
    request = RegretRequest(Table(PROVENANCE, [], []), tmp_path / "a", "local:cpu", "mpich", 4, 1.0)
    slow, fast = (RegretProblem("exchange", name, 1, 4, (8,), True) for name in ("slow", "fast"))
    measured = SyntheticLaunches(0.001, request.path)

    def measure(wanted: Sequence[Sequence[WantedLaunch]]) -> list[list[BenchFile]]:
        return [
            [BenchFile("") if each.problem == slow else measured.file(each) for each in its]
            for its in wanted
        ]

    for at_once in (False, True):
        (found,) = outcomes([slow, fast], request, measure, at_once)
        assert (found.problem, found.launches) == (fast, 4)
    assert list(outcomes([slow], request, measure, at_once=True)) == []


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_job_that_fails_leaves_the_others(tmp_path: Path, turn: int) -> None:
    """A problem keeps the launches of the turns before."""
    request = RegretRequest(Table(PROVENANCE, [], []), tmp_path / "a", "local:cpu", "mpich", 7, 1.0)
    lost, other = (RegretProblem("exchange", name, 1, 4, (8,), True) for name in ("lost", "other"))
    measured = SyntheticLaunches(0.1, request.path)

    def measure(wanted: Sequence[Sequence[WantedLaunch]]) -> list[list[BenchFile]]:
        fails = len(measured.turns) == turn
        files = measured(wanted)
        return [
            [] if fails and its[0].problem == lost else of
            for its, of in zip(wanted, files, strict=True)
        ]

    found = {
        each.problem: each.launches for each in outcomes([lost, other], request, measure, True)
    }
    assert found == ({lost: 4, other: 7} if turn == 2 else {other: 7})


def test_a_launch_that_fails_leaves_the_others_and_failed_methods_are_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_OFF", "lent")
    soaks = [Soaked(operation, "nap", 0, "hung") for operation in ("exchange", "bcast")]
    table = Table(replace(PROVENANCE, soaks=[*soaks, Soaked("bcast", "star", 0, "hung")]), [], [])
    request = RegretRequest(table, tmp_path / "a.table", "local:cpu", "mpich", 4, 1.0)
    lost, other = (RegretProblem("exchange", name, 1, 4, (8,), True) for name in ("lost", "other"))
    offs: list[str] = []

    def launch(start: LaunchCommand, _: Path, words: Sequence[str], budget_s: float) -> BenchFile:
        offs.append(start.env["SWITCHPOINT_OFF"])
        if "lost" in words:
            raise LaunchError("rank 1 hangs")
        return BenchFile("")

    monkeypatch.setattr(launching.launches, "measure", launch)
    built = BuiltKernels(find_mpis()[0], tmp_path, tmp_path / "swpbench")
    monkeypatch.setattr(launching, "kernels", lambda _: built)
    console = Console(record=True)
    wanted = [[WantedLaunch(its, ("all",), 0)] for its in (lost, other)]
    assert list(map(len, launching.here(request, console)(wanted))) == [0, 1]
    assert console.export_text() == "failed: rank 1 hangs\n"
    assert offs == ["lent nap", "lent nap"]
    assert launching._job(wanted[0], request).env["SWITCHPOINT_OFF"] == "lent nap"


def test_a_method_that_is_off_leaves_the_others_to_be_judged(tmp_path: Path) -> None:
    """Up to 99 processes PETSc would count (`pcx`) and deal.II exchange all (`pex`)."""
    request = RegretRequest(Table(PROVENANCE, [], []), tmp_path / "a", "local:cpu", "mpich", 4, 1.0)
    problem = RegretProblem("discovery", "random:degree=3,seed=1001", 1, 6, (8,), True)
    chosen = Selected("nbx", f"discovery nbx, chosen by default: no rule of {request.path}")

    def launch(off: str) -> BenchFile:
        times_s = {"pex": 6.0, "pcx": 5.0, "nbx": 4.0}
        cases = [
            RawCase(method, 8, 8, Features(3, 3.0, 8, 8, "{}"), 1, 0, 0.0, 0.0)
            for method in times_s
            if method != off
        ]
        samples_s = np.array([times_s[case.method] for case in cases])
        return BenchFile("", cases=cases, samples_s=samples_s, selected={8: chosen})

    def copies(file: BenchFile, wanted: Sequence[Sequence[WantedLaunch]]) -> list[list[BenchFile]]:
        return [[file] * len(its) for its in wanted]

    for off, others in (("", {"PETSc", "deal.II"}), ("pcx", {"deal.II"})):
        file = launch(off)
        (found,) = outcomes([problem], request, partial(copies, file), True)
        assert found.methods.keys() == {"table", "default", "best"} | others


def test_a_missed_target_is_a_failing_line_with_its_figure() -> None:
    found = judge([outcome(1.0), outcome(1.5, seen=False)])
    missed = {line.what: line for line in lines(found) if not line.met}
    assert missed["mean regret"].achieved == pytest.approx(0.25)
    assert missed["mean regret, processes never measured"].achieved == pytest.approx(0.5)
    assert "regret, 95th percentile, collectives" not in missed  # there were none
    found = judge([outcome(1.1, operation="bcast"), outcome(1.2, operation="bcast")])
    missed = {line.what: line for line in lines(found) if not line.met}
    assert missed["regret, 95th percentile, collectives"].achieved == pytest.approx(0.195)
    assert all(line.met for line in lines(judge([outcome(1.0)])))


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write results of this machine, as it then is."""
    monkeypatch.setattr("tuner.machine.systems.processor", lambda: "Synthetic CPU")
    monkeypatch.setattr("tuner.machine.systems.available_cores", lambda: 8)
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    environment = find_mpis()[0].name
    synthetic.write(tmp_path, synthetic.Campaign(environment=environment, procs=(2, 4), cores=8))
    succeed("ingest")
    return tmp_path


def test_without_a_table_there_is_nothing_to_judge(results: Path) -> None:
    assert "run `switchpoint tune`" in fail("check", "choices")


def test_a_damaged_plan_loses_no_outcomes(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    succeed("tune", "--require-soak", "0")
    plan = PLANS.path_of(synthetic.Campaign.name)
    plan.parent.mkdir()
    plan.write_text("{}")
    monkeypatch.setattr(check_choices, "_measured", lambda *_: [outcome(1.0)])
    answer = call("check", "choices", "--json")
    assert f"the cost of its campaigns is unknown: {plan}: not a plan" in answer.stderr
    assert json.loads(answer.stdout)["cost"] is None
    assert len(list((results / "studies").glob("regret-*.json"))) == 1


def test_problems_are_new_and_reproducible(results: Path) -> None:
    succeed("tune")
    with Store.open(results / "switchpoint.db") as store:
        table = store.table(str(store.systems()["system"][0]))
    assert table is not None
    drawn = list(problems(table, 50, seed=1))
    assert drawn == list(problems(table, 50, seed=1))
    assert {(problem.nodes, problem.ppn) for problem in drawn} == {(1, 2), (1, 3), (1, 4)}
    assert {problem.seen for problem in drawn if problem.ppn == 3} == {False}
    for problem in drawn:
        assert int(problem.pattern.rpartition("seed=")[2]) >= 1000
        assert all(8 <= size <= 131072 and size % 8 == 0 for size in problem.sizes)


@pytest.mark.parametrize("name", ["local:cpu", "sample"])
def test_a_table_of_another_machine_is_not_judged_here(results: Path, name: str) -> None:
    synthetic.write(results, synthetic.Campaign(system=name, cores=4, day="2026-11-22"))
    succeed("ingest")
    succeed("tune")
    with Store.open(results / "switchpoint.db") as store:
        (system,) = (row.system for row in store.systems().itertuples() if row.cores == 4)
    said = fail("check", "choices", "--system", system)
    assert f"{system} is of another machine, Synthetic CPU, 4 cores; judge it there" in said


@pytest.mark.check
def test_the_regret_of_a_table_and_a_rival_is_measured(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bcast = synthetic.Campaign(environment=find_mpis()[0].name, cores=8)
    synthetic.write(results, synthetic.of_bcast(bcast))
    succeed("ingest")
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(build_kernels(find_mpis()[0])))
    options = ("--system", "local-cpu", "--rival", "pico")
    assert "no systems match pico; choose one with --rival" in fail("check", "choices", *options)
    succeed("ingest", Path(__file__).parent / "data" / "pico")
    succeed("tune", "--require-soak", "0")
    options += ("--problems", "1", "--launches", "4", "--budget", "2")
    answer = call("check", "choices", *options, "--json")
    assert answer.stdout, answer.stderr
    document = json.loads(answer.stdout)
    assert document["settings"]["rival"].startswith("pico-local-openmpi-")
    assert document["outcomes"]
    for each in document["outcomes"]:
        assert {"table", "best", "default", "rival", "rival's least mean"} <= each["times_s"].keys()
        assert each["methods"]["rival"] == "vendor"
        assert each["launches"] == 4
        assert each["oracle"] >= 0
        assert each["chosen_by"] in (*STATUSES, "inferred", "not applicable")
    assert answer.exit_code == (
        not all(line["met"] for line in document["targets"] if line["achieved"] is not None)
    )
    assert {"finds", "oracle"} <= document["verdict"]["operations"]["bcast"].keys()
    assert document["verdict"]["choosers"]["rival"]["cases"] == len(document["outcomes"])
    assert len(list((results / "studies").glob("regret-*.json"))) == 1


def test_problems_have_the_processes_and_patterns_that_are_asked_for() -> None:
    found = [on(point(), n, p) for n, p in [(1, 2), (1, 8), (2, 4), (4, 4)]]
    table = Table(PROVENANCE, [], found)
    drawn = list(problems(table, 8, 1, procs=[6, 8, 12], patterns=["hub:hubs=1,seed=7"]))
    layouts = [(each.nodes, each.ppn) for each in drawn]
    assert layouts == [(1, 6), (1, 8), (2, 4), (3, 4)] * 2
    assert {each.pattern for each in drawn} == {"hub:hubs=1,seed=7"}
    also = [on(point(operation="bcast"), n, p) for n, p in [(1, 2), (1, 8), (2, 4), (4, 4)]]
    few = problems(Table(PROVENANCE, [], [*found, *also]), 6, 1, procs=[6, 8, 12])
    assert {(each.nodes, each.ppn) for each in few} == {*layouts}
    (alone,) = problems(table, 1, 1, procs=[16])
    assert (alone.nodes, alone.ppn) == (4, 4)
    with pytest.raises(RegretError, match="no tuned layout has 7 or 5000 processes, nor any"):
        list(problems(Table(PROVENANCE, [], found[2:]), 1, 1, procs=[7, 8, 5000]))
    with pytest.raises(RegretError, match="no layout of several processes"):
        list(problems(Table(PROVENANCE, [], [on(point(), 1, 1)]), 1, 1))


@pytest.mark.parametrize("operations", [["exchange"], ["discovery", "exchange"]])
@pytest.mark.parametrize(("places", "kinds"), [(1, 2), (2, 2), (2, 3), (3, 2), (4, 2), (4, 6)])
def test_every_count_that_is_asked_for_has_every_pattern(
    operations: list[str], places: int, kinds: int
) -> None:
    found = [on(point(operation=each), 1, ppn) for each in operations for ppn in (2, 9)]
    procs = range(2, 2 + places)
    patterns = [f"random:degree=1,seed={seed}" for seed in range(kinds)]
    count = len(operations) * places * kinds
    drawn = list(problems(Table(PROVENANCE, [], found), count, 1, procs, patterns))
    pairs = {(each.operation, each.procs, each.pattern) for each in drawn}
    assert pairs == set(product(operations, procs, patterns))
    first = drawn[:: len(operations)][:kinds]
    assert len({each.pattern for each in first}) == kinds  # few problems have them all


def test_problems_lie_between_neighbours_or_where_there_are_none() -> None:
    layouts = [(1, 8), (1, 16), (2, 16), (4, 16), (8, 2), (1, 1)]
    found = [on(point(), n, p) for n, p in layouts]
    drawn = {(each.nodes, each.ppn) for each in problems(Table(PROVENANCE, [], found), 500, seed=1)}
    assert drawn == {*((1, ppn) for ppn in range(8, 17)), (2, 16), (3, 16), (4, 16), (8, 2)}
