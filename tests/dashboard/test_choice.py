"""Which system and campaign a page begins with, and what they are called."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dashboard import pages
from dashboard.choice import (
    PatternQuery,
    before_upgrade,
    choose_pattern,
    layout_options,
    newest_first,
    system_options,
    upgrades,
)
from dashboard.query import UnknownError
from tests.dashboard.frames import drawn
from tests.synthetic import Campaign, write
from tuner.rawfile.ingest import ingest
from tuner.store.store import Store


def test_a_link_to_an_operation_finds_the_newest_campaign_of_it(tmp_path: Path) -> None:
    older = Campaign(name="20260101T000000Z", launches=1)
    newer = replace(older, name="20260301T000000Z", launches=2)
    latest = replace(older, name="20260401T000000Z", launches=3, operation="discovery")
    for campaign in (older, newer, latest):
        write(tmp_path, campaign)
    ingest(tmp_path / "s.db", [tmp_path])
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        chosen = choose_pattern(store, PatternQuery.parse("?o=exchange"), strict=True)
        assert chosen.query.campaign == newer.name
        assert choose_pattern(store, PatternQuery(), strict=True).query.campaign == latest.name
        with pytest.raises(UnknownError):
            choose_pattern(store, PatternQuery.parse("?o=bcast"), strict=True)


def test_real_machines_come_first_and_the_others_are_marked() -> None:
    systems = pd.DataFrame(
        [
            ("a", "local:cpu", "mpich", "Xeon", "2026-01-01"),
            ("b", "simulated:torus-4x4x2", "smpi", "simulated", "2026-01-03"),
            ("c", "local:cpu+block", "mpich", "Xeon", "2026-01-04"),
            ("d", "local:cpu", "openmpi", "Xeon", "2026-01-02"),
        ],
        columns=["system", "name", "environment", "cpu_model", "last_date"],
    ).assign(mpi_library="MPICH Version: 5.0.2", cores=2)
    assert system_options(newest_first(systems)) == [
        ("d", "local:cpu, openmpi"),
        ("a", "local:cpu, mpich"),
        ("c", "local:cpu+block, mpich (virtual nodes)"),
        ("b", "simulated:torus-4x4x2, smpi (simulated)"),
    ]


def test_upgrades_are_of_one_machine_and_environment_whatever_the_versions() -> None:
    systems = pd.DataFrame(
        [
            ("a", "site:cpu", "gnu-openmpi/4.1.5", "Open MPI v4.1.5", "2026-01-01"),
            ("b", "site:cpu", "gnu-openmpi/5.0.3", "Open MPI v5.0.3", "2026-03-01"),
            ("c", "site:cpu", "gnu-mpich/4.1", "MPICH Version: 4.1", "2026-02-01"),
            ("d", "site:gpu", "gnu-openmpi/4.1.5", "Open MPI v4.1.5", "2026-02-01"),
            ("e", "site:cpu", "gnu-openmpi/5.0.3", "Open MPI v5.0.4", "2026-04-01"),
            ("f", "site:cpu", "gnu-openmpi/5.0.3", "Open MPI v5.0.4", "2026-05-01"),
        ],
        columns=["system", "name", "environment", "mpi_library", "first_date"],
    ).assign(cpu_model="Xeon", cores=[2, 2, 2, 2, 2, 4], last_date=lambda of: of["first_date"])
    assert list(upgrades(systems, "b")["system"]) == ["a", "b", "e"]
    assert before_upgrade(systems, "b") == ["a"]
    assert before_upgrade(systems, "e") == ["b", "a"]
    assert [before_upgrade(systems, only) for only in ("a", "c", "d", "f")] == [[]] * 4
    assert [label for _, label in system_options(systems)] == [
        "site:cpu, gnu-openmpi/4.1.5",
        "site:cpu, gnu-openmpi/5.0.3 5.0.3",
        "site:cpu, gnu-mpich/4.1",
        "site:gpu, gnu-openmpi/4.1.5",
        "site:cpu, gnu-openmpi/5.0.3 5.0.4, 2 cores",
        "site:cpu, gnu-openmpi/5.0.3 5.0.4, 4 cores",
    ]
    _, alike = system_options(systems.assign(cores=2).iloc[-2:])
    assert alike == ("f", "site:cpu, gnu-openmpi/5.0.3 5.0.4, 2 cores (f)")


def test_a_layout_names_its_scheme_only_where_there_are_others() -> None:
    def texts(*schemes: str) -> list[str]:
        rows = pd.DataFrame(
            [
                {"procs": 2, "nodes": 1, "ppn": 2, "oversubscribed": False, "sync": each}
                for each in schemes
            ]
        )
        return [text for _, text in layout_options(rows)]

    assert texts("window") == ["2: 1 node × 2"]
    assert texts("window", "window-staggered") == ["2: 1 node × 2", "2: 1 node × 2, ranks apart"]
    cold = [
        "2: 1 node × 2",
        "2: 1 node × 2, cold caches",
        "2: 1 node × 2, cold caches, ranks apart",
    ]
    assert texts("window", "window-cold", "window-cold-staggered") == cold
    assert texts("hca", "barrier") == ["2: 1 node × 2, barrier sync", "2: 1 node × 2, hca sync"]


def test_sizes_are_those_of_messages_and_not_of_items_alone(tmp_path: Path) -> None:
    """Metrics has all patterns, whose messages may differ."""
    patterns = (("random:degree=6,seed=1", 6, 5.5), ("hub:hubs=4,seed=1", 15, 4.25))
    for path in write(tmp_path, Campaign(sizes=(8,), launches=2, patterns=patterns)):
        sent = 24 if "-0-" in path.name else 40
        path.write_text(path.read_text().replace('"bytes": 8,', f'"bytes": {sent},'))
    ingest(tmp_path / "switchpoint.db", [tmp_path])
    for page, label in (
        (pages.explore.PAGE, "24 B (8 B per item)"),
        (pages.history.PAGE, "24 B (8 B per item)"),
        (pages.metrics.PAGE, "8 B per item"),
    ):
        pattern = "" if page is pages.metrics.PAGE else f"?p={patterns[0][0]}"
        choice, parts = drawn(page, tmp_path / "switchpoint.db", pattern)
        assert choice.options["size"] == [("8", label)]
    _, parts = drawn(pages.history.PAGE, tmp_path / "switchpoint.db", f"?p={patterns[0][0]}")
    assert parts["history"]["layout"]["yaxis"]["title"]["text"] == "time at 24 B (8 B per item)"
