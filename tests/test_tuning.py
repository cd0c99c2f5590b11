"""Tables and decisions on their way into the store, and back."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests import synthetic
from tuner.domain.cases import CellKey
from tuner.domain.flat import columns, take
from tuner.rawfile.ingest import ingest
from tuner.selection import tuning
from tuner.selection.decisions import decide
from tuner.selection.trust import shares
from tuner.selection.tuning import TuningError, tune
from tuner.store.store import Store


def test_systems_without_a_table_are_known(database: Path) -> None:
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        assert store.untuned() == [system]
        tune(store, system)
        assert store.untuned() == []


def test_a_table_has_the_launches_that_were_added_while_it_was_made(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = synthetic.write(tmp_path, synthetic.Campaign(name="20261122T000000Z", launches=2))
    waiting = iter(written)

    def decided(*given: Any) -> Any:
        if (path := next(waiting, None)) is not None:
            ingest(database, [path])
        return decide(*given)

    monkeypatch.setattr(tuning, "decide", decided)
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        before = int(store.systems()["launches"].iloc[0])
        table = tuning.tune(store, system)
        assert table.provenance.launches == before + 2
        assert tuning.omission(store, table, before + 2) == ""
        assert tuning.omission(store, table, before + 3) == "omits 1 launch"
        store._execute("UPDATE launch SET decided = 0")
        assert "this version's decisions" in tuning.omission(store, table, before + 2)


def test_a_table_is_read_as_it_was_stored(database: Path) -> None:
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        assert store.table(system) is None
        assert store.rules(system).empty
        table = tune(store, system)
        tune(store, system)
        assert store.table(system) == table
        rules = store.rules(system)
        assert rules["method"].tolist() == [rule.method for rule in table.rules]
        assert len(store.points(system)) == len(table.points) == 2


def test_what_a_campaign_decides_holds_until_launches_come(database: Path, tmp_path: Path) -> None:
    with Store.open(database) as store:
        ((system, campaign),) = store.campaigns()[["system", "campaign"]].to_numpy().tolist()
        assert store.undecided(system) == [campaign]
        tune(store, system)
        assert store.undecided(system) == []
        alone = decide(store.contents(system, campaign=campaign))
        assert store.decisions(system, campaign, "exchange") == alone != []
        assert store.decisions(system, campaign, "bcast") == []
    synthetic.write(tmp_path, synthetic.Campaign(launches=6, sizes=(8, 64)))
    ingest(database, [tmp_path])
    with Store.open(database) as store:
        assert store.undecided(system) == [campaign]
        tune(store, system)
        assert store.undecided(system) == []
        assert store.decisions(system, campaign, "exchange") != alone


def test_a_launch_that_comes_while_a_campaign_is_decided_leaves_it_undecided(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = count(6)

    def late(*given: Any) -> Any:
        synthetic.write(tmp_path, synthetic.Campaign(launches=next(launches), sizes=(8, 64)))
        ingest(database, [tmp_path])
        return shares(*given)

    with Store.open(database) as store:
        ((system, campaign),) = store.campaigns()[["system", "campaign"]].to_numpy().tolist()
        with monkeypatch.context() as patch:
            patch.setattr(tuning, "shares", late)
            tune(store, system)
        assert store.undecided(system) == [campaign]
        tune(store, system)
        assert store.undecided(system) == []


def test_what_a_campaign_decides_in_one_allocation_waits_for_others(tmp_path: Path) -> None:
    """Beside other campaigns, too."""
    for name in ("20260101T000000Z", "20260102T000000Z"):
        for path in synthetic.write(tmp_path, synthetic.Campaign(name=name, sizes=(8, 64))):
            path.write_text(path.read_text().replace("{", '{"allocation": "job-17", ', 1))
    database = tmp_path / "store.db"
    ingest(database, [tmp_path])
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        tune(store, system)
        for campaign in store.campaigns(system)["campaign"]:
            points = store.decisions(system, campaign, "exchange")
            assert {point.status for point in points} == {"faster in this allocation"}


def test_a_method_that_is_off_is_in_no_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.write(tmp_path, synthetic.Campaign())
    ingest(tmp_path / "s.db", [tmp_path])
    with Store.open(tmp_path / "s.db") as store:
        (system,) = store.systems()["system"]
        (chosen,) = {rule.method for rule in tune(store, system).rules} - {"direct"}
        monkeypatch.setenv("SWITCHPOINT_OFF", f"nbx; {chosen}")
        assert {rule.method for rule in tune(store, system).rules} <= {"direct"}


def test_the_evidence_of_a_rule_leads_to_its_cell(database: Path) -> None:
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        tune(store, system)
        rules = store.rules(system).to_dict("records")
        assert rules
        for rule in rules:
            assert len(store.samples(take(CellKey, (rule[name] for name in columns(CellKey)))))


def test_tuning_what_is_not_there_is_an_error(database: Path) -> None:
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        with pytest.raises(TuningError, match="no system other"):
            tune(store, "other")
        with pytest.raises(TuningError, match="no campaign other"):
            tune(store, system, ["other"])
