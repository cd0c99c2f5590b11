"""Which system and campaign a page begins with, and what they are called."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dashboard.choice import PatternQuery, choose_pattern, newest_first, system_options
from dashboard.query import UnknownError
from tests.synthetic import Campaign, write
from tuner.ingest import ingest
from tuner.store import Store


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
    )
    assert system_options(newest_first(systems)) == [
        ("d", "local:cpu, openmpi"),
        ("a", "local:cpu, mpich"),
        ("c", "local:cpu+block, mpich (virtual nodes)"),
        ("b", "simulated:torus-4x4x2, smpi (simulated)"),
    ]
