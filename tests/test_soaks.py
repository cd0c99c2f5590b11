"""Soaks on their way from raw files to what is chosen, and to what is said of it."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests import raw, synthetic
from tests.cli import call, fail, succeed
from tests.decisions import PROVENANCE, point
from tuner.campaign import soaking
from tuner.campaign.order import SoakJob, SoakLaunch
from tuner.campaign.plan_state import failed_methods, known
from tuner.campaign.plans import Entrants, PlannedCase, RacePlan
from tuner.campaign.soaking import SoakRequest, affordable, jobs_of, partition_of
from tuner.domain.tables import OPEN, UNSOAKED, Soaked, SoakedAt, Table
from tuner.machine.nodes.namespaces import Nodes
from tuner.machine.systems import of_this_machine, other_machine
from tuner.paths import CHECKOUT
from tuner.rawfile import reading
from tuner.rawfile.ingest import ingest
from tuner.rawfile.kinds import soak
from tuner.selection.evidence import have_filled
from tuner.selection.rules import compile_rules
from tuner.selection.soaks import Lack, notes, waiting, withhold
from tuner.selection.tuning import tune
from tuner.store.store import Store

HANG = "hang: rank 0 made no progress in 60 s: execution 10000"


def record(method: str, **fields: Any) -> dict[str, Any]:
    """Return a soak that passed, but for what is given."""
    passed = {"operation": "exchange", "pattern": "random:degree=2,seed=1", "size_bytes": 8}
    passed |= {"executions": 10_000, "passed": True, "failure": "", "reason": ""}
    more = {"seconds": 1.5, "growth_bytes": 0, "stack": []}
    return {"record": "soak", "method": method} | passed | more | fields


def failed(method: str, **fields: Any) -> dict[str, Any]:
    return record(method, passed=False, failure="hang", reason=HANG, **fields)


def passed_twice(executions: int = 10_000) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return soaks at both ends of the sizes at which stfw wins."""
    return record("stfw:dims=2"), record("stfw:dims=2", size_bytes=64, executions=executions)


def write(
    directory: Path, *records: dict[str, Any], launch: int = 0, commit: str = "0123abc"
) -> Path:
    """Write a launch of soaks on the synthetic system."""
    header = synthetic.header(synthetic.Campaign(operation="soak"), launch, "random:degree=2", 2)
    path = directory / f"soak-{launch}.jsonl"
    return raw.write_launch(path, header | {"commit": commit}, records)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Measure a system on which stfw wins at 8 and 64 bytes, and direct above."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.delenv("SWITCHPOINT_REQUIRE_SOAK")
    synthetic.write(tmp_path, synthetic.Campaign(samples=20, sizes=(8, 64, 32768)))
    return tmp_path


def tuned(*options: str) -> tuple[set[str], dict[str, Any]]:
    """Return the methods of the rules, and what the table says of its origin."""
    succeed("ingest")
    (table,) = json.loads(succeed("tune", *options, "--json"))
    return {rule["method"] for rule in table["rules"]}, table["provenance"]


def test_what_won_waits_for_its_soak(results: Path) -> None:
    assert tuned()[0] == {"direct"}
    waits = "faster, but in no rule until soaked 10000 times: exchange stfw:dims=2 on 1 x 2"
    for said in (succeed("show"), succeed("export"), succeed("export", "--format", "header")):
        assert f"{waits}; run `switchpoint soak`" in said
    small, large = (row for row in succeed("show").splitlines() if row.startswith("exchange"))
    assert re.search(
        r" up to 1.41 KiB +direct +unsoaked +direct; stfw:dims=2 is \d\.\d+ to ", small
    )
    assert "unsoaked" not in large
    write(results, record("stfw:dims=2", executions=9999), record("stfw:dims=2", size_bytes=64))
    assert tuned()[0] == {"direct"}
    write(results, record("stfw:dims=2", executions=1), launch=1)
    assert tuned()[0] == {"direct", "stfw:dims=2"}
    shown = succeed("show")
    assert "in no rule until" not in shown
    assert " 1440, 20000 executions in soaks " in shown  # of the same campaign


def test_a_method_that_was_not_soaked_is_marked_where_it_may_be_chosen(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_REQUIRE_SOAK", "0")
    assert tuned()[0] == {"direct", "stfw:dims=2"}
    assert "not soaked: exchange stfw:dims=2 on 1 x 2; " in succeed("show")
    text = succeed("export")
    assert "# not soaked: exchange stfw:dims=2" in text
    assert text.count("; not soaked") == 1


def test_simulated_machines_need_no_soaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.delenv("SWITCHPOINT_REQUIRE_SOAK")
    synthetic.write(tmp_path, synthetic.Campaign(system="simulated:torus-4x4x2"))
    methods, provenance = tuned()
    assert (methods, provenance["required_executions"]) == ({"direct", "stfw:dims=2"}, 0)
    for said in (succeed("show"), succeed("export"), succeed("export", "--format", "header")):
        assert "soak" not in said


def test_a_method_that_passed_is_chosen_without_a_word(results: Path) -> None:
    write(results, *passed_twice(2005))
    assert tuned()[0] == {"direct", "stfw:dims=2"}
    assert "not soaked" not in succeed("show")
    assert "; soaked 12005 times" in succeed("export")


def test_a_method_that_failed_once_is_never_chosen(results: Path) -> None:
    write(results, record("stfw:dims=2"), failed("stfw:dims=2", size_bytes=64))
    write(results, record("stfw:dims=2", executions=10**9), launch=1)
    assert tuned()[0] == {"direct"}
    for said in (succeed("show"), succeed("export"), succeed("export", "--format", "header")):
        assert f"exchange stfw:dims=2 failed its soak and is in no rule: {HANG} (64 B, " in said


def test_other_sources_are_tried_anew(results: Path) -> None:
    write(results, failed("stfw:dims=2"))
    write(results, *passed_twice(), launch=1, commit="fedc")
    assert tuned()[0] == {"direct", "stfw:dims=2"}


def test_what_failed_is_soaked_anew_once_other_sources_measured_the_system(results: Path) -> None:
    write(results, failed("stfw:dims=2"), *passed_twice())
    later = synthetic.Campaign(
        name="20261122T000000Z", day="2026-11-22", samples=20, sizes=(8, 64, 32768), seed=2
    )
    for path in synthetic.write(results, later):
        path.write_text(path.read_text().replace("0123abc", "fedc"))
    assert tuned()[0] == {"direct"}
    said = succeed("show")
    assert "failed its soak" not in said
    assert "faster, but in no rule until soaked 10000 times: exchange stfw:dims=2" in said
    assert tuned("--require-soak", "0")[0] == {"direct"}  # as nothing would soak it


def test_a_system_with_a_name_of_its_own_is_soaked_by_a_run(results: Path) -> None:
    synthetic.write(results, synthetic.Campaign(system="cluster", samples=20, sizes=(8, 64)))
    succeed("ingest")
    succeed("tune")
    said = succeed("show", "--system", "cluster-")
    assert re.search(
        r"until soaked 10000 times: .*; run `switchpoint run --environment mpich --anonymous-as "
        "cluster`",
        said,
    )


def test_the_default_stays_whatever_it_does(results: Path) -> None:
    write(results, failed("direct"), *passed_twice())
    assert tuned()[0] == {"direct", "stfw:dims=2"}
    assert "exchange direct failed its soak but stays the default" in succeed("show")


@pytest.mark.usefixtures("synthetic_machine")
def test_systems_are_soaked_that_this_machine_still_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither those of PICO, nor those of a library that another replaced."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    synthetic.write_upgrade(tmp_path, 1)
    succeed("ingest")
    succeed("ingest", CHECKOUT / "tests" / "data" / "pico")
    asked: list[str] = []
    monkeypatch.setattr(soaking, "soak", lambda systems, *_: asked.extend(systems) or True)
    succeed("soak", "--require-soak", "1000")
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        systems = store.systems()
    assert len(systems) == 3
    assert asked == [*systems[systems["mpi_library"].str.contains("5.0.3")]["system"]]


@pytest.mark.usefixtures("synthetic_machine")
def test_systems_that_cannot_be_soaked_from_here_are_tuned(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = {
        "published": "has a name of its own; soak it by `switchpoint run --environment mpich "
        "--anonymous-as published`",
        "hpc:long": "not a system of this machine; give its configuration with --config",
    }
    for system in refused:
        synthetic.write(results, synthetic.Campaign(system=system, samples=20, sizes=(8, 64)))
    later = {"name": "later", "day": "2026-11-22"}
    synthetic.write(results, synthetic.Campaign(**later, cores=9999, samples=20, sizes=(8, 64)))
    succeed("ingest")
    asked: list[str] = []
    monkeypatch.setattr(soaking, "soak", lambda systems, *_: asked.extend(systems) or True)
    said = succeed("soak")
    assert [name.startswith("local-cpu-mpich-") for name in asked] == [True]
    assert len(list(results.glob("*/switchpoint.table"))) == 4
    assert "of another machine, Synthetic CPU, 9999 cores; soak it there\n" in said
    for system, why in refused.items():
        name = system.replace(":", "-")
        assert re.search(rf"^not soaked: {name}-.*: {re.escape(why)}$", said, re.MULTILINE)
        assert why in fail("soak", "--system", name)
    monkeypatch.setattr(soaking, "soak", lambda *_: False)
    result = call("soak")
    assert (result.exit_code, result.stderr) == (1, "Error: nothing was soaked of what waits\n")


@pytest.mark.usefixtures("synthetic_machine")
def test_what_another_machine_recorded_later_is_not_taken_for_this_one(results: Path) -> None:
    write(results, failed("stfw:dims=2"))
    later = synthetic.Campaign(name="later", day="2026-11-22", cores=9999, samples=20, sizes=(8,))
    synthetic.write(results, later)
    succeed("ingest")
    assert failed_methods("local:cpu", "mpich") == {"exchange": ["stfw:dims=2"]}
    case = PlannedCase("local:cpu", "mpich", "exchange", "random", "", 2, 2, [8])
    measured = known(RacePlan("20261121T034501Z", "local.py", 1.0, [case]))
    with Store.open(results / "switchpoint.db") as store:
        systems = store.systems()
    assert {*measured.places} == {*systems[systems["cores"] == 2]["system"]}


@pytest.mark.usefixtures("synthetic_machine")
def test_a_job_with_a_part_of_the_cores_soaks_what_it_can_record(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuner.machine.systems.os.cpu_count", lambda: 8)
    synthetic.write(
        results, synthetic.Campaign(name="whole", day="2026-11-22", cores=8, samples=20)
    )
    succeed("ingest")
    asked: list[str] = []
    monkeypatch.setattr(soaking, "soak", lambda systems, *_: asked.extend(systems) or True)
    said = succeed("soak")
    with Store.open(results / "switchpoint.db") as store:
        (own,) = (row.system for row in store.systems().itertuples() if row.cores == 2)
    assert asked == [own]
    assert "of another machine, Synthetic CPU, 8 cores; soak it there\n" in said
    assert other_machine("local:cpu", "Synthetic CPU", 8, or_whole=True) == ""
    named = pd.DataFrame({"name": ["lab"], "cpu_model": ["Synthetic CPU"], "cores": [9]})
    assert len(of_this_machine(named)) == 1  # which may have been measured anywhere
    assert of_this_machine(named, partition="local:cpu").empty


@pytest.mark.usefixtures("synthetic_machine")
def test_winners_are_soaked_on_as_many_virtual_nodes_as_were_measured(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    its = synthetic.Campaign("virtual-nodes:tcp-1gbit", samples=20, sizes=(8, 64))
    synthetic.write(results, its)
    of_eight = {"nodes": 8, "ppn": 2, "oversubscribed": False}
    for path in synthetic.write(results, replace(its, name="eight", procs=(16,))):
        header, *others = raw.read(path)
        raw.write(path, [header | of_eight, *others])
    succeed("ingest")
    made: list[int] = []
    jobs: list[SoakJob] = []
    monkeypatch.setattr(
        "tuner.machine.nodes.namespaces.available",
        lambda partition, **its: made.append(its["made"]) or nullcontext(),
    )
    monkeypatch.setattr(soaking, "_run", lambda its, *_: jobs.extend(its) or 0.0)
    for count, soaked in ((4, {1}), (8, {1, 8})):
        up = Nodes("default", count, "1gbit", 2, "7")
        monkeypatch.setattr("tuner.machine.nodes.launch.find", lambda name, up=up: up)
        said = call("soak", "--system", "virtual-nodes").stdout
        assert {job.nodes for job in jobs} == soaked
        left_out = "not soaked, as 8 virtual nodes are needed: exchange stfw:dims=2; once those"
        assert (left_out in said) == (8 not in soaked)
        assert ("nodes up --nodes 8 --rate 1gbit`" in said) == (8 not in soaked)
        jobs.clear()
    assert made == [8, 8]


@pytest.mark.usefixtures("synthetic_machine")
def test_a_configuration_is_for_its_own_systems(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for system in ("hpc:long", "hpc:short"):
        synthetic.write(results, synthetic.Campaign(system=system, samples=20, sizes=(8, 64)))
    succeed("ingest")
    config = tmp_path / "hpc.py"
    systems = [{"name": "hpc", "partitions": [{"name": "long"}]}]
    content = {"systems": systems, "environments": [{"name": "mpich"}]}
    config.write_text(f"site_configuration = {content}")
    asked: list[str] = []
    monkeypatch.setattr(soaking, "soak", lambda systems, *_: asked.extend(systems) or True)
    said = succeed("soak", "--config", config)
    assert {name.partition("-mpich")[0] for name in asked} == {"local-cpu", "hpc-long"}
    assert re.search(rf"^not soaked: hpc-short-.*: not a system of {config};", said, re.MULTILINE)


def test_what_waits_is_soaked_on_each_layout_at_both_ends_of_its_sizes(results: Path) -> None:
    """On 1 x 2 one end has passed already, and 1 x 4 and 1 x 8 know other sizes."""
    more = synthetic.Campaign(name="more", procs=(4, 8), samples=20, sizes=(64, 128, 512))
    synthetic.write(results, more)
    write(results, record("stfw:dims=2", executions=500), launch=0)
    write(results, record("stfw:dims=2", size_bytes=64, executions=20), launch=1)
    succeed("ingest")
    with Store.open(results / "switchpoint.db") as store:
        (name,) = store.systems()["system"]
        table = tune(store, name, required_executions=500)
        systems = ["site:cpu", "site:gpu"]
        request = SoakRequest(Path("local.py"), 500, 60.0, systems=systems)
        jobs = jobs_of(table, waiting(table), lambda lack: 1.0, request)
        own = replace(table.provenance, name="site:cpu")
        assert partition_of(own, systems) == "site:cpu"
    assert {(job.system, job.environment) for job in jobs} == {("site:gpu", "mpich")}
    lacking, small, large = (
        Entrants([size], ["stfw:dims=2"], n) for size, n in ((64, 30), (64, 500), (512, 50))
    )
    assert {(job.nodes, job.ppn): job.launches for job in jobs} == {
        (1, 2): [SoakLaunch(8, [lacking], "exchange")],
        (1, 4): [SoakLaunch(11, [small, large], "exchange")],
        (1, 8): [SoakLaunch(11, [small, large], "exchange")],
    }


def test_methods_are_soaked_wholly_or_not_at_all_those_that_take_least_first() -> None:
    lacks = [
        Lack("bcast", method, 1, ppn, size, 1000)
        for ppn in (8, 2)
        for method in ("binomial", "ring")
        for size in (8, 64)
    ]

    def expected(lack: Lack) -> float:
        return 30.0 if (lack.method, lack.ppn) == ("binomial", 2) else lack.ppn / 2

    for most_s, count in ((0.1, 2), (4.9, 2), (13, 4), (25, 6), (99, 8)):
        chosen = affordable(lacks, expected, most_s)
        assert len(chosen) == count
        assert {(lack.method, lack.ppn) for lack in chosen[:2]} == {("ring", 2)}
        assert ("binomial", 2) not in {(lack.method, lack.ppn) for lack in chosen[:6]}
        assert {lack.size_bytes for lack in chosen} == {8, 64}
    assert affordable(lacks, expected, 0.1, at_least_one=False) == []


def test_a_method_is_chosen_on_the_layouts_on_which_it_passed(results: Path) -> None:
    more = synthetic.Campaign(name="more", procs=(4,), samples=20, sizes=(8, 64, 32768))
    synthetic.write(results, more)
    write(results, *passed_twice())
    tuned()
    rules = [row for row in succeed("show").splitlines() if " up to 1.41 KiB " in row]
    waiting = {row.split("  ")[1].strip(): "unsoaked" in row for row in rules}
    assert waiting == {"1 x 2": False, "1 x 3 (o) (i)": True, "1 x 4 (o)": True}


def test_filled_sizes_wait_for_a_soak_that_others_need_not() -> None:
    """Those between the others' ends need none."""
    shown = [point("nap", size) for size in (64, 512)]
    below, between, above = (
        point("nap", size)._replace(status=OPEN, filled=True) for size in (8, 128, 4096)
    )
    its = shown[0].case.layout

    def waits(soaked: dict[int, int]) -> list[int]:
        """Return the sizes that wait, where these have passed so many executions."""
        places = [SoakedAt(its.nodes, its.ppn, size, count) for size, count in soaked.items()]
        soak = Soaked("exchange", "nap", sum(soaked.values()), "", places)
        found = withhold([below, *shown, between, above], [soak], 10_000)
        return [each.case.bytes for each in found if each.status == UNSOAKED]

    ends = {64: 10_000, 512: 1000}
    provenance = replace(PROVENANCE, required_executions=10_000)
    table = Table(provenance, [], [below, *shown, between, above])
    lacks = waiting(table)
    assert {(lack.size_bytes, lack.for_filled) for lack in lacks} == {
        *((64, False), (512, False)),
        *((8, True), (4096, True)),
    }
    bought = affordable(lacks, lambda lack: 9.0, 30.0, at_least_one=False)
    assert [lack.size_bytes for lack in bought] == [64, 512]  # 4096 takes no time from them
    assert "faster, but in no rule until soaked" in notes(table)[0]
    places = [SoakedAt(its.nodes, its.ppn, size, count) for size, count in ends.items()]
    soaks = [Soaked("exchange", "nap", 11_000, "", places)]
    points = withhold(table.points, soaks, 10_000)
    table = Table(replace(provenance, soaks=soaks), compile_rules(points), points)
    assert notes(table)[0].startswith("not chosen at open sizes beyond those where it was soaked")
    filled = [rule.method for rule, its in zip(table.rules, have_filled(table), strict=True) if its]
    assert filled == ["nap"]
    assert waits({}) == [8, 64, 512, 128, 4096]
    assert waits(ends) == [8, 4096]
    assert waits(ends | {8: 10_000}) == [8, 4096]
    assert waits(ends | {8: 10_000, 4096: 1000}) == []
    (alone,) = withhold([below], [], 10_000)
    assert (alone.method, alone.status) == ("direct", UNSOAKED)


def test_soaks_can_be_required(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(results, *passed_twice())
    assert tuned("--require-soak", "10000")[0] == {"direct", "stfw:dims=2"}
    assert tuned("--require-soak", "10001")[0] == {"direct"}
    assert "only methods that passed 10001 executions" in succeed("show")
    monkeypatch.setenv("SWITCHPOINT_REQUIRE_SOAK", "10001")
    assert tuned()[0] == {"direct"}
    assert tuned("--require-soak", "0")[0] == {"direct", "stfw:dims=2"}
    for wrong in ("many", "\u0663", "1_000", "-1", "9" * 5000):
        monkeypatch.setenv("SWITCHPOINT_REQUIRE_SOAK", wrong)
        assert f"SWITCHPOINT_REQUIRE_SOAK={wrong}: not a number" in fail("tune")


def test_soaks_arrive_in_the_store_once(tmp_path: Path) -> None:
    path = write(tmp_path, record("direct"), failed("nap"))
    assert ingest(tmp_path / "s.db", [path]).problems == []
    assert ingest(tmp_path / "s.db", [path]).unchanged == 1
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        soaks = soak.stored(store, store.systems()["system"][0])
    assert soaks["method"].tolist() == ["direct", "nap"]
    assert soaks["passed"].tolist() == [True, False]
    assert soaks["commit"].tolist() == ["0123abc"] * 2


@pytest.mark.parametrize("together", [True, False])
def test_a_failure_in_a_file_that_has_grown_arrives(tmp_path: Path, together: bool) -> None:
    """Of several launches, as the digest of the longer file is sometimes the greater one."""
    for launch in range(8):
        path = write(tmp_path, record("direct"), failed("nap"), launch=launch)
        header, passes, fails, _ = path.read_text().splitlines(keepends=True)
        (tmp_path / f"part-{launch}.jsonl").write_text(header + passes)
        path.write_text(header + passes + fails)
    parts, grown = sorted(tmp_path.glob("part-*")), sorted(tmp_path.glob("soak-*"))
    steps = [[*parts, *grown]] if together else [parts, grown, parts]
    problems = [each for step in steps for each in ingest(tmp_path / "s.db", step).problems]
    assert not [each for each in problems if "another file of the same launch" in each.message]
    less = [each.path for each in problems if "holds less of the launch" in each.message]
    assert less == [str(path) for path in parts]
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        soaks = soak.stored(store, store.systems()["system"][0])
    assert soaks["passed"].tolist() == [True, False] * 8


def test_more_executions_than_a_number_holds_are_the_most_that_it_holds(tmp_path: Path) -> None:
    methods = ["direct", *(f"stfw:dims={dims}" for dims in range(1, 10))]
    path = write(tmp_path, *(record(method, executions=2**60 - 1) for method in methods))
    assert ingest(tmp_path / "s.db", [path]).problems == []
    with Store.open(tmp_path / "s.db") as store:
        assert store.campaigns()["executions"].tolist() == [2**63 - 1]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (record("direct"), "a second soak: operation='exchange'"),
        (record("nap", operation="dance"), "operation dance is not known here"),
        (record("nap", executions=-1), "not a valid record"),
        (record("nap", executions=2**60), "not a valid record"),
    ],
)
def test_what_cannot_be_right_is_reported(
    tmp_path: Path, second: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, record("direct"), second)
    assert message in reading.read(path).problems[0].message


def test_a_soak_in_a_launch_of_something_else_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path, record("direct"))
    path.write_text(path.read_text().replace('"operation": "soak"', '"operation": "exchange"', 1))
    assert "in a launch of another kind" in reading.read(path).problems[0].message


@pytest.mark.parametrize("by_memory", ["shared", "nap:node=shared"])
def test_messages_by_memory_are_soaked_where_equal_ones_go_by_it(
    results: Path, by_memory: str
) -> None:
    """Above, a mean of the bytes of messages says nothing of them."""

    def fast(method: str, size: int) -> float:
        return (1.0 if method == "direct" else 0.3) * 1e-5

    campaign = synthetic.Campaign(
        name="uneven", procs=(4,), methods=("direct", by_memory), times=fast, samples=20
    )
    synthetic.write(results, replace(campaign, sizes=(8, 16384)))
    succeed("ingest")
    with Store.open(results / "switchpoint.db") as store:
        (name,) = store.systems()["system"]
        lacks = waiting(tune(store, name, required_executions=500))
    of_it = {(lack.ppn, lack.size_bytes) for lack in lacks if lack.method == by_memory}
    assert of_it == {(4, 8), (4, 8192)}
