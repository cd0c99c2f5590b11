"""From probes to parameters, predictions and their validation, as users call it."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import probes, synthetic
from tests.cli import call, fail, succeed
from tuner.domain.cases import Layout, ProbeKey, ProbeLaunch
from tuner.export.model_lines import model_lines
from tuner.inputs.matrices.gallery import write_matrix
from tuner.machine.simulation.machines import machine
from tuner.models.fitting import fitted
from tuner.models.loggp import LogGP
from tuner.models.parameter import Estimate
from tuner.models.predicting import PatternCase, predictor
from tuner.models.singles import UNITS, singles
from tuner.models.system import PairModel, SystemModel, fit
from tuner.rawfile.ingest import ingest
from tuner.store.store import Store

PROCS = 8
PATTERN = ("random:degree=3,seed=1", 3, 3.0)
SIZES = (8, 512, 4096, 65536, 1048576)
METHODS = ("direct", "stfw:dims=2", "stfw:dims=3")  # nap is direct where all are on one node


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Store probes, their fit, and a campaign whose times are 10 % above what is predicted."""
    directory = tmp_path_factory.mktemp("models")
    path = directory / "switchpoint.db"
    probes.write(directory, probes.ProbeCampaign())
    ingest(path, [directory])
    succeed("fit", "--database", path)
    with Store.open(path, readonly=True) as store:
        (system,) = store.systems()["system"]
        model = fitted(store, system)
    predicted = predictor(model, PatternCase("exchange", PATTERN[0], PROCS, PROCS), list(METHODS))

    def times(method: str, size: int) -> float:
        time_s = predicted.times(size)[method]
        assert isinstance(time_s, float)
        return 1.1 * time_s

    measured = synthetic.Campaign(
        name="20261122T000000Z",
        patterns=(PATTERN,),
        procs=(PROCS,),
        cores=64,
        sizes=SIZES,
        methods=METHODS,
        times=times,
        samples=20,
        launches=2,
        sample_noise=0.001,
        launch_noise=0.0,
    )
    synthetic.write(directory, measured)
    ingest(path, [directory])
    return path


def test_the_last_campaign_is_the_latest_whatever_its_name(tmp_path: Path) -> None:
    for name, date in (("zebra", "2026-01-01T00:00:00Z"), ("ape", "2026-02-01T00:00:00Z")):
        launches = probes.write(
            tmp_path,
            probes.ProbeCampaign(probes.LAPTOP, launches=1, pairs=(1,), name=name, date=date),
        )
        assert launches
        ran = synthetic.Campaign(name=f"{name}-methods", cores=64, launches=1, sizes=(8,))
        for path in synthetic.write(tmp_path, ran):
            path.write_text(re.sub(r'"date": "[^"]*"', f'"date": "{date}"', path.read_text()))
    ingest(tmp_path / "s.db", [tmp_path])
    (document,) = json.loads(succeed("fit", "--database", tmp_path / "s.db", "--json"))
    assert document["campaign"] == "ape"
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        campaigns = store.campaigns_with_cells(document["system"])
    assert campaigns == ["ape-methods", "zebra-methods"]


def test_a_campaign_is_fitted_on_the_systems_that_have_it(tmp_path: Path) -> None:
    for name, environment in (("first", "mpich"), ("second", "openmpi")):
        spec = probes.ProbeCampaign(probes.LAPTOP, launches=1, pairs=(1,), name=name)
        for path in probes.write(tmp_path, spec):
            of_mpi = f'"environment": "{environment}"'
            path.write_text(path.read_text().replace('"environment": "mpich"', of_mpi))
    ingest(tmp_path / "s.db", [tmp_path])
    command = ("fit", "--database", tmp_path / "s.db", "--json", "--campaign")
    (document,) = json.loads(succeed(*command, "first"))
    assert document["campaign"] == "first"
    for name, shown in (("third", "third"), ("\udcff", r"\udcff")):  # bytes that are not UTF-8
        assert f"campaign {shown} of local-cpu-mpich-" in fail(*command, name)


def test_each_kind_of_pair_is_of_the_best_layout_that_has_it(tmp_path: Path) -> None:
    off_node = {"off_node": probes.CLUSTER["off_node"]}
    for spec in (
        probes.ProbeCampaign(probes.LAPTOP, launches=2),
        probes.ProbeCampaign(off_node | probes.LAPTOP, launches=1, oversubscribed=True),
    ):
        probes.write(tmp_path, spec)
    assert ingest(tmp_path / "s.db", [tmp_path]).problems == []
    (document,) = json.loads(succeed("fit", "--database", tmp_path / "s.db", "--json"))
    layouts = {scope: pair["layout"] for scope, pair in document["pairs"].items()}
    assert layouts == {
        "on_node": {"nodes": 1, "ppn": 8, "oversubscribed": False, "launches": 2},
        "off_node": {"nodes": 2, "ppn": 8, "oversubscribed": True, "launches": 1},
    }
    text = succeed("fit", "--database", tmp_path / "s.db")
    assert "on_node: 1 x 8 ranks, launches: 2\n" in text
    assert "off_node: 2 x 8 ranks, oversubscribed, launches: 1\n" in text


def test_delays_shorter_than_the_trip_show_no_overhead() -> None:
    """In the second launch small messages were sent too early, and large ones twice."""
    truth = probes.LAPTOP["on_node"]
    launches: dict[ProbeLaunch, dict[ProbeKey, Any]] = {}
    for number in range(2):
        found: dict[ProbeKey, Any] = {}
        for size in probes.OCTAVES:
            trip_s = probes.round_trip_s(truth, size)
            early = number == 1 and size < 64
            delays = (0.4,) if early else (1.5, 1.1) if number else (1.5,)
            for messages, delay_s in ((1, 0.0), *((16, each * trip_s) for each in delays)):
                time_s = probes.round_trip_s(truth, size, messages, delay_s)
                key = ProbeKey("prtt", "on_node", 1, messages, delay_s, size)
                found[key] = np.full(9, 3 * trip_s if early and delay_s else time_s)
        launches[ProbeLaunch("a-system", "a-campaign", Layout(2, 1, 2, False), number)] = found
    loggp = fit([launches]).pairs["on_node"].loggp
    assert isinstance(loggp, LogGP)
    assert len(loggp.protocols) == len(truth)
    for protocol, true in zip(loggp.protocols, truth, strict=True):
        assert isinstance(protocol.overhead_send, Estimate)
        assert protocol.overhead_send.value == pytest.approx(true.overhead_s, rel=1e-3)


def finite(value: Any) -> bool:
    """Return whether no number of a JSON document is NaN or infinite."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def test_fit_prints_parameters_with_intervals(database: Path) -> None:
    text = succeed("fit", "--database", database)
    assert "LogGP" in text
    assert "off_node" in text
    assert "max-rate" in text
    assert "no saturation up to 8 pairs" in text
    assert not {"nan", "inf"} & set(text.lower().split())
    (document,) = json.loads(succeed("fit", "--database", database, "--json"))
    assert finite(document)
    (small, large) = document["pairs"]["off_node"]["loggp"]["protocols"]
    assert small["up_to_bytes"] == 8192
    assert small["latency"]["value"] == pytest.approx(2e-6, rel=0.05)
    assert large["gap_per_byte"]["value"] == pytest.approx(4e-10, rel=0.05)
    assert document["copying"]["value"] == pytest.approx(1e-10, rel=0.1)
    synchronous = document["pairs"]["off_node"]["synchronous"]
    assert synchronous["low"] <= 1.5e-6 <= synchronous["high"]
    for protocol in document["pairs"]["on_node"]["loggp"]["protocols"]:
        loaded, alone = protocol["loaded_gap_per_byte"], protocol["gap_per_byte"]
        assert loaded["value"] == pytest.approx(3 * alone["value"], rel=0.2)
        crossing, alone = protocol["loaded_alpha"], protocol["alpha"]
        assert crossing["value"] == pytest.approx(probes.CROSSING * alone["value"], rel=0.1)
    assert document["barrier"]["value"] == pytest.approx(4e-6, rel=0.05)
    assert document["fence"]["value"] == pytest.approx(8e-6, rel=0.05)
    assert f"MPI_Ibarrier of {document['together']} ranks us: " in text


@pytest.mark.parametrize("model", [PairModel, SystemModel])
def test_headings_end_with_a_unit_and_say_of_which_pairs(model: type) -> None:
    for each in singles(model).values():
        assert each.heading.rpartition(" ")[2] in UNITS
        assert ("{scope}" in each.heading) == (model is PairModel)


def test_where_synchronous_sends_cost_nothing_any_more(tmp_path: Path) -> None:
    """On the laptop 1.5 us are 1 % of 150 us, which 1.5 MiB take; of 100 ns that is 64 KiB."""
    noise = probes.Noise(samples=0, outliers=0)
    found = {}
    for synchronous_s in (1.5e-6, 1e-7):
        directory = tmp_path / str(synchronous_s)
        directory.mkdir()
        spec = probes.ProbeCampaign(probes.LAPTOP, synchronous_s=synchronous_s, noise=noise)
        probes.write(directory, spec)
        ingest(directory / "s.db", [directory])
        (document,) = json.loads(succeed("fit", "--database", directory / "s.db", "--json"))
        found[synchronous_s] = document["pairs"]["on_node"]["synchronous_from"]
    assert found[1.5e-6]["reason"].startswith("1 % longer or more at the largest size")
    trip_s = {size: probes.round_trip_s(probes.LAPTOP["on_node"], size) for size in probes.OCTAVES}
    assert found[1e-7]["value"] == min(size for size in trip_s if 0.01 * trip_s[size] > 2e-7)


def test_a_larger_machine_of_the_same_network_can_be_simulated(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    path = succeed("network", "create", "oursite", "--database", database).strip()
    assert Path(path) == tmp_path / "networks" / "oursite.json"
    small, large = machine("torus-8x8x8-oursite").network.protocols
    assert small.latency_s == pytest.approx(2e-6, rel=0.2)
    assert (large.from_bytes, large.bytes_per_s) == (8193, pytest.approx(2.5e9, rel=0.1))
    assert "oursite: fitted to " in succeed("network", "list")


def test_an_exported_table_carries_the_parameters(database: Path) -> None:
    lines = succeed("export", "--database", database).splitlines()
    models = [line for line in lines if line.startswith("model ")]
    costs = [line for line in models if line.startswith("model message pair=on_node ")]
    assert "up_to=*" in costs[-1]
    assert all("alpha_s=" in line for line in costs)
    assert models[-4].startswith("model copy s_per_byte=")
    assert models[-3].startswith("model reduce s_per_byte=")
    assert models[-2].startswith("model fence barriers=")
    assert models[-1].startswith("model node cores=")
    document = json.loads(succeed("export", "--format", "json", "--database", database))
    assert len(document["model"]["pairs"]["on_node"]["loggp"]["protocols"]) == len(costs)


def test_a_table_of_nodes_that_share_cores_has_no_parameters(tmp_path: Path) -> None:
    spec = probes.ProbeCampaign(pairs=(1,), launches=2, samples=10)
    for path in probes.write(tmp_path, spec):
        text = path.read_text()
        assert '"local:cpu"' in text
        path.write_text(text.replace('"local:cpu"', '"virtual-nodes:tcp-1gbit"'))
    ingest(tmp_path / "s.db", [tmp_path])
    succeed("fit", "--database", tmp_path / "s.db")
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        model = fitted(store, system)
    assert model_lines(model) == []
    assert model_lines(replace(model, shares_cores=False))


def test_show_models_prints_how_good_they_are(database: Path) -> None:
    assert "100 % of the measured cases are predicted within 15 %" in succeed(
        "show", "models", "--database", database
    )
    (document,) = json.loads(succeed("show", "models", "--database", database, "--json"))
    assert document["within_15_percent"] == 1
    assert finite(document)


def test_a_simulated_system_without_its_network_is_left_out(database: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(database, tmp_path))
    lost = synthetic.Campaign(system="simulated:torus-4x4x2-lost", sizes=(8,), launches=1)
    ingest(path, synthetic.write(tmp_path, lost))
    shown = call("show", "models", "--database", path, "--json")
    assert len(json.loads(shown.stdout)) == 1
    (warning,) = shown.stderr.splitlines()
    assert warning.startswith("warning: simulated-torus-4x4x2-lost-")
    assert "lost" in fail("show", "models", "--database", path, "--system", "lost")


def test_validate_finds_what_predictions_are_off_by(database: Path) -> None:
    (outcome,) = json.loads(succeed("check", "model", "--database", database, "--json"))
    assert len(outcome["errors"]) == len(SIZES) * len(METHODS)
    for error in outcome["errors"]:
        assert error["error"] == pytest.approx(1 / 1.1 - 1, abs=0.005)
    assert outcome["rank_correlation"] == pytest.approx(1)
    assert outcome["predicted_switches"] == outcome["measured_switches"]
    text = succeed("check", "model", "--database", database)
    assert "rank correlation" in text
    assert "switch points predicted" in text


def test_what_the_models_do_not_describe_is_reported(database: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(database, tmp_path))
    measured = synthetic.Campaign(
        name="20261123T000000Z",
        patterns=(PATTERN, ("matrix:bar.mtx", 7, 2.5)),
        procs=(PROCS, 2 * PROCS),
        cores=64,
        sizes=(8,),
        methods=METHODS,
        times=lambda method, size: 1e-5,
        launches=1,
    )
    crowded = replace(measured, patterns=(PATTERN,), procs=(128,))
    for campaign in (measured, crowded):
        synthetic.write(tmp_path, campaign)
    assert ingest(path, [tmp_path]).problems == []
    text = succeed("check", "model", "--database", path, "--campaign", measured.name)
    assert "128 ranks, 128 per node: not predicted, more ranks than cores" in text
    assert text.count("not predicted") == 1
    assert "exchange matrix:bar.mtx, 8 ranks" in text


def test_nodes_that_are_not_filled_are_not_predicted(database: Path, tmp_path: Path) -> None:
    """Of three nodes with 3, 2 and 1 ranks, two would be assumed, which are full."""
    path = Path(shutil.copy(database, tmp_path))
    measured = synthetic.Campaign(
        name="20261123T000000Z",
        patterns=(PATTERN,),
        procs=(6,),
        cores=64,
        sizes=(8,),
        methods=METHODS,
        times=lambda method, size: 1e-5,
        launches=1,
    )
    (uneven,) = synthetic.write(tmp_path, measured)
    layout = '"nodes": 1, "ppn": 6', '"nodes": 3, "ppn": 3'
    uneven.write_text(uneven.read_text().replace(*layout))
    assert ingest(path, [tmp_path]).problems == []
    text = succeed("check", "model", "--database", path, "--campaign", measured.name)
    reason = "nodes that are not filled one after the other"
    assert f"6 ranks, 3 per node: not predicted, {reason}" in text


def test_raw_files_of_others_name_no_file_and_no_great_work(database: Path, tmp_path: Path) -> None:
    """A matrix of a measured case is an example, and its partition is not made."""
    path = Path(shutil.copy(database, tmp_path))
    bar = write_matrix("bar", tmp_path)
    other = Path(shutil.copy(bar, tmp_path / "other.mtx"))
    refused = {
        f"matrix:{other}": f"{other}: neither a file to read here nor an example of pyamg",
        f"matrix:{bar},part=graph": "graph: cannot be read: No such file",
        f"matrix:{bar},part={other}": "other.mtx: cannot be read: No such file",
        (large := "stencil:dim=3,points=7,edge=512"): f"{large}: more than 1048576 items on 4 proc",
        "random:degree=1": "more than 16384 ranks",
    }
    measured = synthetic.Campaign(
        name="20261123T000000Z",
        patterns=[(pattern, 1, 1.0) for pattern in refused],
        procs=(4,),
        cores=64,
        sizes=(8,),
        methods=METHODS,
        times=lambda method, size: 1e-5,
        launches=1,
    )
    *_, last = synthetic.write(tmp_path, measured)
    layout = '"procs": 4, "nodes": 1', '"procs": 16385, "nodes": 4097'
    last.write_text(last.read_text().replace(*layout))
    assert ingest(path, [tmp_path]).problems == []
    text = succeed("check", "model", "--database", path, "--campaign", measured.name)
    for pattern, reason in refused.items():
        (line,) = (line for line in text.splitlines() if f"exchange {pattern}, " in line)
        assert f"not predicted, {reason}" in line
    assert not list(tmp_path.rglob("*.part*"))


def test_predict_puts_methods_in_order(database: Path) -> None:
    command = ("predict", "--op", "exchange", "--pattern", "hub:hubs=4", "--procs", "64")
    text = succeed(*command, "--ppn", "8", "--sizes", "8,1M", "--database", database)
    assert "nap" in text
    document = json.loads(
        succeed(*command, "--ppn", "8", "--sizes", "8:1M:x8", "--database", database, "--json")
    )
    for at_size in document["times_s"]:
        times = [each["time_s"] for each in at_size["methods"] if "time_s" in each]
        others = {each["method"] for each in at_size["methods"][len(times) :]}
        assert others <= {"shared", "nap:node=shared"}  # no message is small enough
        assert times == sorted(times)
        assert all(time_s > 0 for time_s in times)
    best = [at_size["methods"][0]["method"] for at_size in document["times_s"]]
    assert len(document["crossovers"]) >= len(set(best)) - 1


def test_predict_prints_what_the_papers_say_in_one_formula(database: Path) -> None:
    command = ["predict", "--op", "exchange", "--pattern", "random:degree=15", "--procs", "16"]
    command += ["--database", str(database), "--closed-forms"]
    text = succeed(*command, "--ppn", "8")
    assert re.search(r"stfw:dims=2, postal bound .*; faster than direct below \d", text)
    assert "nap, max-rate bound (equations 10 and 12 of" in text
    forms = json.loads(succeed(*command, "--ppn", "8", "--json"))["closed_forms"]
    several = ["stfw:dims=2", "stfw:dims=3", "stfw:radix=2"]
    assert [form["method"] for form in forms] == [*several, "nap"]
    assert all(each["time_s"] > 0 for form in forms for each in form["times_s"])
    command[4] = "random:degree=3"
    assert "the papers have no closed form for this pattern on this layout" in succeed(*command)


def test_predict_takes_matrices_discoveries_and_collectives(database: Path) -> None:
    matrix = Path(__file__).parent / "data" / "matrix" / "good" / "symmetric-integer.mtx"
    for command in (
        ("--op", "exchange", "--pattern", f"matrix:{matrix}", "--procs", "4"),
        ("--op", "exchange", "--pattern", f"matrix:{matrix},part=strided", "--procs", "4"),
        ("--op", "discovery", "--pattern", "random", "--procs", "16"),
        ("--op", "allreduce", "--procs", "16", "--ppn", "4"),
        ("--op", "exchange", "--pattern", "stencil:dim=2,points=5", "--procs", "6"),
    ):
        assert "predicted us" in succeed("predict", *command, "--database", database)


def test_predict_prints_what_overlap_hides(database: Path) -> None:
    """By the equations, each with its source, for amounts of computation."""
    command = ("predict", "--op", "overlap", "--procs", "16", "--ppn", "8", "--database", database)
    options = ("--pattern", "ft:rows=32,elements=512", "--computation", "0,1000")
    rows = json.loads(succeed(*command, *options, "--json"))
    assert [row["method"] for row in rows] == 2 * [
        *("exchange", "slabs", "chunks:rows=4", "chunks:rows=16", "pencils")
    ]
    for row in rows:
        parts = row["computation_s"] + row["initiation_s"] + row["wait_s"]
        assert parts == pytest.approx(row["total_s"])
        assert "equations 2, 4, 6 to 9" in row["source"]
    seen = {(row["method"], row["computation_s"] > 0): row["total_s"] for row in rows}
    assert seen["exchange", True] == pytest.approx(seen["exchange", False] + 1e-3)
    assert seen["slabs", True] < seen["exchange", True]
    text = succeed(*command, "--pattern", "spmv:rows=4096,nonzeros=64")
    assert "Nishtala, equations 10 to 13" in text
    assert "bulk:by=get" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--op", "exchange"), "--pattern is required"),
        (("--op", "bcast", "--pattern", "random"), "and for nothing else"),
        (("--op", "overlap", "--pattern", "random"), "random: overlap is predicted for ft:rows=N"),
        (("--op", "overlap", "--pattern", "ft:rows=0,elements=8"), "overlap is predicted for ft:"),
        (
            ("--op", "overlap", "--pattern", "ft:rows=4,elements=8", "--methods", "scatter"),
            "scatter has no equation; available: exchange, slabs, pencils",
        ),
        (
            ("--op", "overlap", "--pattern", "ft:rows=4,elements=8", "--methods", "chunks:rows=5"),
            "chunks:rows=5 has no equation",
        ),
        (
            ("--op", "discovery", "--pattern", "random", "--methods", "nap:find=dens"),
            "has no formula",
        ),
        (
            ("--op", "overlap", "--pattern", "ft:rows=4,elements=8", "--computation", "inf"),
            "inf is not a comma-separated list of microseconds",
        ),
        (("--op", "spmv", "--pattern", "random"), "'spmv' is not one of 'exchange'"),
        (("--op", "exchange", "--pattern", "orb"), "available patterns are random, hub, stencil"),
        (("--op", "exchange", "--pattern", "random:degree=x"), "degree=x is none of degree, seed"),
        (("--op", "exchange", "--pattern", "stencil:dim=4"), "dim is 1 to 3"),
        (("--op", "exchange", "--pattern", "stencil:edge=0"), "edge 1 to 512"),
        (("--op", "exchange", "--pattern", "stencil:edge=100000"), "edge 1 to 512"),
        (("--op", "exchange", "--pattern", f"stencil:edge={10**17}"), "edge 1 to 512"),
        *(
            (("--op", "exchange", "--pattern", spec), "write matrix:FILE or matrix:FILE,part=")
            for spec in ("matrix:x.mtx,part=", "matrix:,part=strided", "matrix:x,part=a,part=b")
        ),
        (("--op", "exchange", "--pattern", "random", "--sizes", "0"), "'0' is neither SIZE nor"),
        (("--op", "exchange", "--pattern", "random", "--sizes", "8:4:x2"), "neither SIZE nor"),
        (("--op", "exchange", "--pattern", "random", "--sizes", "a"), "neither SIZE nor"),
        (("--op", "bcast", "--closed-forms"), "--closed-forms requires --op exchange"),
        (("--op", "bcast", "--methods", "hypercube"), "hypercube has no formula for bcast"),
        (("--op", "alltoallv", "--methods", "bruck:radix=1"), "bruck:radix=1 has no formula"),
        (("--op", "exchange", "--pattern", "random", "--methods", "ring"), "ring: methods counted"),
    ],
)
def test_what_cannot_be_predicted_is_reported(
    database: Path, options: tuple[str, ...], message: str
) -> None:
    result = call("predict", "--procs", "4", *options, "--database", database)
    assert result.exit_code != 0
    assert message in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("change", [('"value":', '"worth":'), (r"\d\.\d+", "NaN"), ("}$", "")])
def test_parameters_of_another_version_are_to_be_fitted_again(
    database: Path, tmp_path: Path, change: tuple[str, str]
) -> None:
    path = tmp_path / "s.db"
    shutil.copy(database, path)
    with Store.open(path) as store:
        (system,) = store.systems()["system"]
        text = store.model(system)
        assert text is not None
        with store.transaction():
            store.put_model(system, re.sub(*change, text))
    predict = ("predict", "--op", "bcast", "--procs", "4")
    for command in (predict, ("check", "model"), ("show", "models")):
        message = fail(*command, "--database", path)
        assert "were fitted by another version; run `switchpoint fit`" in message


def test_without_probes_or_fit_the_next_step_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    synthetic.write(tmp_path, replace(synthetic.Campaign(), launches=1, sizes=(8,)))
    ingest(path, [tmp_path])
    predict = ("predict", "--op", "bcast", "--procs", "4")
    for command, message in (
        (("fit",), "no probes; measure some: `switchpoint run -- --tag=parameters`"),
        (predict, "then run `switchpoint fit`"),
        (("check", "model"), "then run `switchpoint fit`"),
        (("show", "models"), "no system has fitted parameters"),
    ):
        assert message in fail(*command, "--database", path)
