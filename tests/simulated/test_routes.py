"""Routes that predictions count on: as SimGrid takes them, and what their links carry."""

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import by_day
from tuner.machine.simulation import launch
from tuner.machine.simulation.machines import CORES, machine
from tuner.machine.simulation.routes import ROUTES, carried


@pytest.fixture(scope="session")
def router(simgrid, require, tmp_path_factory) -> Path:
    """Build a program that prints SimGrid's routes."""
    require("c++", shutil.which("g++") is not None, "no g++ on the path")
    program = tmp_path_factory.mktemp("routes") / "routes"
    source = Path(__file__).with_name("routes.cpp")
    subprocess.run(["g++", str(source), "-lsimgrid", "-o", str(program)], check=True)
    return program


def sharing(routes: Iterable[tuple[tuple[int, int], object]]) -> set[frozenset[tuple[int, int]]]:
    """Return the pairs of nodes on each link, whatever its name."""
    found = defaultdict(set)
    for pair, link in routes:
        found[link].add(pair)
    return set(map(frozenset, found.values()))


@pytest.mark.parametrize(
    "name",
    by_day(
        ["torus-5x3"], ["torus-4x4x2", "fattree-2x3x4", "dragonfly-4x1x4x2", "dragonfly-3x2x4x2"]
    ),
)
def test_routes_share_links_as_in_simgrid(router, name, monkeypatch, tmp_path):
    monkeypatch.setattr(launch, "build_root", lambda: tmp_path)
    its = machine(name)
    platform, _ = launch._write(its, CORES)
    lines = subprocess.run([router, platform], capture_output=True, text=True, check=True).stdout
    theirs = []
    for line in lines.splitlines():
        source, target, *links = line.split()
        theirs += [((int(source), int(target)), link) for link in links]
    source, target = (each.ravel() for each in np.indices((its.nodes, its.nodes)))
    ours = [
        ((int(source[at]), int(target[at])), link)
        for moving, links in ROUTES[name.partition("-")[0]](its.topology.sizes, source, target)
        for at, link in zip(moving.tolist(), links.tolist(), strict=True)
    ]
    assert len(ours) == len(theirs)
    assert sharing(ours) == sharing(theirs)


def test_messages_of_a_ring_share_its_links():
    """Nodes 0, 1 and 5 send to node 2: what 5 and 0 send passes node 1's link too."""
    source, target = np.array([0, 1, 5, 4]), np.array([2, 2, 2, 3])
    taking, turn = np.array([8.0, 4.0, 2.0, 1.0]), np.ones(4, dtype=np.int64)
    # The link from 1 to 2 is shared until the smallest has passed, then the next one.
    found = carried("torus", (6,), source, target, turn, taking)
    assert found.tolist() == [14, 2 + 4 + 4, 3 * 2, 1]
    turn[2] = 2  # node 5 sends another message first
    found = carried("torus", (6,), source, target, turn, taking)
    assert found.tolist() == [12, 8, 14, 1]
