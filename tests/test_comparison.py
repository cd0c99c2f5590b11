"""What two campaigns are said to differ in, where the truth is known."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

from dashboard import compared
from tests import synthetic, test_soaks
from tests.cells import CONSTANT, make_cells, scaled
from tests.cli import fail, succeed
from tuner import stats
from tuner.domain.operations import BY_ENVIRONMENT
from tuner.domain.records import Cell
from tuner.selection import comparison, soaks, tuning
from tuner.selection.comparison import Choice, ComparedTimes, Comparison, MeasuredSide
from tuner.selection.decisions import decide
from tuner.store.store import Store

Write = Callable[..., None]


def compare(a: list[Cell], b: list[Cell]) -> Comparison:
    sides = (MeasuredSide.of(ComparedTimes.of_cells(its), decide(its)) for its in (a, b))
    return comparison.compare(*sides)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write and ingest a synthetic campaign."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))

    def add(**fields: object) -> None:
        synthetic.write(tmp_path, synthetic.Campaign(samples=20, **fields))
        succeed("ingest")

    return add


def test_equal_campaigns_seldom_differ() -> None:
    truth = CONSTANT | {"neighbor": scaled(0.7), "alltoallv": scaled(2)}
    differing = 0
    for seed in range(20):
        pair = [make_cells(truth, range(8, 38), seed=seed + 100 * side) for side in (0, 1)]
        differing += bool(compare(*pair).changes)
    assert differing <= 3  # 5 % of comparisons in which nothing is true


def test_a_method_that_became_slower_is_found() -> None:
    a = make_cells(CONSTANT | {"neighbor": scaled(0.7)}, range(8, 48), seed=1)
    b = make_cells(CONSTANT | {"neighbor": scaled(0.8)}, range(8, 48), seed=2)
    found = compare(a, b)
    right = [change for change in found.changes if change.where.method == "neighbor"]
    assert len(right) == 40
    assert len(found.changes) - len(right) <= 4
    assert all(change.low < 8 / 7 < change.high for change in right[20:21])
    assert found.compared == 80
    assert found.common_ratio == pytest.approx((8 / 7) ** 0.5, rel=0.01)


def test_ranks_that_arrive_apart_leave_no_case_out() -> None:
    truth = CONSTANT | {"neighbor": scaled(0.5)}
    cells = make_cells(truth) + make_cells(truth, sync="window-staggered", first_id=2000)
    loss = compare(cells, cells).measured.loss
    assert (loss.cases, loss.not_measured, loss.without_rule) == (4, 0, 0)


def test_switch_points_that_moved_and_what_the_others_table_costs() -> None:
    sizes = (8, 64, 512, 4096)
    a = make_cells(CONSTANT | {"neighbor": lambda size: 0.5e-5 if size < 1000 else 2e-5}, sizes)
    b = make_cells(CONSTANT | {"neighbor": lambda size: 0.5e-5 if size < 100 else 2e-5}, sizes)
    found = compare(a, b)
    (moved,) = found.measured.moved
    assert moved.a == [Choice(0, "neighbor"), Choice(1449, "direct")]
    assert moved.b == [Choice(0, "neighbor"), Choice(182, "direct")]
    assert (moved.sizes, moved.settled) == (1, 1)
    assert found.measured.loss.cases == 4
    assert found.measured.loss.worst == pytest.approx(1, rel=0.05)
    assert found.measured.loss.mean == pytest.approx(2**0.25 - 1, rel=0.05)
    assert found.measured.loss.worst_where is not None
    assert found.measured.loss.worst_where.case.size_bytes == 512


def test_settings_of_the_library_with_launches_of_their_own_are_compared() -> None:
    def cells(factor: float) -> list[Cell]:
        of_bcast: Any = {"operation": "bcast", "degree": (0, 0.0)}
        own = make_cells({f"{BY_ENVIRONMENT}1": scaled(factor)}, first_id=2000, **of_bcast)
        return make_cells({"vendor": scaled(1)}, **of_bcast) + own

    loss = compare(cells(0.5), cells(2)).measured.loss
    assert (loss.cases, loss.not_measured) == (4, 0)
    assert loss.mean == pytest.approx(1, rel=0.05)


def test_a_layout_without_rules_takes_the_default() -> None:
    a = make_cells(CONSTANT | {"neighbor": scaled(0.5)}, layout=(1, 2))
    b = make_cells(CONSTANT | {"neighbor": scaled(0.5)}, layout=(2, 1))
    found = compare(a, b)
    assert found.compared == 0
    assert found.measured.loss.without_rule == 4
    assert found.measured.loss.mean == pytest.approx(1, rel=0.05)


def test_what_a_has_not_measured_is_in_no_figure() -> None:
    a = make_cells(CONSTANT)
    b = make_cells(CONSTANT | {"neighbor": scaled(0.5)})
    assert (compare(a, b).measured.loss.mean, compare(a, b).measured.loss.not_measured) == (None, 4)


def test_simulations_that_repeat_to_the_last_digit_differ_or_do_not() -> None:
    same, other = np.full(3, 1.0), np.full(3, 1.5)
    assert stats.welch(same, same).p == 1
    assert stats.welch(same, other).p == 0


def test_one_simulated_launch_shows_every_change_and_no_other() -> None:
    def one_launch(system: str, factor: float) -> list[Cell]:
        truth = CONSTANT | {"neighbor": scaled(factor)}
        cells = make_cells(truth, launches=1, launch_noise=0, sample_noise=0)
        return [replace(cell, key=cell.key._replace(system=system)) for cell in cells]

    simulated = [one_launch("simulated-torus-4x4x2-simgrid-0", factor) for factor in (0.5, 0.51)]
    assert compare(simulated[0], simulated[0]).changes == []
    found = compare(*simulated).changes
    assert {change.where.method for change in found} == {"neighbor"}
    assert [change.ratio for change in found] == pytest.approx([1.02] * 4)
    assert (
        compare(*(one_launch("local-cpu-openmpi-0", factor) for factor in (0.5, 0.9))).changes == []
    )


def test_two_campaigns_of_one_system(write: Write) -> None:
    write(name="before")
    slow = {"direct": 4e-6, "stfw:dims=2": 8e-6, "neighbor": 4.4e-6, "alltoallv": 9e-6}
    write(name="after", times=lambda method, size: slow[method] + 1e-9 * size, seed=2)
    text = succeed("compare", "before", "after")
    assert "A: local-cpu-mpich-" in text
    assert "stfw:dims=2, from" in text
    assert "with B's table, the time of A's 5 cases changes by" in text
    document = json.loads(succeed("compare", "before", "after", "--json"))
    assert document["a"]["name"].endswith("/before")
    assert document["changes"][0]["where"]["method"] == "stfw:dims=2"
    assert document["measured"]["moved"][0]["b"] == [{"from_bytes": 0, "method": "direct"}]


def test_what_failed_a_soak_is_in_no_table_that_is_compared(write: Write, tmp_path: Path) -> None:
    write(name="before", methods=("direct", "neighbor"))
    write(name="after")

    def of_b() -> set[str]:
        document = json.loads(succeed("compare", "before", "after", "--json"))
        (moved,) = document["measured"]["moved"] or [{"b": []}]
        return {choice["method"] for choice in moved["b"]}

    assert "stfw:dims=2" in of_b()
    test_soaks.write(tmp_path, test_soaks.failed("stfw:dims=2"))
    succeed("ingest")
    assert "stfw:dims=2" not in of_b()


def test_what_waits_for_its_soak_is_measured_but_not_deployable(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the tables that are exported were made without asking for soaks."""
    write(name="before", methods=("direct", "neighbor"))
    write(name="after")
    monkeypatch.delenv("SWITCHPOINT_REQUIRE_SOAK")

    def compared() -> dict[str, Any]:
        return json.loads(succeed("compare", "before", "after", "--json"))

    document = compared()
    assert document["deployable"]["moved"] == []
    (moved,) = document["measured"]["moved"]
    assert moved["b"][0]["method"] == "stfw:dims=2"
    assert document["a"]["required_executions"] == soaks.ENOUGH
    text = succeed("compare", "before", "after")
    assert text.index("different methods are chosen") < text.index("deployable: ")
    assert "no switch point moved" in text[text.index("deployable: ") :]

    succeed("tune", "--require-soak", "0")
    document = compared()
    assert document["deployable"] == document["measured"]
    assert document["measured"]["moved"] == [moved]
    assert "which require no soaks here\nthe same" in succeed("compare", "before", "after")


def test_pages_and_command_compare_by_what_tables_are_made_of(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the headers of launches, and without methods that are off, though they were decided."""
    for name, day in (("before", "2026-11-20"), ("after", "2026-11-21")):
        paths = synthetic.write(tmp_path, synthetic.Campaign(name=name, samples=5, day=day))
        for path in paths:
            header, rest = path.read_text().split("\n", 1)
            path.write_text(json.dumps(json.loads(header) | {"allocation": name}) + "\n" + rest)
    succeed("ingest")
    succeed("tune")
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        sides = [(system, "before"), (system, "after")]

        def chosen() -> set[tuple[str, str]]:
            document = compared.document(store, *sides)
            assert document.pop("undecided") == ""
            command = json.loads(succeed("compare", "before", "after", "--json"))
            assert command == json.loads(json.dumps(document))
            assert command["compared"] == 4 * 5
            of_class = tuning.compared_side(store, *sides[0]).chosen.classes.values()
            return {(point.method, point.status) for its in of_class for point in its.values()}

        assert ("stfw:dims=2", "faster in this allocation") in chosen()
    monkeypatch.setenv("SWITCHPOINT_OFF", "stfw")
    shutil.copy(tmp_path / "switchpoint.db", tmp_path / "other.db")
    with Store.open(tmp_path / "other.db", readonly=True) as store:  # pages keep those of the first
        assert not any(method.startswith("stfw") for method, _ in chosen())


def test_disturbed_launches_count_less() -> None:
    quiet = make_cells(CONSTANT, launches=6, launch_noise=0)
    parts = [cell.parts.copy() for cell in quiet]
    for part in parts:
        part["median_s"][0] *= 9
        part["canary_s"][0] *= 100
    disturbed = [replace(cell, parts=part) for cell, part in zip(quiet, parts, strict=True)]
    found = compare(quiet, disturbed)
    assert found.common_ratio == pytest.approx(9 ** (1 / 9 / (5 + 1 / 9)), rel=0.01)


def test_a_weighted_test_is_welchs_where_all_weigh_the_same() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(size=(3, 5)), random.normal(0.5, 2, size=(3, 8))
    ones, fours = np.full(a.shape, 1.0), np.full(b.shape, 4.0)
    weighted, plain = stats.welch(a, b, ones, fours), stats.welch(a, b)
    expected = ttest_ind(a, b, axis=1, equal_var=False)
    for found in (weighted, plain):
        assert found.p == pytest.approx(expected.pvalue)
        assert found.difference == pytest.approx(b.mean(axis=1) - a.mean(axis=1))


def test_a_loss_by_what_is_not_soaked_is_measured_and_not_deployable(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(name="before")
    fast = {"direct": 4e-6, "stfw:dims=2": 8e-6, "neighbor": 1e-6, "alltoallv": 9e-6}
    write(name="after", times=lambda method, size: fast[method] + 1e-9 * size, seed=2)
    monkeypatch.delenv("SWITCHPOINT_REQUIRE_SOAK")
    document = json.loads(succeed("compare", "before", "after", "--json"))
    assert document["measured"]["loss"]["p95"] > 0.1
    assert document["deployable"]["loss"]["p95"] == 0


@pytest.fixture
def upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], tuple[str, str]]:
    """Ingest campaigns before and after an upgrade that changed discoveries alone."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))

    def add(factor: float) -> tuple[str, str]:
        names = synthetic.write_upgrade(tmp_path, factor)
        succeed("ingest")
        return names

    return add


@pytest.mark.parametrize("factor", [1.45, 0.7])
def test_the_operation_that_changed_most_is_first(
    upgrade: Callable[[float], tuple[str, str]], factor: float
) -> None:
    names = upgrade(factor)
    document = json.loads(succeed("compare", *names, "--json"))
    first, *others = document["operations"]
    assert (first["operation"], first["changed"], first["compared"]) == ("discovery", 20, 20)
    assert first["ratio"] == pytest.approx(factor, rel=0.05)
    assert first["effect"] == pytest.approx(max(factor, 1 / factor), rel=0.05)
    assert {each["operation"] for each in others} == {"bcast", "exchange"}
    assert sum(each["changed"] for each in others) <= 2  # by chance, at most 5 %
    assert all(each["effect"] < 1.01 for each in others)
    assert {each["where"]["operation"] for each in document["changes"][:20]} == {"discovery"}
    text = succeed("compare", *names)
    rows = [line.split() for line in text.splitlines()]
    number = next(at for at, row in enumerate(rows) if row[:1] == ["discovery"])
    assert rows[number][:4] == ["discovery", "20", "of", "20"]
    assert {row[0] for row in rows[number + 1 : number + 3]} == {"bcast", "exchange"}


def test_an_upgrade_that_changed_nothing_is_said_to_have_changed_nothing(
    upgrade: Callable[[float], tuple[str, str]],
) -> None:
    names = upgrade(1)
    document = json.loads(succeed("compare", *names, "--json"))
    assert document["changes"] == []
    assert {each["effect"] for each in document["operations"]} == {1}
    text = succeed("compare", *names)
    assert "0 of 55 shared cells changed" in text
    assert "discovery" not in text[: text.index("measured: ")]


def test_a_comparison_needs_two_names_of_something_measured(write: Write) -> None:
    write(name="one")
    write(name="one", environment="openmpi")
    assert "several systems have a campaign one; give SYSTEM/one, where" in fail(
        "compare", "one", "mpich/one"
    )
    assert "are the same" in fail("compare", "mpich/one", "mpich/one")
    assert "mpich has no campaign two; available: one" in fail("compare", "mpich", "mpich/two")
    assert "no campaign or system two; campaigns: " in fail("compare", "mpich", "two")
    assert "\n0 of 20 shared cells" in succeed("compare", "mpich", "openmpi")
