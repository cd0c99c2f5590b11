"""Regret on a simulated machine, where noise adds nothing to it."""

import json

import pytest

from tests import synthetic
from tests.cli import call, succeed


@pytest.mark.check
def test_the_regret_of_a_table_is_simulated(simgrid, simgrid_build, tmp_path, monkeypatch):
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(simgrid_build))
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    campaign = synthetic.Campaign(
        system="simulated:torus-4x4x2", environment=simgrid.name, procs=(4, 8), cores=16
    )
    synthetic.write(tmp_path, campaign)
    succeed("ingest")
    succeed("tune")
    found = []
    for _ in range(2):
        answer = call("check", "choices", "--problems", "1", "--json")
        assert answer.exit_code in (0, 1), answer.stderr
        found.append(json.loads(answer.stdout)["outcomes"])
    assert found[0]
    assert found[0] == found[1]
