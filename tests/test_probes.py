"""Probes on their way from raw files to the store."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import probes, synthetic
from tuner.domain.cases import ProbeKey
from tuner.models.fitting import stored
from tuner.rawfile import reading
from tuner.rawfile.ingest import ingest
from tuner.store.database import StoreError
from tuner.store.store import Store

SMALL = probes.ProbeCampaign(sizes=(1, 64), launches=2, samples=5)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return probes.write(tmp_path, SMALL)[0]


def test_every_sample_arrives(tmp_path: Path) -> None:
    paths = probes.write(tmp_path, SMALL)
    report = ingest(tmp_path / "s.db", [tmp_path])
    assert (report.launches, report.cells, report.problems) == (2, 0, [])
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        found = stored(store, system)
        launches = store.launches()
    assert len(found) == 2
    for launch, content in found.items():
        assert (launch.layout.nodes, launch.layout.ppn) == (2, 8)
        path = Path(launches[launch.launch].path)
        assert path in paths
        for line in path.read_text().splitlines()[1:-1]:
            record = json.loads(line)
            key = ProbeKey(
                record["quantity"],
                record.get("scope", ""),
                record.get("pairs", 1),
                record.get("messages", 1),
                record.get("delay_s", 0.0),
                record["size_bytes"],
            )
            assert content.pop(key) == pytest.approx(np.array(record["samples_s"]), rel=1e-6)
        assert content == {}


def test_the_fuller_file_of_a_launch_replaces_the_other(tmp_path: Path, raw: Path) -> None:
    whole = raw.read_text().splitlines(keepends=True)
    raw.write_text("".join(whole[:4]))
    report = ingest(tmp_path / "s.db", [raw])
    assert "no end record" in report.problems[0].message
    raw.write_text("".join(whole))
    assert ingest(tmp_path / "s.db", [raw]).problems == []
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        (content,) = stored(store, system).values()
    assert len(content) == len(whole) - 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"samples_s": []}, "not a valid record"),
        ({"samples_s": [1e-6, -1e-6]}, "not a valid record"),
        ({"samples_s": [None]}, "not a valid record"),
        ({"pairs": 0}, "not a valid record"),
        ({"quantity": "smell"}, "quantity smell is not known here"),
        ({"scope": "off_node"}, "copy has no scope 'off_node'"),
        ({"quantity": "prtt"}, "prtt has no scope ''"),
        ({"quantity": "reduce"}, "a second probe: quantity='reduce'"),
    ],
)
def test_what_cannot_be_used_is_reported(raw: Path, fields: dict[str, Any], message: str) -> None:
    problems = synthetic.change_record(raw, **fields)
    assert problems[0].startswith(message)
    assert len(problems) == 2  # and the end record counts another number of cases


def test_a_probe_among_methods_is_refused(raw: Path) -> None:
    raw.write_text(raw.read_text().replace('"operation": "probe"', '"operation": "exchange"'))
    problems = reading.read(raw).problems
    assert problems[0].message == "a record of probe in a launch of another kind"


def test_campaigns_of_probes_have_no_cells(tmp_path: Path) -> None:
    probes.write(tmp_path, SMALL)
    synthetic.write(tmp_path, synthetic.Campaign(name="2025", cores=64, launches=1, sizes=(8,)))
    ingest(tmp_path / "s.db", [tmp_path])
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        assert len(store.campaigns(system)) == 2
        assert store.campaigns_with_cells(system) == ["2025"]


@pytest.mark.parametrize("samples", ["5", "x'00'"])
def test_what_a_store_has_in_the_place_of_samples_is_reported(tmp_path: Path, samples: str) -> None:
    probes.write(tmp_path, SMALL)
    ingest(tmp_path / "s.db", [tmp_path])
    with Store.open(tmp_path / "s.db") as store:
        store._execute(f"UPDATE probe SET samples = {samples}")
        with pytest.raises(StoreError, match="damaged: "):
            stored(store, store.systems()["system"][0])
