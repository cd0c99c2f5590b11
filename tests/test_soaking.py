"""`switchpoint soak`: what won is executed very often, and is chosen or makes room."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from tests import raw
from tests.cli import call, fail, succeed
from tests.conftest import by_day
from tests.kernels.conftest import build_kernels
from tests.processes import TIMEOUT_S, processes_below
from tests.test_workflow import corrupting
from tuner.campaign import launches, soaking
from tuner.campaign.reframe import CONFIGS
from tuner.commands.finish import Tuned, tune_systems
from tuner.machine.mpi import find_mpis, launch
from tuner.paths import database_path
from tuner.rawfile import keeping
from tuner.rawfile.kinds import soak
from tuner.store.store import Store

TIMES_S = {
    "direct": {8: 9e-6, 4096: 9e-6},
    "neighbor": {8: 1e-6, 4096: 3e-6},
    "alltoallv": {8: 2e-6, 4096: 2e-6},
}
"""As if measured: neighbor wins at 8 bytes, alltoallv at 4 KiB, or where neighbor cannot."""


def measured(results: Path, scratch: Path, system: str = "local:cpu") -> Tuned:
    """Return a campaign of this machine with TIMES_S, and its table."""
    mpi = find_mpis()[0]
    path = scratch / "once.jsonl"
    words = ["--op", "exchange", "--pattern", "random:degree=1", "--sizes", "8,4K", "--quiet"]
    words += ["--methods", " ".join(TIMES_S), "--campaign", "fast", "--max-samples", "20"]
    words += ["--system", system, "--environment", mpi.name]
    swpbench = build_kernels(mpi) / "bench" / "swpbench"
    launches.run(launch(mpi, 2), swpbench, words, path, timeout_s=TIMEOUT_S)
    lines = raw.read(path)
    raw_files = []
    for number in range(6):
        for line in lines:
            if line["record"] == "header":
                line["launch"] = number
            elif line["record"] == "case":
                count = len(line["samples_s"])
                time_s = TIMES_S[line["method"]][line["size_bytes"]] * (1 + number / 1000)
                line |= {"samples_s": [time_s] * count, "canary_s": [1e-6] * count}
                line["late"] = [0] * count
        raw_files.append(raw.write(scratch / f"fast-{number}.jsonl", lines))
    keeping.keep(raw_files)
    (system,) = (path.parent.name for path in results.glob("*/fast"))
    (tuned,) = tune_systems([system], Console())
    assert {rule.method for rule in tuned.table.rules} == {"direct"}
    return tuned


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.setenv("SWITCHPOINT_REQUIRE_SOAK", "200")
    return tmp_path


@pytest.mark.check
@pytest.mark.parametrize(
    ("way", "found", "left"),  # a hang ends its launch before the others' soaks
    [("byte", "wrong payload", 1), pytest.param("hang", "hang_here", 2, marks=pytest.mark.nightly)],
)
def test_what_wins_is_soaked_and_what_fails_makes_room(
    results: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    way: str,
    found: str,
    left: int,
) -> None:
    table, path = measured(results, tmp_path)
    place = [f"--prefix={tmp_path / 'reframe'}"]
    wrong = corrupting(find_mpis()[0], tmp_path, "", way, "neighbor")
    request = soaking.SoakRequest(CONFIGS["local"], 200, 600, place, wrong)
    soaking.soak([table.provenance.system], request, Console())
    said = capsys.readouterr().out
    assert "200 executions each: exchange alltoallv, exchange neighbor; " in said
    assert "soak failed: " in said
    assert f"200 executions each: exchange alltoallv; layouts and sizes: {left}" in said
    succeed("soak")  # nothing is left to do
    assert "method=alltoallv" in path.read_text()
    assert "exchange neighbor failed its soak and is in no rule" in succeed("show")
    (failure,) = [
        line
        for path in results.glob("*/*Z/soak-*.jsonl")
        for line in path.read_text().splitlines()
        if '"passed": false' in line
    ]
    assert found in failure


CLUSTER = """
from checks.machine import site

site_configuration = site(
    {"name": "cluster", "prefix": PREFIX},
    [{"name": "cpu", "processor": {"num_cpus": 2, "num_cpus_per_core": 1}}],
)
"""


@pytest.mark.check
@pytest.mark.parametrize("required", by_day([500], [5000]))
def test_a_soak_of_another_system_that_was_killed_goes_on_where_it_was(
    results: Path, tmp_path: Path, required: int
) -> None:
    """Nothing that was finished is lost, or executed again."""
    table, path = measured(results, tmp_path, "cluster:cpu")
    expected = f"{table.provenance.system}: not a system of this machine; give its configuration"
    assert f"not soaked: {expected}" in call("soak").stdout
    assert expected in fail("soak", "--system", table.provenance.system)
    config = tmp_path / "cluster.py"
    config.write_text(CLUSTER.replace("PREFIX", repr(str(tmp_path / "reframe"))))
    options = ["soak", "--config", str(config), "--require-soak", str(required)]
    with subprocess.Popen(
        [sys.executable, "-m", "tuner.cli", *options], start_new_session=True
    ) as run:
        while run.poll() is None and not (done := finished(tmp_path / "reframe")):
            time.sleep(0.02)
        assert run.poll() is None
        os.killpg(run.pid, signal.SIGKILL)
    while processes_below(tmp_path / "reframe"):
        time.sleep(0.1)
    contents = {file.read_bytes() for file in done}
    succeed(*options)
    assert contents <= {file.read_bytes() for file in results.glob("cluster-*/*Z/*.jsonl")}
    with Store.open(database_path(), readonly=True) as store:
        soaked = soak.stored(store, table.provenance.system)
    # On a busy machine the time of a launch may end first, and another has the rest.
    executions = soaked.groupby(["method", "size_bytes"])["executions"].sum().to_dict()
    assert executions == {("neighbor", 8): required, ("alltoallv", 4096): required}
    assert "method=neighbor" in path.read_text()


def finished(stage: Path) -> list[Path]:
    """Return the complete raw files below, where directories may vanish meanwhile."""
    names = [Path(place, name) for place, _, names in os.walk(stage) for name in names]
    raw_files = [path for path in names if path.match("soak-*.jsonl")]
    return [path for path in raw_files if b'"record": "end"' in path.read_bytes()]
