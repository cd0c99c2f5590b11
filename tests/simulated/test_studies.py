"""Studies: what they make of figures, and small ones on a simulated machine."""

import json
import re
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from click.testing import CliRunner

from tests.cli import fail, succeed
from tests.conftest import by_day
from tuner.cli import main
from tuner.inputs.matrices import lookalike
from tuner.inputs.matrices.lookalike import originals
from tuner.inputs.matrices.market import read_pattern
from tuner.inputs.matrices.ownership import RULES, Ownership
from tuner.inputs.matrices.partitioners import partitioned
from tuner.inputs.structure.grid import choose
from tuner.inputs.structure.halo import halo
from tuner.inputs.structure.patterns import pattern
from tuner.machine.simulation.machines import machine
from tuner.models import predict
from tuner.models.networks import as_model
from tuner.studies import dsde, grids, nap, neighbours, stfw, stfw_tables, uneven
from tuner.studies.matrices import lookalike_file
from tuner.studies.nap import NodeExchange
from tuner.studies.simulator import Simulator

TABLE2 = stfw_tables.published("table2")


def statements(findings) -> dict[str, bool]:
    return {finding.statement: finding.reproduced for finding in findings}


@pytest.fixture
def simulating(monkeypatch, tmp_path, simgrid_build):
    """Let studies use the build of the tests, and keep what they find apart."""
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(simgrid_build))
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))


def row_of(scheme: stfw_tables.Scheme) -> stfw.StfwRow:
    """Return the paper's own figures, as if simulated."""
    counts = (scheme.mmax, scheme.mavg, scheme.vavg_words, scheme.buffer_kib or 1)
    times = (1.0, scheme.time_s, None)
    return stfw.StfwRow("paper", scheme.procs, scheme.dims, *counts, 1000, *times)


@pytest.mark.parametrize(("table", "system"), [("table2", ""), ("table3", "xc40_dragonfly")])
def test_the_papers_tables_obey_the_bound_of_messages(table, system):
    schemes = stfw_tables.published(table, system)
    assert len(schemes) == {"table2": 30, "table3": 8}[table]
    for (procs, dims), scheme in schemes.items():
        bound = procs - 1 if dims == 1 else choose(procs, dims).message_bound
        assert scheme.mavg <= scheme.mmax <= bound


def test_the_papers_figures_reproduce_the_paper():
    pairs = stfw_tables.means([row_of(scheme) for scheme in TABLE2.values()], TABLE2)
    for pair in pairs:
        assert pair.paper is not None
        assert pair.ours.time_s == pytest.approx(pair.paper.time_s)
    found = statements(stfw_tables.findings(pairs))
    assert all(found.values())
    assert "64: the best STFW gains a factor of 2.00 over BL, at STFW6" in found
    assert "512: the best STFW gains a factor of 3.62 over BL, at STFW9" in found


def test_other_figures_do_not():
    slow = {key: replace(each, time_s=1.0 * key[1]) for key, each in TABLE2.items()}
    slow[64, 1] = replace(slow[64, 1], mavg=1.16 * slow[64, 1].mavg)
    slow[128, 1] = replace(slow[128, 1], mmax=0.86 * slow[128, 1].mmax)
    slow[256, 1] = replace(slow[256, 1], mmax=0.88 * slow[256, 1].mmax)
    pairs = stfw_tables.means([row_of(scheme) for scheme in slow.values()], TABLE2)
    found = statements(stfw_tables.findings(pairs))
    assert not found["64: ranks send as many messages with BL"]
    assert not found["128: ranks send as many messages with BL"]
    assert found["256: ranks send as many messages with BL"]
    assert not found["64: every STFW is faster than BL"]
    assert not found["64: the best STFW gains a factor of 2.00 over BL, at STFW6"]
    assert found["64: volumes grow with dimensions as in the paper"]


def test_geometric_means_are_over_matrices_and_need_all_of_them():
    first = row_of(TABLE2[64, 1])
    rows = [replace(first, mmax=10, simulated_s=1.0), replace(first, mmax=40, simulated_s=4.0)]
    (pair,) = stfw_tables.means(rows, TABLE2)
    assert (pair.ours.mmax, pair.ours.time_s) == pytest.approx((20, 2.0))
    (pair,) = stfw_tables.means([rows[0], replace(rows[1], simulated_s=None)], TABLE2)
    assert pair.ours.time_s is None


def test_scaling_ends_where_the_exchange_outweighs_the_local_part():
    first = row_of(TABLE2[64, 1])

    def rows(dims: int, times_s: dict[int, float]) -> list[stfw.StfwRow]:
        entries = {procs: 64_000_000 // procs for procs in times_s}  # 14.5 ms on 64
        return [
            replace(first, procs=p, dims=dims, most_entries=entries[p], simulated_s=seconds)
            for p, seconds in times_s.items()
        ]

    found = rows(1, {64: 0.001, 128: 0.01}) + rows(2, {64: 0.002, 128: 0.003})
    (product,) = stfw_tables.scaling(found)
    assert product.direct_s == pytest.approx({64: 0.0155, 128: 0.01725})
    assert product.stfw_s == pytest.approx({64: 0.0165, 128: 0.01025})
    finding = stfw_tables.scaling_finding([product])
    assert finding.reproduced
    assert "BL stops before 128 on 1 of 1, STFW later on 1: paper" in finding.figures


def test_the_matrices_of_the_tables():
    assert len(stfw.names("small15")) == 15
    assert len(stfw.names("large10")) == 10
    assert set(stfw.names("small15")) | set(stfw.names("large10")) == set(originals())


def test_lookalikes_meet_as_many_parts_as_the_papers_matrices(tmp_path, require):
    """Smaller than the study's, and with a partitioner that is fast."""
    require("pymetis", find_spec("pymetis") is not None, "METIS is not installed")
    sent = []
    for name in stfw.names("small15"):
        original = originals()[name]
        path = tmp_path / f"{name}.mtx"
        lookalike.make(original, lookalike.coarsened(original.target, 50_000), path, seed=1)
        matrix = read_pattern(path)
        parts = Ownership(64, partitioned(matrix, "graph", 64, seed=1))
        counts = np.bincount(halo(matrix, parts).source, minlength=64)
        sent.append((counts.max(), counts.mean()))
    mmax, mavg = (stfw_tables.geometric(each) for each in zip(*sent, strict=True))
    assert mmax == pytest.approx(TABLE2[64, 1].mmax, rel=0.25)
    assert mavg == pytest.approx(TABLE2[64, 1].mavg, rel=0.25)


def test_rows_count_as_exactly_as_those_they_stand_for(monkeypatch, tmp_path):
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    request = stfw.StfwRequest(["cbuckle"], 4096, "contiguous", [8], simulated=0, headers=False)
    simulator = Simulator(None, machine("torus-4x4x2-bluegenep"), 4, "campaign")
    direct = next(stfw.study(simulator, request))
    original = originals()["cbuckle"]
    target = lookalike.coarsened(original.target, request.entries)
    matrix = read_pattern(lookalike_file(original, target, print))
    items = halo(matrix, RULES["contiguous"](target.rows, 8)).items.sum()
    words = items * original.target.rows / target.rows
    assert direct.vavg_words * 8 == pytest.approx(words, rel=1e-12)


def test_what_the_paper_concludes_of_discovery():
    def row(procs: int, degree: int, *times_s: float) -> dsde.DsdeRow:
        return dsde.DsdeRow(procs, degree, dict(zip(dsde.METHODS, times_s, strict=True)), {})

    rows = [row(64, 6, 4, 3, 2, 1), row(512, 6, 40, 30, 2.5, 1.2), row(512, 64, 50, 40, 9, 39)]
    assert all(statements(dsde.findings(rows, 6)).values())
    rows[1] = row(512, 6, 40, 30, 0.5, 1.2)
    found = dsde.findings(rows, 6)
    assert [finding.reproduced for finding in found] == [False, True, True, True]


def test_neighbours_are_counted_in_blocks_of_rows(monkeypatch, tmp_path):
    """A grid of points in its natural order: a rank meets few others, a look-alike's most."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    found = list(neighbours.count(["diffusion", "gupta2"], 1024, [2, 16, 64], print))
    assert [(each.matrix, each.rows, each.procs) for each in found[:3]] == [
        ("diffusion", 1024, 2),
        ("diffusion", 1024, 16),
        ("diffusion", 1024, 64),
    ]
    assert (found[0].mean, found[0].most) == (1, 1)
    assert found[1].most == 2
    assert found[2].mean <= 2 * 6
    finding = neighbours.finding(found)
    assert not finding.reproduced
    assert "64 ranks, lg P = 6: diffusion" in finding.figures
    assert neighbours.finding(found[:3]).reproduced


def test_what_the_paper_concludes_of_nodes():
    def row(matrix: str, speedup: float) -> nap.NapRow:
        standard = NodeExchange(100, 800, 10_000, 1000, 2.0, speedup)
        return nap.NapRow(matrix, 1000, 64, standard, NodeExchange(10, 700, 8000, 9000, 1.0, None))

    rows = [row("diffusion level 0", 0.5), row("diffusion level 3", 4.0), row("random 25", 40.0)]
    found = list(nap.findings(rows))
    assert all(finding.reproduced for finding in found)
    assert "up to 10.0 times fewer" in found[0].figures
    assert "down to 80 %" in found[1].figures


def test_layouts_are_held_against_the_library_at_every_size():
    times = {
        (1024, "vendor"): 1.0,
        (1024, "orthogonal:dims=2"): 0.5,
        (1024, "orthogonal:grid=24x2"): 2.0,
        (4096, "vendor"): 1.0,
        (4096, "orthogonal:dims=2"): 1.5,
        (4096, "orthogonal:grid=24x2"): 1.2,
    }
    row = grids.row_of("gather", 48, times)
    assert (row.least, row.mean, row.greatest) == pytest.approx((-0.2, 0.15, 0.5))
    assert (row.layouts, row.best, row.best_bytes) == (2, "6x8", 1024)
    assert row.most_lost == pytest.approx(-1.0)


def test_radices_are_held_against_the_papers_conclusions():
    small = uneven.UnevenRow(8, 50.0, 60.0, {2: 1.0, 8: 2.0}, {2: 0.5})
    large = uneven.UnevenRow(4096, 50.0, 60.0, {2: 40.0, 8: 30.0}, {2: 45.0})
    assert (small.best_radix, small.gain, large.best_radix) == (2, 100.0, 8)
    assert all(finding.reproduced for finding in uneven.findings([small, large]))
    assert not any(
        finding.reproduced for finding in uneven.findings([replace(large, flat_s={8: 1.3})])
    )


@pytest.mark.parametrize("spec", ["direct", "stfw:dims=3"])
def test_the_model_of_a_network_predicts_its_simulation(simulating, spec):
    """Small messages between 64 ranks, which contend for little."""
    name, case = "torus-4x4x2-bluegeneq", "random:degree=6,seed=1"
    from tuner.studies.simulator import simulator

    (found,) = simulator(machine(name), 16, "test", print).run("exchange", case, 64, spec, "8")
    model = as_model(machine(name))
    times = predict.of_exchange(model, pattern(case, 64), 16, [spec]).times(8)
    assert times[spec] == pytest.approx(found.time_s, rel=0.3)


@pytest.mark.parametrize(
    ("procs", "near"), [(64, 0.75), pytest.param(512, 0.6, marks=pytest.mark.nightly)]
)
def test_predictions_are_held_against_a_simulated_campaign(simulating, procs, near):
    """The model of a simulated machine needs no fit: it is what the machine is made of."""
    from tuner.studies.simulator import simulator

    run = simulator(machine("torus-4x4x2-bluegeneq"), 16, "test", print).run
    methods = "direct;stfw:dims=2;stfw:dims=3;stfw:dims=6"
    for pattern_spec in ("random:degree=6,seed=1", "hub:hubs=2,seed=1"):
        run("exchange", pattern_spec, procs, methods, "8,1K,128K")
    run("discovery", "random:degree=6,seed=1", procs, "pex;pcx;rsx;nbx", "8")
    outcomes = json.loads(succeed("check", "model", "--json"))
    errors = {
        (each["pattern"].partition(":")[0], error["method"], error["size_bytes"]): error["error"]
        for each in outcomes
        for error in each["errors"]
        if each["operation"] == "exchange"
    }
    assert len(errors) == 2 * 4 * 3
    assert sum(abs(error) <= 0.15 for error in errors.values()) >= near * len(errors)
    assert max(abs(error) for error in errors.values()) < 0.5
    assert min(each["rank_correlation"] for each in outcomes) > 0.5
    text = succeed("check", "model")
    assert "switch points predicted" in text
    assert re.search(r"^all: \d+ % of 28 within 15 %, rank correlation ", text, re.M)
    assert "a simulated machine with given parameters" in succeed("show", "models")


def test_a_study_is_the_same_at_every_run_and_a_campaign_of_the_store(simulating, tmp_path):
    command = ["study", "dsde", "--procs", "32,64", "--sweep", "2", "--json"]
    command += ["--matrices", "diffusion", "--rows", "400"]
    first, second = (json.loads(succeed(*command)) for _ in range(2))
    assert first["rows"] == second["rows"]
    assert [(each["matrix"], each["procs"]) for each in first["neighbours"]] == [
        ("diffusion", 32),
        ("diffusion", 64),
    ]
    assert [(row["procs"], row["degree"]) for row in first["rows"]] == [(32, 6), (64, 6), (64, 2)]
    files = list(tmp_path.glob(f"simulated-torus-4x4x2-bluegenep-*/{first['campaign']}/*.jsonl"))
    assert len(files) == 3
    assert first["campaign"] in succeed("show")


def test_store_and_forward_is_simulated_and_predicted(simulating):
    """One small look-alike: simulated on 8 ranks, predicted on 64."""
    command = ["study", "stfw", "--matrices", "fe_rotor", "--entries", "4096", "--procs", "8,64"]
    command += ["--by", "contiguous"]
    document = json.loads(succeed(*command, "--simulated", "8", "--json"))
    for row in document["rows"]:
        assert (row["simulated_s"] is None) == (row["procs"] == 64)
        assert (row["headered_s"] is None) == (row["procs"] == 64 or row["dims"] == 1)
    assert {row["procs"] for row in document["rows"]} == {8, 64}
    text = succeed(*command, "--simulated", "0")
    assert "of two numbers, the second is the paper's" in text
    assert "reproduced: 64: volumes grow with dimensions as in the paper" in text


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        (["stfw", "--matrices", "fe_rotor,nobody"], "no matrix 'nobody'"),
        (["stfw", "--entries", "4096"], "nd3k of 4096 entries has 318 rows, too few for 512 parts"),
        (["stfw", "--procs", "64,1024"], "has no room for 1024 processes, 16 per node"),
        (["dsde", "--matrices", "nobody"], "no matrix 'nobody'"),
        (["dsde", "--procs", "513"], "has no room for 513 processes"),
        (["nap", "--machine", "ring-4"], "no simulated machine 'ring-4'"),
        (["nap", "--procs", "513"], "has no room for 513 processes"),
        (["grids", "--procs", "64,513"], "has no room for 513 processes"),
        (["nap", "--procs", "4"], "of 80 rows has no room for 100 entries in each"),
        (["grids", "--procs", "7,64"], "7 ranks form no grid"),
        (["uneven", "--procs", "513"], "has no room for 513 processes"),
        (["uneven", "--procs", "8", "--radix", "2,16"], "at most the number of ranks, 8"),
    ],
)
def test_wrong_options_are_reported_before_anything_is_built(
    simgrid, monkeypatch, tmp_path, command, wrong
):
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path / "nothing"))
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    assert wrong in fail("study", *command)
    assert not list(tmp_path.glob("matrices/*.mtx"))


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ("1K-64K", "'1K-64K' is neither SIZE nor FIRST:LAST:xFACTOR"),
        ("", "'' is neither SIZE nor FIRST:LAST:xFACTOR"),
        ("100:10K:x10", "sizes are multiples of 8, as reductions take"),
    ],
)
def test_sizes_of_another_form_are_refused(simgrid, given, wrong):
    answer = CliRunner().invoke(main, ["study", "grids", "--sizes", given])
    assert answer.exit_code == 2
    assert wrong in answer.output


@pytest.mark.parametrize("procs", by_day(["16"], ["32"]))
def test_the_other_studies_end(simulating, procs):
    small = ["--procs", procs, "--rows", "400", "--random-rows", "4", "--nonzeros", "5"]
    rows = json.loads(succeed("study", "nap", *small, "--json"))["rows"]
    assert {row["matrix"].split()[0] for row in rows} == {"diffusion", "elasticity", "random"}
    rows = json.loads(succeed("study", "grids", "--procs", "12", "--sizes", "1K", "--json"))["rows"]
    assert {row["operation"] for row in rows} >= {"bcast", "gather", "allgather"}
    assert {row["layouts"] for row in rows} == {7}
    command = ["study", "uneven", "--procs", procs, "--ppn", "4", "--sizes", "8,4K"]
    text = succeed(*command, "--radix", "2,4")
    assert "reproduced: the best radix grows with the blocks (" in text
    first, last = json.loads(succeed(*command, "--radix", "2,4,16", "--json"))["rows"]
    assert [first["size_bytes"], last["size_bytes"]] == [8, 4096]
    assert {*first["flat_s"]} == {"2", "4", "16"} and {*first["layered_s"]} == {"2", "4"}
    command = ["study", "uneven", "--procs", "6", "--ppn", "4", "--sizes", "8", "--radix", "2"]
    (row,) = json.loads(succeed(*command, "--json"))["rows"]
    assert not row["layered_s"]  # nodes of four ranks and of two
