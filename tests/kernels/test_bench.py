"""swpbench measures by its protocol and writes what docs/reference/benchfile.md says."""

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kernels.benchrun import SWPBENCH, Record, Result, bench, documented_keys, has_type
from tests.kernels.conftest import Kernels
from tests.processes import TIMEOUT_S, wait_for
from tuner.machine.mpi import available_cores, launch

LISTS = ("samples_s", "argmax_rank", "round", "position", "late", "skew_s", "canary_s")
LOOKS = (20, 40, 80, 160)


@pytest.fixture(scope="module")
def run(kernels: Kernels, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Measure one launch on two ranks with several methods and sizes."""
    out = tmp_path_factory.mktemp("bench") / "run.jsonl"
    result = bench(
        kernels, out, sizes="8:64:x8", max_samples=50, op="discovery", methods="pex;nbx dense"
    )
    assert result.status == 0, result.stderr
    return result


def is_precise(samples: list[float]) -> bool:
    """Return whether the order-statistic interval of the median lies within 2.5 % of it."""
    ordered, n = sorted(samples), len(samples)
    below, rank = 0.0, 0
    while below + math.comb(n, rank) / 2**n <= 0.025:
        below += math.comb(n, rank) / 2**n
        rank += 1
    median = statistics.median(ordered)
    return ordered[rank - 1] >= 0.975 * median and ordered[n - rank] <= 1.025 * median


def by_size(cases: list[Record]) -> list[list[Record]]:
    """Return cases grouped by size."""
    sizes = sorted({case["size_bytes"] for case in cases})
    return [[case for case in cases if case["size_bytes"] == size] for size in sizes]


@pytest.mark.parametrize("record", ["header", "case", "end"])
def test_every_documented_key_is_there_with_its_type(run: Result, record: str) -> None:
    found = [entry for entry in run.records if entry["record"] == record]
    assert found
    for entry in found:
        for key, kind in documented_keys(record).items():
            needed = kind.removesuffix(" (optional)")
            if kind != needed and key not in entry:
                continue
            assert key in entry, key
            assert has_type(entry[key], needed), (key, kind, entry[key])


def test_no_undocumented_key(run: Result) -> None:
    for entry in run.records:
        assert set(entry) <= set(documented_keys(entry["record"])) | {"record"}


def test_no_two_launches_have_one_header(kernels: Kernels, tmp_path: Path) -> None:
    """Also within a second: by its header a launch is known."""
    headers = [bench(kernels, tmp_path / f"{i}.jsonl", procs=1).header for i in range(3)]
    assert len({str(header) for header in headers}) == 3
    assert len({header["identity"] for header in headers}) == 3


def test_what_other_processes_take_is_seen(any_kernels: Kernels, tmp_path: Path) -> None:
    spinning = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spinning) for _ in range(available_cores())]
    try:
        result = bench(any_kernels, tmp_path / "beside.jsonl", sizes="8:4M:x2", budget=2)
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert result.records[-1]["others"] > 0.1, result.records[-1]


def test_header_first_and_end_last(run: Result) -> None:
    kinds = [entry["record"] for entry in run.records]
    assert kinds == ["header"] + ["case"] * (len(kinds) - 2) + ["end"]
    assert run.records[-1]["cases"] == len(run.cases)
    assert run.records[-1]["samples"] == sum(len(case["samples_s"]) for case in run.cases)


def test_stdout_ends_with_the_five_lines_that_checks_look_for(run: Result) -> None:
    lines = run.stdout.splitlines()[-5:]
    assert lines[:3] == ["swpbench: payload ok", "swpbench: ranks 2", "swpbench: nodes 1"]
    assert lines[3] == f"swpbench: samples {run.records[-1]['samples']}"
    assert lines[4].startswith("swpbench: complete ")
    assert run.stderr == ""


def test_lists_of_a_case_have_one_length(run: Result) -> None:
    for case in run.cases:
        assert {len(case[key]) for key in LISTS} == {len(case["samples_s"])}
        assert all(sample > 0 for sample in case["samples_s"])
        assert all(0 <= rank < 2 for rank in case["argmax_rank"])
        assert case["verified"] >= 2
        assert case["round"] == list(range(len(case["round"])))


def test_rounds_are_permutations_in_changing_order(run: Result) -> None:
    for cases in by_size(run.cases):
        orders = list(zip(*(case["position"] for case in cases), strict=True))
        assert all(sorted(order) == list(range(len(cases))) for order in orders)
        assert len(set(orders)) > 1
        places = [statistics.mean(case["position"]) for case in cases]
        assert all(0.5 < place < 2.5 for place in places)  # four methods: 1.5 on average


def test_stops_when_every_median_is_precise_or_at_the_limit(run: Result) -> None:
    for cases in by_size(run.cases):
        (n,) = {len(case["samples_s"]) for case in cases}
        assert n in (*LOOKS, 50)
        for look in (look for look in LOOKS if look <= n):
            precise = all(is_precise(case["samples_s"][:look]) for case in cases)
            assert precise == (look == n)


def test_progress_line_reports_the_fastest(run: Result) -> None:
    lines = [line for line in run.stdout.splitlines() if " fastest " in line]
    for cases, line in zip(by_size(run.cases), lines, strict=True):
        medians = {case["method"]: statistics.median(case["samples_s"]) for case in cases}
        fastest = {method for method in medians if medians[method] == min(medians.values())}
        assert any(f"fastest {method}, " in line for method in fastest)


@pytest.mark.parametrize(
    ("sync", "procs"),
    [("window", 1), ("window", 2), ("window", 4), ("window", 8), ("barrier", 1), ("barrier", 4)],
)
@pytest.mark.parametrize("operation", ["exchange", "discovery"])
def test_all_methods_on_any_number_of_ranks(
    kernels: Kernels, tmp_path: Path, procs: int, operation: str, sync: str
) -> None:
    result = bench(
        kernels, tmp_path / "o.jsonl", procs, op=operation, sync=sync, sizes="1,1K", max_samples=2
    )
    assert result.status == 0, result.stderr
    assert result.header["procs"] == procs
    assert result.header["sync"] == sync
    assert result.header["oversubscribed"] == (procs > len(os.sched_getaffinity(0)))
    methods = {case["method"] for case in result.cases}
    assert {"exchange": "direct", "discovery": "pex"}[operation] in methods
    for case in result.cases:
        assert case["bytes"] == (case["size_bytes"] if procs > 1 else 0)
        assert case["features"]["mmax"] == min(3, procs - 1)
        if sync == "barrier":
            assert not any(case["late"])
        if procs == 1:
            assert not any(case["canary_s"])
    measured = {(case["method"], case["size_bytes"]) for case in result.cases}
    skipped = {(entry["method"], entry["size_bytes"]) for entry in result.records[-1]["skipped"]}
    assert not measured & skipped
    if operation == "exchange":
        assert ("stfw", 1) in skipped or procs >= 4


def test_nodes_of_one_machine_start_by_its_clock(
    kernels_of: Callable[[str], Kernels], tmp_path: Path
) -> None:
    """MPICH can make believe that the ranks of one machine are on several nodes."""
    result = bench(
        kernels_of("mpich"),
        tmp_path / "o.jsonl",
        4,
        methods="direct",
        env={"MPIR_CVAR_NUM_CLIQUES": "2"},
    )
    assert result.status == 0, result.stderr
    header = result.header
    assert (header["nodes"], header["ppn"], header["machines"]) == (2, 2, 1)
    assert header["sync"] == "window"
    assert len(header["hostnames"]) == 2
    assert all(skew >= 0 for skew in result.cases[0]["skew_s"])


def test_statistics_of_an_exchange(any_kernels: Kernels, tmp_path: Path) -> None:
    result = bench(any_kernels, tmp_path / "o.jsonl", 4, methods="direct;stfw:dims=2", sizes="64")
    direct, stfw = result.cases
    for key in ("mmax", "mavg", "vavg_bytes", "vmax_bytes"):
        assert direct["statistics"][key] == direct["features"][key]
    assert (direct["statistics"]["stages"], stfw["statistics"]["stages"]) == (1, 2)
    assert stfw["statistics"]["mmax"] <= 2
    assert stfw["statistics"]["hop_bytes"] > direct["statistics"]["hop_bytes"] == 4 * 3 * 64


@pytest.mark.parametrize(
    ("procs", "ppn", "placement", "layout", "off_node"),
    [(5, 2, "block", (3, 2), 16), (5, 4, "cyclic", (2, 3), 12), (3, 4, "block", (1, 3), 0)],
)
def test_virtual_nodes_are_those_of_the_records_and_of_the_methods(
    any_kernels: Kernels, tmp_path: Path, procs, ppn, placement, layout, off_node
) -> None:
    result = bench(
        any_kernels,
        tmp_path / "o.jsonl",
        procs,
        methods="direct",
        pattern=f"random:degree={procs - 1}",
        ppn=ppn,
        placement=placement,
    )
    assert result.status == 0, result.stderr
    header, statistics = result.header, result.cases[0]["statistics"]
    assert (header["nodes"], header["ppn"]) == layout
    assert (header["placement"], len(header["hostnames"])) == (placement, 1)
    on_node = procs * (procs - 1) - off_node
    assert statistics["off_node_messages"] == off_node
    assert statistics["on_node_messages"] == on_node
    assert statistics["off_node_bytes"] == 8 * off_node
    assert statistics["on_node_bytes"] == 8 * on_node


def test_order_of_methods_is_that_of_the_seed_and_the_launch(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    def positions(name: str, **options: int) -> list[list[int]]:
        result = bench(
            any_kernels,
            tmp_path / name,
            methods="pex pcx nbx",
            op="discovery",
            **options,
            max_samples=12,
        )
        return [case["position"] for case in result.cases]

    first = positions("a", seed=5)
    assert positions("b", seed=5) == first
    assert positions("c", seed=6) != first
    assert positions("d", seed=5, launch=1) != first


def test_names_and_notes_of_the_caller_are_kept(any_kernels: Kernels, tmp_path: Path) -> None:
    result = bench(
        any_kernels,
        tmp_path / "o.jsonl",
        system="site:part",
        environment="env",
        campaign="c1",
        launch=3,
        seed=9,
        cores=70,
        budget=30,
        anonymous=True,
        quiet=True,
        **{"yield": 'a "quoted"\tname\\'},
    )
    header = result.header
    assert header["system"] == "site:part"
    assert header["environment"] == "env"
    assert (header["campaign"], header["launch"], header["seed"]) == ("c1", 3, 9)
    assert header["yield"] == 'a "quoted"\tname\\'
    assert header["cores"] == 70
    assert header["hostnames"] == ["node0"]
    assert header["budget_s"] == 30
    assert f"'{os.uname().nodename}'" not in str(result.records)
    assert len(result.stdout.splitlines()) == 5


def test_sizes_are_sorted_and_unique(any_kernels: Kernels, tmp_path: Path) -> None:
    result = bench(
        any_kernels, tmp_path / "o.jsonl", sizes="1K,8:100:x3,24,8", methods="direct", max_samples=1
    )
    assert [case["size_bytes"] for case in result.cases] == [8, 24, 72, 1024]


def test_same_method_written_twice_is_measured_once(any_kernels: Kernels, tmp_path: Path) -> None:
    result = bench(any_kernels, tmp_path / "o.jsonl", op="discovery", methods="pex;pex dense pex")
    assert [case["method"] for case in result.cases] == ["pex", "dense"]
    assert all(set(case["statistics"]) == {"plan_bytes"} for case in result.cases)


def test_auto_reports_what_it_selected(any_kernels: Kernels, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("switchpoint-table 1\nrule op=exchange method=alltoallv bytes=8:*\n")
    result = bench(
        any_kernels,
        tmp_path / "o.jsonl",
        methods="auto direct",
        sizes="4,8",
        env={"SWITCHPOINT_TABLE": str(table)},
    )
    chosen = [(case["method"], case.get("selected")) for case in result.cases]
    assert chosen == [("auto", "direct"), ("direct", None), ("auto", "alltoallv"), ("direct", None)]
    described = [case.get("described", "") for case in result.cases]
    assert described[1] == described[3] == ""
    assert described[0].endswith(f"chosen by default: no rule of {table} matches")
    assert described[2].endswith(f"chosen by rule {table}:2")


def test_budget_leaves_out_the_larger_sizes_and_says_so(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    result = bench(
        any_kernels, tmp_path / "o.jsonl", sizes="8,256K,512K", budget=1e-6, methods="direct"
    )
    assert result.status == 0, result.stderr
    assert [len(case["samples_s"]) for case in result.cases] == [1]
    assert result.cases[0]["verified"] == 1
    left_out = [(entry["size_bytes"], entry["reason"]) for entry in result.records[-1]["skipped"]]
    assert left_out == [(262144, "time budget"), (524288, "time budget")]
    assert "524288 B left out: time budget" in result.stdout
    words = {"sizes": "8,256K", "budget": 1e-6, "methods": "direct", "quiet": True}
    quiet = bench(any_kernels, tmp_path / "quiet.jsonl", **words)
    assert [entry["size_bytes"] for entry in quiet.records[-1]["skipped"]] == [262144]
    assert " B " not in quiet.stdout


def test_methods_that_are_off_are_skipped_with_a_reason(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    env = {"SWITCHPOINT_OFF": "neighbor"}
    result = bench(any_kernels, tmp_path / "o.jsonl", 2, methods="direct neighbor", env=env)
    assert [case["method"] for case in result.cases] == ["direct"]
    (skipped,) = result.records[-1]["skipped"]
    assert "neighbor: off at this site, by SWITCHPOINT_OFF" in skipped["reason"]


def test_inapplicable_methods_are_skipped_with_a_reason(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    result = bench(any_kernels, tmp_path / "o.jsonl", 2, methods="direct stfw stfw:dims=9")
    assert [case["method"] for case in result.cases] == ["direct"]
    assert [entry["method"] for entry in result.records[-1]["skipped"]] == ["stfw", "stfw:dims=9"]
    assert all(entry["reason"] for entry in result.records[-1]["skipped"])


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_run_leaves_an_honest_file(
    kernels: Kernels, tmp_path: Path, signum: signal.Signals
) -> None:
    out = tmp_path / "o.jsonl"
    start = launch(kernels.mpi, 2, build=kernels.build)
    sizes = ",".join(map(str, range(1, 5000)))  # far more than it gets to
    arguments = ["run", "--op", "exchange", "--pattern", "random", "--sizes", sizes]
    process = subprocess.Popen(
        [*start.argv_prefix, str(kernels.build / SWPBENCH), *arguments, "--out", str(out)],
        env=os.environ | start.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for(lambda: out.is_file() and '"case"' in out.read_text())
    if signum == signal.SIGKILL:
        os.killpg(process.pid, signum)
    else:
        process.send_signal(signum)
    # Its status proves nothing: MPICH's mpiexec ends with 0 when it is signalled.
    process.wait(TIMEOUT_S)
    time.sleep(0.2)  # the ranks of a killed launcher end on their own
    text = out.read_text()
    assert '"record": "header"' in text
    assert '"record": "end"' not in text
    for line in text.splitlines()[:-1]:  # at most the last record is cut
        json.loads(line)


def test_ranks_may_arrive_apart(kernels: Kernels, tmp_path: Path) -> None:
    headers, longest_s = [], 0.0
    for arrival in ("together", "staggered", "0.01"):
        out = tmp_path / arrival
        options = ["--op", "allgather", "--pattern", "blocks", "--sizes", "64K", "--out", str(out)]
        options += ["--methods", "ring", "--max-samples", "15", "--arrival", arrival]
        done = kernels.run(SWPBENCH, ["run", *options], 2)
        assert done.returncode == 0, done.stderr
        header, case = [json.loads(line) for line in out.read_text().splitlines()][:2]
        headers.append(header)
        longest_s = max(case["samples_s"])
    said = [(header["sync"], header.get("arrival_s")) for header in headers]
    staggered = "window-staggered"
    assert said == [("window", None), (staggered, None), (staggered, 0.01)]
    assert longest_s > 0.002  # the wait alone
    for arrival in ("late", "2"):
        done = kernels.run(SWPBENCH, ["run", *options[:-1], arrival], 2)
        assert f'--arrival "{arrival}": write together, staggered, or seconds' in done.stderr


def test_caches_may_be_cold(kernels: Kernels, tmp_path: Path) -> None:
    used = []
    for cache in ("warm", "cold"):
        out = tmp_path / cache
        options = ["--op", "exchange", "--pattern", "random:degree=1,seed=1", "--sizes", "32K"]
        options += ["--methods", "direct", "--max-samples", "15", "--out", str(out)]
        done = kernels.run(SWPBENCH, ["run", *options, "--cache", cache], 2)
        assert done.returncode == 0, done.stderr
        header, case = [json.loads(line) for line in out.read_text().splitlines()][:2]
        used.append((header["sync"], header["buffers"]))
        assert cache == "warm" or case["inner"] == 1
    assert used == [("window", "warm"), ("window-cold", "cold")]
    done = kernels.run(SWPBENCH, ["run", *options, "--cache", "hot"], 2)
    assert '--cache "hot": write warm or cold' in done.stderr
