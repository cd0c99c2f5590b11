"""Advice on profiles: what is read, what a table says of it, and when runs show a gain."""

from __future__ import annotations

import dataclasses
import json
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from dashboard.pages.advice import _of_profile
from tests import probes, synthetic
from tests.cli import call, fail, succeed
from tests.dashboard import frames
from tests.profiles import CALLS, EACH_S, LINE, RUN_S, content, parse, tally
from tuner.advice import document, mix, recorded, saved
from tuner.advice.mix import State
from tuner.advice.profile import Profile, ProfileError
from tuner.domain.tables import Table
from tuner.machine.nodes.namespaces import DEFAULT_RATE
from tuner.rawfile.ingest import ingest
from tuner.selection.rules import compile_rules
from tuner.selection.tuning import tune
from tuner.store.store import Store


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results with a table of bcast: binomial wins up to 4 KB."""
    directory = tmp_path_factory.mktemp("results")
    spec = synthetic.of_bcast(synthetic.Campaign())
    ingest(directory / "switchpoint.db", synthetic.write(directory, spec))
    with Store.open(directory / "switchpoint.db") as store:
        tune(store, str(store.systems()["system"].iloc[0]), required_executions=0)
    return directory


@pytest.fixture(scope="module")
def table(results: Path) -> Table:
    """Return that table."""
    with Store.open(results / "switchpoint.db", readonly=True) as store:
        found = store.table(str(store.systems()["system"].iloc[0]))
    assert found is not None
    return found


def test_a_gain_follows_from_the_table_and_the_time_in_calls(table: Table) -> None:
    its = parse(content(tally("Bcast", 64, CALLS * EACH_S)))
    found = mix.mix(its, table)
    (said,) = found.assessments
    assert (said.state, said.method) == (State.SETTLED, "binomial")
    ratio = synthetic.bcast_times("binomial", 64) / synthetic.bcast_times("vendor", 64)
    gain_s, low_s, high_s = found.gain_s
    assert low_s <= gain_s <= high_s <= its.bound_s
    assert gain_s == pytest.approx(CALLS * EACH_S * (1 - ratio), rel=0.05)
    assert not found.to_measure


def test_a_size_that_was_not_measured_says_which_stands_for_it(table: Table) -> None:
    sizes = sorted({point.case.bytes for point in table.points})
    its = parse(content(tally("Bcast", sizes[0], 1.0), tally("Bcast", sizes[0] + 1, 0.5)))
    measured, other = mix.mix(its, table).assessments
    assert "not measured" not in measured.words
    assert other.words.endswith(f" (not measured: {sizes[0]} B stands for it)")


def test_a_byte_is_judged_by_the_size_as_which_it_is_measured(table: Table) -> None:
    points = [point for point in table.points if point.case.bytes == mix.ITEM_BYTES]
    small, large = (tally("Bcast", size, 0.5) for size in (1, 33))
    its = parse(content(small, large))
    said = mix.mix(its, dataclasses.replace(table, points=points)).assessments
    states = {each.calls.shape.bytes: each.state for each in said}
    assert states == {1: State.SETTLED, 33: State.UNMEASURED}


def test_calls_over_twice_the_largest_size_are_not_judged_by_it(table: Table) -> None:
    points = [point for point in table.points if point.case.bytes == 64]
    small = dataclasses.replace(table, points=points, rules=compile_rules(points))
    its = parse(content(*(tally("Bcast", size, 0.5) for size in (128, 129))))
    said = mix.mix(its, small).assessments
    states = {each.calls.shape.bytes: each.state for each in said}
    assert states == {128: State.SETTLED, 129: State.UNMEASURED}


def test_waiting_for_late_ranks_is_not_gained(table: Table) -> None:
    late = parse(content(tally("Bcast", 64, CALLS * EACH_S), late_s=(0.0, 0.9 * EACH_S)))
    (calls,) = late.calls
    assert calls.spread_s == pytest.approx(0.9 * EACH_S)
    assert calls.own_s == pytest.approx(0.1 * CALLS * EACH_S)
    assert mix.mix(late, table).gain_s[0] < 0.1 * CALLS * EACH_S


@pytest.mark.parametrize(
    ("call", "bytes_", "group", "state"),
    [
        ("Bcast", 32768, 0, State.SETTLED),
        ("Bcast", 1 << 22, 0, State.UNMEASURED),
        ("Alltoall", 64, 0, State.UNMEASURED),
        ("Alltoallv", 64, 0, State.PROMISED),
        ("Neighbor_alltoallv", 0, 0, State.PROMISED),
        ("Gatherv", 64, 0, State.PROMISED),
        ("Alltoallw", 0, 0, State.PROMISED),
        ("Scatterv_init", 64, 0, State.PROMISED),
        ("Alltoallv_init", 64, 0, State.PROMISED),
        ("Barrier_init", 1, 0, State.PROMISED),
        ("Wait", 0, -1, State.UNDISPATCHED),
        ("Bcast", 0, 0, State.UNDISPATCHED),
        ("Bcast", 2**31 - 1, 0, State.UNMEASURED),
        ("Bcast", 2**31, 0, State.UNDISPATCHED),
        ("Allgatherv", 2**30 - 1, 0, State.UNMEASURED),
        ("Allgatherv", 2**30, 0, State.UNDISPATCHED),
        ("Alltoallv", 2**30, 0, State.PROMISED),
        ("Alltoallv", 0, 0, State.PROMISED),
    ],
)
def test_what_promises_no_gain(
    table: Table, call: str, bytes_: int, group: int, state: State
) -> None:
    found = mix.mix(parse(content(tally(call, bytes_, 0.5, group))), table)
    (said,) = found.assessments
    assert (said.state, said.gain_s) == (state, 0.0)
    assert ("not dispatched: " in said.words) == (state is State.UNDISPATCHED)
    assert bool(found.to_measure) == (state is State.UNMEASURED)
    assert (found.profile.bound_s > 0) == (state is not State.UNDISPATCHED)


@pytest.mark.parametrize(
    ("call", "size", "why"),
    [
        ("Scan", 8, "no table"),
        ("Bcast", 0, "without data"),
        ("Bcast", 2**31, "blocks over 2 GiB - 1"),
        ("Ibarrier", 8, "nonblocking"),
        ("Alltoallv", 8, "promised to stay fixed"),
        ("Iallreduce", 8, "nonblocking"),
        ("Allreduce_init", 8, "ranks promise to start it together"),
        ("Ineighbor_alltoall", 8, "fixed counts"),
        ("Neighbor_alltoall", 8, "persistent requests"),
        ("Scatterv", 8, "promised to stay fixed"),
        ("Igatherv", 8, "only plain and persistent calls"),
        ("Alltoallw_init", 8, "ranks promise to start it together"),
        ("Irecv", 8, "messages"),
        ("Sendrecv_replace", 8, "messages"),
    ],
)
def test_calls_that_are_not_dispatched_say_why(call: str, size: int, why: str) -> None:
    found = mix.mix(parse(content(tally(call, size, 0.5))), None)
    assert why in document.rows(document.advice(found))[0][-1]


def test_calls_that_need_a_promise_are_in_the_bound(table: Table) -> None:
    calls = [tally("Alltoallv", 64, 0.2), tally("Neighbor_alltoall_init", 8, 0.01)]
    its = parse(content(*calls, tally("Waitall", 0, 0.3, -1), tally("Recv", 8, 0.1)))
    assert its.bound_s == pytest.approx(0.2 + 0.01 + 0.3)
    found = document.advice(mix.mix(its, table))
    lines = [*document.summary(found)]
    assert any("21 % is in calls that need a promise" in line for line in lines)
    done = next(document.outcome(replace(found, outcome="none")))
    assert done == "no gain: its calls need a promise"
    rule = next(rule for rule in table.rules if rule.method == "binomial")
    its = parse(content(*calls, tally("Gatherv", 8, 0.1), tally("Bcast_init", 64, 0.01)))
    by_operation = {"alltoallv": "Alltoallv", "exchange": "Gatherv", "bcast": "Bcast_init"}
    for operation, ruled in by_operation.items():
        own = dataclasses.replace(table, rules=[rule._replace(operation=operation)])
        methods = {said.calls.shape.call for said in mix.mix(its, own).assessments if said.method}
        assert methods - {"Neighbor_alltoall_init"} == {ruled}


def test_times_of_several_threads_are_no_more_than_the_run() -> None:
    calls = [tally("Bcast", 8, 3 * RUN_S), tally("Recv", 8, 2 * RUN_S)]
    its = parse(content(*calls))
    assert its.bound_s == its.communication_s == RUN_S
    assert [each.seconds for each in its.calls] == [RUN_S, RUN_S]
    assert "100 % of it in MPI" in next(document.summary(document.advice(mix.mix(its, None))))


def test_sizes_of_ranks_that_differ_by_a_remainder_are_one() -> None:
    def parsed(*of_ranks: list[int]) -> Profile:
        lines = []
        for rank, sizes in enumerate(of_ranks):
            text = content(*(tally("Alltoallv", size, 0.1) for size in sizes))
            lines.append(text.splitlines()[rank])
        return parse(b"\n".join(lines))

    (calls,) = parsed([1000], [1008]).calls
    assert calls.shape.bytes == 1000 and calls.spread_s is not None  # samples of both meet
    assert len(parsed([1000], [1200]).calls) == 2
    assert len(parsed([1000, 1008], [1000, 1008]).calls) == 2


def test_a_program_whose_processes_wait_for_one_gains_nothing() -> None:
    ranks = [content(tally("Bcast", 8, seconds)).splitlines() for seconds in (0.5, 0.001)]
    its = mix.mix(parse(b"\n".join([ranks[0][0], ranks[1][1]])), None)
    assert not its.to_measure
    outcome = document.outcome(replace(document.advice(its), outcome="none"))
    assert next(outcome) == "no gain: its processes wait for the slowest"


def test_no_gain_has_its_reason() -> None:
    for name, why in (("Recv", "its time is in other calls"), ("Bcast", "not measured yet")):
        its = document.advice(mix.mix(parse(content(tally(name, 8, 0.5))), None))
        assert why in next(document.outcome(replace(its, outcome="none")))


def test_without_a_store_everything_is_to_be_measured() -> None:
    calls = [tally("Bcast", 8, 0.1), tally("Alltoall", 8, 0.2), tally("Gather", 8, 1e-4)]
    found = mix.mix(parse(content(*calls)), None)
    assert [said.calls.shape.call for said in found.to_measure] == ["Alltoall", "Bcast"]
    assert document.advice(found).to_measure[0].call == "Alltoall"


def test_an_open_size_may_save_what_the_default_may_lose(table: Table) -> None:
    """A method that takes half the time, so that the default may lose 100 %, saves a half."""
    its = parse(content(tally("Bcast", 64, 0.5)))
    (here,) = mix.mix(its, table).assessments
    points = [
        point._replace(status="open", may_lose=1.0, method="vendor") for point in table.points
    ]
    (said,) = mix.mix(its, dataclasses.replace(table, points=points, rules=[])).assessments
    assert said.more_s == pytest.approx(0.5 * here.calls.seconds)


def test_what_is_worth_measuring_is_measured_where_the_program_runs(table: Table) -> None:
    its = parse(content(tally("Alltoall", 8, 0.2)))
    nodes = f"virtual-nodes:tcp-{DEFAULT_RATE}"
    provenance = dataclasses.replace(table.provenance, name=nodes)
    of_nodes = dataclasses.replace(table, provenance=provenance)
    for found in (mix.mix(its, of_nodes), mix.mix(its, None, nodes, "mpich")):
        *_, line = document.worth_measuring(document.advice(found))
        command = "switchpoint run --system nodes --environment mpich -- --name"
        assert line.startswith(f"to measure their operations: {command} ")


CUT = LINE.replace(b'"profile": ', b'"profile":')[:300]
"""Of a process that was killed while it wrote."""


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00\xff",
        b"{}",
        b"[" * 100_000,
        LINE[:-1],
        LINE.replace(b'"profile": 1', b'"profile": 2'),
        LINE.replace(b'"bytes": 8', b'"bytes": -8'),
        LINE.replace(b'"seconds": 1.0', b'"seconds": NaN'),
        LINE.replace(b"Bcast", b"B" * 1000),
        LINE.replace(b'"procs": 2', b'"procs": 0'),
        LINE + b"\n" + LINE,
        LINE + b"\n" + LINE.replace(b'"rank": 0, "procs": 2', b'"rank": 1, "procs": 3'),
    ],
)
def test_what_is_no_profile_is_one_line(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(ProfileError) as error:
        parse(text)
    assert "\n" not in str(error.value)
    path = tmp_path / "hostile"
    path.write_bytes(text)
    assert str(path) in fail("advise", "--profile", path)


def test_a_line_without_an_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert "line 1 is longer than 16 MiB" in fail("advise", "--profile", path)


def test_a_process_killed_while_it_wrote_costs_its_line_alone() -> None:
    text = content(tally("Bcast", 8, 0.1)).splitlines()
    cut = text[1].replace(b'"profile": ', b'"profile":')
    for length, end in product(range(11, len(cut)), (b"", b"\n")):
        its = parse(text[0] + b"\n" + cut[:length] + end)
        assert (its.procs, its.reported, its.cut) == (2, 1, 1), cut[:length]
    said = [*document.summary(document.advice(mix.mix(its, None)))]
    assert "lines of killed processes that are cut off, and ignored: 1" in said


def test_a_long_program_name_is_cut() -> None:
    its = parse(LINE.replace(b'"app"', b'"' + b"p" * 1000 + b'"'))
    assert its.program.startswith("ppp") and len(its.program) <= 255


def test_control_characters_do_not_reach_the_terminal() -> None:
    hostile = LINE.replace(b'"app"', rb'"\u001b[31m"').replace(b"Bcast", rb"\u001b[0m")
    its = parse(hostile)
    assert "\x1b" not in its.program + its.calls[0].shape.call


def test_a_profile_on_the_command_line(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(results))
    path = tmp_path / "app.profile"
    path.write_bytes(content(tally("Bcast", 64, 0.5), tally("Alltoall", 8, 0.2)))
    said = json.loads(succeed("advise", "--profile", path, "--json"))
    assert said["bound_s"] == pytest.approx(0.7) and said["gain"]["seconds"] > 0.1
    assert [call["state"] for call in said["calls"]] == ["settled", "not measured"]
    text = succeed("advise", "--profile", path)
    assert "app: 1.00 s on 2 processes, 70 % of it in MPI" in text
    assert "worth measuring: alltoall of 8 B on 2 processes" in text
    command = r"switchpoint run --environment mpich -- --name 'collective.*kind=(alltoall)\b'"
    assert command in text


def test_without_a_table_the_chosen_system_is_to_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    probes.write(tmp_path, probes.ProbeCampaign(sizes=(8,), launches=1))
    ingest(tmp_path / "switchpoint.db", [tmp_path])
    path = tmp_path / "app.profile"
    path.write_bytes(content(tally("Alltoall", 8, 0.2)))
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        shown = frames.said(_of_profile(store, system, path.read_text()))
    for text in (shown, succeed("advise", "--profile", path)):
        assert "switchpoint run --environment mpich -- --name 'collective" in text


def test_profiles_of_several_programs_are_added_and_named(tmp_path: Path) -> None:
    once = content(tally("Bcast", 8, 0.1))
    for name, program in (("1", b"first"), ("2", b"other"), ("10", b"first")):
        (tmp_path / name).write_bytes(once.replace(b'"app"', b'"%s"' % program))
    (tmp_path / "11").touch()  # of a program that was killed
    (tmp_path / "12").write_bytes(CUT)
    its = recorded.read(tmp_path)
    assert its.notes == ("2 programs have written no calls",)
    assert (its.program, its.seconds) == ("first + other", 3 * RUN_S)
    (calls,) = its.calls
    assert calls.count == 3 * CALLS and calls.seconds == pytest.approx(0.3)
    assert "first + other: 3.00 s on 2 processes" in succeed("advise", "--profile", tmp_path)


def test_a_directory_without_any_calls_is_one_line(tmp_path: Path) -> None:
    why = f"{tmp_path}: no process has written its calls: did the program call MPI_Init?"
    assert why in fail("advise", "--profile", tmp_path)
    (tmp_path / "app.profile").touch()
    said = fail("advise", "--profile", tmp_path)
    assert f"{tmp_path}: has no files 1, 2, …; name a file" in said
    (tmp_path / "1").touch()
    assert why in fail("advise", "--profile", tmp_path)


def test_notes_of_programs_in_turn_are_kept(tmp_path: Path) -> None:
    report = Path(__file__).parent / "data" / "app.2.1234.1.mpiP"
    for name in ("1", "2"):
        (tmp_path / name).write_bytes(report.read_bytes())
    assert recorded.read(tmp_path).notes == recorded.read(report).notes


def test_what_cannot_be_asked_for_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    path = tmp_path / "app.profile"
    path.write_bytes(LINE)
    assert str(tmp_path) in fail("advise", "--profile", path, "--system", "mine")
    quoted = call("advise", "-n", "2", "--launcher", "srun 'a", "--", "true")
    assert quoted.exit_code == 2
    assert "--launcher srun 'a: No closing quotation" in quoted.stderr
    (tmp_path / "hosts").write_text("a\na\nb\nb\n")
    monkeypatch.setenv("PBS_NODEFILE", str(tmp_path / "hosts"))
    unnamed = call("advise", "-n", "4", "--", "true")
    assert (unnamed.exit_code, "this job has 2 nodes" in unnamed.stderr) == (2, True)


@pytest.mark.parametrize(
    "changed",
    [
        {"verdict": "gain", "pairs": [[0, 1]] * 3},
        {"verdict": "open", "pairs": [[-1, 2]]},
        {"verdict": "gain", "pairs": [[5e-324, 1e300]] * 3},
        {"verdict": "unheard of", "pairs": [[1, 1]]},
        {"pairs": [[1, 1]]},
        {"seconds": -1},
        {"seconds": 1e308},
        {"processes": -1},
        {"verdict": "none", "pairs": [[1, 1]], "recorded_s": -1},
        {"gain": {"seconds": 1, "low": -1e308, "high": 1e308}},
        *({"call": {"spread_s": seconds}} for seconds in (-1, 1e308)),
        *({"call": {"bytes": size}} for size in (-5, 10**400)),
        {"call": {"seconds": 1e308}},
    ],
    ids=str,
)
def test_kept_advice_that_cannot_be_is_left_out_or_shown(changed: dict, tmp_path: Path) -> None:
    its = document.advice(mix.mix(parse(LINE), None))
    path = saved.profile_path(tmp_path, "mine")
    saved.save(path, its)
    assert saved.newest(tmp_path) == {"mine": its}
    kept = path.with_suffix(".json")
    content = json.loads(kept.read_text())
    content["calls"][0] |= changed.pop("call", {})
    kept.write_text(json.dumps(content | changed))
    shown = saved.newest(tmp_path)
    assert bool(shown) == (changed == {"pairs": [[1, 1]]})
    for found in shown.values():
        assert document.rows(found)
        assert [*document.summary(found), *document.outcome(found)]
