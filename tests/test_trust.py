"""What a busy machine does to a choice, and what is said of it."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import raw, synthetic
from tests.cells import CONSTANT, chosen, make_cells, scaled
from tests.cli import succeed
from tuner.domain.records import Cell, Clock
from tuner.rawfile.reading import read_header
from tuner.selection import trust
from tuner.selection.decisions import decide
from tuner.selection.trust import Trust

TRUTH = CONSTANT | {"neighbor": scaled(0.8)}


def refused(cells: list[Cell]) -> dict[str, float]:
    return trust.shares(cells, Trust(cells)).disturbed


def disturb(cells: list[Cell], first: int, factor: float = 5.0) -> None:
    """Run a busy loop from before a launch: canaries are slow, and methods are as they come."""
    random = np.random.default_rng(1)
    for cell in cells:
        for index in range(first, len(cell.parts)):
            cell.parts["canary_s"][index] *= factor
            slower = random.uniform(1, factor)
            cell.parts["median_s"][index] *= slower
            _, samples_s = cell.of_launch(cell.parts["launch"][index])
            samples_s *= slower


def test_a_busy_loop_from_the_middle_on_does_not_change_the_choice() -> None:
    cells = make_cells(TRUTH, range(8, 48), launches=12)
    disturb(cells, 6)
    points = decide(cells)
    assert {point.method for point in points} == {"neighbor"}
    assert {point.launches for point in points} == {12}
    assert refused(cells) == {"canary": 0.5}
    assert trust.state(0.5, 0) == "contaminated"


def test_large_exchanges_may_slow_the_canaries_after_them() -> None:
    random = np.random.default_rng(3)
    cells = make_cells(TRUTH, range(8, 48), launches=12)
    assert len({cell.key.case.size_bytes for cell in cells}) > 1
    least = min(cell.key.case.size_bytes for cell in cells)
    for cell in cells:
        if cell.key.case.size_bytes > least:
            cell.parts["canary_s"] *= 4 * random.lognormal(0, 0.05, len(cell.parts))
    assert refused(cells) == {}
    disturb(cells, 6)
    assert refused(cells) == {"canary": 0.5}


@pytest.mark.parametrize(
    ("beside", "first_id", "is_known"),
    [((8, 4096), 1000, True), ((8, 512, 32768), 2000, True), ((8, 512), 2000, False)],
)
def test_launches_that_leave_small_sizes_out_are_judged_like_others(
    beside: tuple[int, ...], first_id: int, is_known: bool
) -> None:
    """Races measure open sizes only, where canaries are slower in every launch.

    What is usual is known of sizes that were measured beside the smallest, and between these.
    """
    later = make_cells(TRUTH, (4096,), launches=12, first_id=first_id)
    cells = make_cells(TRUTH, [size for size in beside if size != 4096], launches=4) + later
    for cell in cells:
        cell.parts["canary_s"] *= 1 + math.log2(cell.key.case.size_bytes / 8) / 3
    assert refused(cells) == {}
    for cell in later:
        cell.parts["canary_s"][8:] *= 5
    disturbed = set(range(first_id + 8, first_id + 12)) if is_known else set()
    assert Trust(cells).disturbed(later[0]) == disturbed


def test_the_smallest_size_is_judged_by_its_own_launches_alone() -> None:
    """Of two, one was disturbed at the larger size, which the others have alone."""
    both = make_cells(TRUTH, (8, 4096), launches=2)
    small, large = (
        [cell for cell in both if cell.key.case.size_bytes == size] for size in (8, 4096)
    )
    for cell in large:
        cell.parts["canary_s"][1] *= 5
    more = make_cells(TRUTH, (4096,), launches=6, first_id=2000)
    alone = Trust([*small, *large, *more])
    assert all(alone.disturbed(cell) == set() for cell in small)


def test_disturbed_launches_count_little() -> None:
    """Else the ratios of the disturbed half, which are as they come, would hide the winner."""
    cells = make_cells(TRUTH, range(8, 48), launches=8)
    disturb(cells, 4)
    for point in decide(cells):
        assert point.ratio == pytest.approx(0.8, rel=0.3)
    for cell in cells:
        cell.parts["canary_s"] = 0
    ratios = [point.ratio for point in decide(cells)]
    assert max(abs(math.log(ratio / 0.8)) for ratio in ratios) > 0.3


def test_a_clean_campaign_counts_whole_also_where_canaries_vary() -> None:
    random = np.random.default_rng(2)
    for noise in (0.05, 0.5):
        cells = make_cells(TRUTH, range(8, 48), launches=10)
        for cell in cells:
            cell.parts["canary_s"] *= random.lognormal(0, noise, len(cell.parts))
        doubts = trust.shares(cells, Trust(cells))
        assert trust.state(sum(doubts.disturbed.values()), doubts.noisy) == "clean"


def test_without_canaries_everything_counts() -> None:
    cells = make_cells(TRUTH)
    for cell in cells:
        cell.parts["canary_s"] = 0
    assert refused(cells) == {}
    assert chosen(decide(cells)) == {("neighbor", "faster")}


def test_layouts_have_canaries_of_their_own() -> None:
    cells = make_cells(TRUTH) + make_cells(TRUTH, layout=(1, 8))
    for cell in cells[len(cells) // 2 :]:
        cell.parts["canary_s"] *= 100
    assert refused(cells) == {}


@pytest.mark.parametrize(
    ("drift", "share", "noisy"), [(0.2, {}, 0), (2, {}, 1), (20, {"drift": 1}, 0)]
)
def test_a_machine_that_changes_its_speed_is_doubted(
    drift: float, share: dict[str, float], noisy: float
) -> None:
    cells = make_cells(TRUTH, launches=8, drift=drift)
    assert trust.shares(cells, Trust(cells)) == (share, noisy)
    assert chosen(decide(cells)) == {("neighbor", "faster")}


def test_ranks_that_miss_the_start_are_doubted_where_each_has_a_core() -> None:
    for oversubscribed in (False, True):
        cells = make_cells(TRUTH, launches=8, oversubscribed=oversubscribed)
        for cell in cells:
            cell.parts["late"][:4] = 0.6 * cell.parts["samples"][:4]
        assert refused(cells) == ({} if oversubscribed else {"clock": 0.5})


@pytest.mark.parametrize(
    ("fields", "noisy"),
    [
        ({"load": [8.2, 1, 1], "procs": 8}, 0),
        ({"load": [9.0, 1, 1], "procs": 8}, 1),
        ({"load": [9.0, 1, 1], "procs": 8, "cores": 64}, 1),
        ({"load": [9.0, 1, 1], "procs": 8, "others": 0.07}, 0),
        ({"others": 0.09}, 1),
        ({"clock": Clock("gettimeofday", 4e-3)}, 1),
    ],
)
def test_load_of_others_and_coarse_clocks_are_noted(fields: dict[str, Any], noisy: float) -> None:
    cells = make_cells(TRUTH, launches=8)
    header = read_header(json.dumps(synthetic.header(synthetic.Campaign(), 0, "hub", 2)).encode())
    assert header is not None
    launches = {int(number) for cell in cells for number in cell.parts["launch"]}
    doubting = Trust(cells, dict.fromkeys(launches, replace(header, **fields)))
    assert trust.shares(cells, doubting) == ({}, noisy)
    assert decide(cells) == decide(cells, doubting)


def test_launches_through_a_busy_network_are_noted_and_count() -> None:
    cells = make_cells(TRUTH, launches=8)
    text = json.dumps(synthetic.header(synthetic.Campaign(), 0, "hub", 2))
    header = read_header(text.encode())
    assert header is not None
    launches = sorted({int(number) for cell in cells for number in cell.parts["launch"]})
    crossings_s = [1e-3] * 6 + [1.9e-3, 2.1e-3]
    headers = {
        launch: replace(header, crossing_s=crossing_s)
        for launch, crossing_s in zip(launches, crossings_s, strict=True)
    }
    assert trust.shares(cells, Trust(cells, headers)) == ({}, 1 / 8)
    assert decide(cells) == decide(cells, Trust(cells, headers))
    assert read_header(text.replace("{", '{"crossing_s": -1, ', 1).encode()) is None


def test_a_table_reports_other_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    paths = synthetic.write(tmp_path, synthetic.Campaign(samples=20, launches=8))
    succeed("ingest")
    assert "counts a ninth" not in succeed("tune")
    lines = raw.read(paths[-1])
    for case in lines[1:-1]:
        case["canary_s"] = [9 * value for value in case["canary_s"]]
    raw.write(paths[-1], lines)
    (tmp_path / "switchpoint.db").unlink()
    succeed("ingest")
    said = succeed("tune")
    note = "contaminated: 12 % counts a ninth: other load detected"
    assert note in said
    assert f"# {note}\n" in succeed("export")


def test_a_table_notes_launches_beside_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    for number, path in enumerate(
        synthetic.write(tmp_path, synthetic.Campaign(samples=20, launches=8))
    ):
        *lines, end = path.read_text().splitlines()
        end = json.dumps(json.loads(end) | {"others": 0.4 if number % 2 == 0 else 0.01})
        path.write_text("".join(line + "\n" for line in (*lines, end)))
    succeed("ingest")
    assert "noisy: 50 % with load on nodes or network" in succeed("tune")
