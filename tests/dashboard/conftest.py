"""A store with synthetic campaigns, tuned, and the application over it."""

from dataclasses import replace
from pathlib import Path

import pytest
from dash import Dash
from flask.testing import FlaskClient
from msgspec.structs import replace as replace_fields

from dashboard.app import create_app
from dashboard.choice import systems_of
from tests.profiles import content, parse, tally
from tests.synthetic import Campaign, of_bcast, of_discovery, tuned_store, write
from tuner.advice import document, mix, saved
from tuner.advice.proof import Proof
from tuner.store.store import Store

PATTERNS = (("hub:hubs=4,seed=1", 15, 4.25), ("random:degree=6,seed=1", 6, 5.5))
SIZES = tuple(2**exponent for exponent in range(3, 19, 2))
PRODUCTS = Campaign(
    operation="spmv", patterns=(("matrix:bar.mtx", 6, 5.5),), procs=(2,), sizes=(8, 64)
)
BCAST = of_bcast(Campaign(sizes=SIZES))


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of two systems: one with two tuned campaigns, one with too few launches."""
    results = tmp_path_factory.mktemp("results")
    for name in ("20261019T120000Z", "20261121T034500Z"):
        exchange = Campaign(name=name, patterns=PATTERNS, procs=(2, 8), sizes=SIZES)
        write(results, exchange)
        write(results, of_discovery(Campaign(name=name, procs=(2, 8), sizes=SIZES)))
        write(results, replace(PRODUCTS, name=name))
        write(results, replace(BCAST, name=name))
    endless = "M" * 1000  # a name may be one long word
    few = Campaign(name="20250101T000000Z", environment="openmpi", launches=3, mpi_library=endless)
    write(results, few)
    path = tuned_store(results)
    with Store.open(path) as store:
        keep_advice(store)
    return path


def keep_advice(store: Store) -> None:
    """Keep advice on a program that broadcasts, by the table of the first system."""
    its = parse(content(tally("Bcast", 64, 0.5), tally("Irecv", 8, 0.2, group=-1)))
    found = document.advice(mix.mix(its, store.table(systems_of(store)["system"].iloc[0])))
    proof = Proof.of([(1.0, 0.80), (1.0, 0.81), (1.0, 0.80), (1.0, 0.81)])
    lines = ["export SWITCHPOINT_TABLE=a.table", "mpiexec -n 2 ./app"]
    faster = replace_fields(document.proved(found, proof), lines=lines, srun="srun -n 2 ./app")
    path = saved.profile_path(store.path.parent, "20261122T000000Z-1")
    saved.save(path, faster)
    path.with_name("broken.json").write_text("{")


@pytest.fixture(scope="session")
def app(database: Path) -> Dash:
    return create_app(database)


@pytest.fixture
def client(app: Dash) -> FlaskClient:
    return app.server.test_client()
