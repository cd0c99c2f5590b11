"""What a stored table says about a case."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dashboard import rules
from dashboard.choice import systems_of
from dashboard.pages import explore
from tests.dashboard.frames import drawn
from tuner.store.store import Store


def table(*rows: dict[str, object]) -> pd.DataFrame:
    """Return rules with open intervals but for what is given."""
    ends = [f"{name}_{end}" for name in ("mmax", "mavg", "bytes") for end in ("low", "high")]
    base = dict.fromkeys(ends) | {"operation": "exchange", "nodes": 1, "ppn": 8}
    base |= {"nodes_low": 1, "nodes_high": 1, "ppn_low": 8, "ppn_high": 8}
    base |= {"method": "direct", "status": "default", "oversubscribed": 0}
    base |= {
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
        "inferred": False,
        "is_oversubscribed": False,
    }
    return rules.with_speedup(pd.DataFrame([base | row for row in rows]))


CASE = pd.Series({"operation": "exchange", "nodes": 1, "ppn": 8, "mmax": 6, "mavg": 5.5})


def test_speedup_is_the_inverse_of_the_ratio_and_its_interval_turns_round() -> None:
    row = table({"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.8}).iloc[0]
    assert (row["speedup"], row["speedup_low"], row["speedup_high"]) == (2.0, 1.25, 2.5)
    assert (row["bytes_low"], row["bytes_high"]) == (-np.inf, np.inf)


def test_the_first_rule_that_holds_wins() -> None:
    chosen = rules.selected_intervals(
        table(
            {"method": "stfw:dims=2", "bytes_high": 1024},
            {"method": "neighbor", "bytes_low": 512, "bytes_high": 4096},
            {},
        ),
        CASE,
    )
    assert chosen[["bytes_low", "bytes_high", "method"]].to_numpy().tolist() == [
        [0, 1024, "stfw:dims=2"],
        [1025, 4096, "neighbor"],
        [4097, np.inf, "direct"],
    ]


def test_rules_of_other_cases_do_not_count() -> None:
    others = table(
        {"operation": "discovery"},
        {"nodes_low": 2, "nodes_high": 2},
        {"ppn_low": 5, "ppn_high": 7},
        {"mmax_low": 7},
        {"mavg_high": 5.4},
    )
    assert rules.selected_intervals(others, CASE).empty


def test_sizes_that_no_rule_covers_stay_open() -> None:
    chosen = rules.selected_intervals(table({"bytes_low": 9, "bytes_high": 64}), CASE)
    assert chosen[["bytes_low", "bytes_high"]].to_numpy().tolist() == [[9, 64]]


def test_a_case_is_said_in_words() -> None:
    rows = table(
        {"mmax_low": 4, "mmax_high": 9},
        {"mavg_high": 5.5, "is_oversubscribed": 1, "nodes": 2, "nodes_low": 2, "nodes_high": 2},
        {"ppn_low": 5, "ppn_high": 7, "inferred": True},
    )
    assert [rules.case_text(row) for row in rows.itertuples()] == [
        "exchange, 1 node × 8, degree 4 to 9",
        "exchange, 2 nodes × 8, oversubscribed, mean degree up to 5.5",
        "exchange, 1 node × 5 to 7, inferred",
    ]


def test_rules_and_verdicts_are_of_one_table(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store may get another one while a page is made."""
    with Store.open(Path(shutil.copy(database, tmp_path)), readonly=True) as store:
        system = systems_of(store)["system"].iloc[0]
        before = store.table(system)
        before = replace(before, rules=before.rules[:1])
        monkeypatch.setattr(rules, "cached_table", lambda store, system: before)
        (row,) = rules.of_table(store, system).to_dict("records")
    assert (row["system"], row["method"]) == (system, before.rules[0].method)


def test_inferred_layouts_share_cores_whatever_their_evidence(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(database, readonly=True) as store:
        system = systems_of(store)["system"].iloc[0]
        table = store.table(system)
        assert table is not None
        alone = next(rule for rule in table.rules if rule.ppn_high == 2)
        inferred = next(rule for rule in table.rules if rule.inferred)
        changed = replace(table, rules=[inferred._replace(evidence=alone.evidence)])
        with monkeypatch.context() as changing:
            changing.setattr(rules, "cached_table", lambda store, system: changed)
            (row,) = rules.of_table.__wrapped__(store, system).itertuples()
        assert not row.oversubscribed and "oversubscribed" in rules.case_text(row)
        link = explore.evidence_link(row._asdict())
    drawn(explore.PAGE, database, link.partition("explore")[2])
