"""Simulated machines: their shapes, and networks that are published or fitted."""

import itertools
import json
import math
from dataclasses import replace

import msgspec
import pytest

from tests.cli import fail, succeed
from tuner.machine.mpi import Mpi
from tuner.machine.simulation import networks
from tuner.machine.simulation.launch import settings
from tuner.machine.simulation.machines import machine
from tuner.machine.simulation.networks import NetworkError
from tuner.models.loggp import LogGP, LogGPProtocol
from tuner.models.networks import as_network
from tuner.models.parameter import Estimate, ModelError, NotIdentified
from tuner.models.system import PairModel, ProbedLayout, SystemModel

UNKNOWN = NotIdentified("not measured")


def torus_links(sizes, here, there):
    """Count the links of the shorter way round each ring."""
    return sum(
        min(abs(a - b), size - abs(a - b)) for size, a, b in zip(sizes, here, there, strict=True)
    )


def dragonfly_links(sizes, here, there):
    """Count node, the blade that leads to the other group, that group's, the blade, node."""
    (group, chassis, blade, _), (group_to, chassis_to, blade_to, _) = here, there
    if here == there:
        return 0
    links = 2
    if group != group_to:
        links += (blade != group_to) + (chassis != 0) + 1
        chassis, blade = 0, group
    return links + (chassis != chassis_to) + (blade != blade_to)


def fattree_links(sizes, here, there):
    """Count the links up to the first switch above both, and down."""
    differ = [level for level, (a, b) in enumerate(zip(here, there, strict=True)) if a != b]
    return 2 * (max(differ) + 1) if differ else 0


@pytest.mark.parametrize(
    ("name", "links", "simgrid"),
    [
        ("torus-4x4x2", torus_links, "4,4,2"),
        ("torus-5x3", torus_links, "5,3"),
        ("dragonfly-3x2x4x2", dragonfly_links, "3,1;2,1;4,1;2"),
        ("fattree-4x3", fattree_links, "2;4,3;1,4;1,1"),
        ("fattree-2x3x4", fattree_links, "3;2,3,4;1,2,3;1,1,1"),
    ],
)
def test_the_latency_is_spread_over_the_links_between_two_nodes(name, links, simgrid):
    found = machine(name)
    sizes = found.topology.sizes
    places = list(itertools.product(*map(range, sizes)))
    total = sum(links(sizes, *pair) for pair in itertools.permutations(places, 2))
    assert found.topology.mean_links == pytest.approx(total / math.perm(len(places), 2), rel=1e-9)
    assert found.topology.simgrid[1] == simgrid
    mean_s = found.link_latency_s * found.topology.mean_links
    assert mean_s == pytest.approx(found.network.protocols[0].latency_s)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("torus", "write torus, dragonfly, fattree with sizes"),
        ("torus-4x0x2", "a size is 0"),
        ("fattree-99999x99999", "more than 1048576 nodes"),
        ("torus-4x4x2-ethernet", "no network 'ethernet'; available: generic"),
        ("torus-4x4x1", "a torus has at least 2 nodes in each dimension"),
        ("dragonfly-4x4", "a dragonfly has four sizes"),
        ("dragonfly-1x4x8x4", "1 groups: a dragonfly has at least 2"),
        ("dragonfly-9x4x8x4", "9 groups: a dragonfly has at least 2, and a blade"),
    ],
)
def test_no_machine_is_made_of_a_wrong_name(name, reason):
    with pytest.raises(NetworkError, match=reason):
        machine(name)


def test_every_published_network_names_its_source_and_has_increasing_protocols():
    for each in networks.published().values():
        assert len(each.source) > 20
        sizes = [protocol.from_bytes for protocol in each.protocols]
        assert sizes[0] == 0
        assert sizes == sorted(set(sizes))


def simgrid(version: str) -> Mpi:
    return Mpi("simgrid", "simgrid", version, "smpicc", "smpirun")


@pytest.mark.parametrize("version", ["3.32", "4.1"])
def test_protocols_are_settings_of_the_simulator(version):
    """Whose entries begin behind their numbers; what factors see has a header."""
    found = settings(machine("torus-4x4x2-bluewaters"), simgrid(version))
    assert found["smpi/os"] == "0:6.5e-07:0;512:8e-07:0;8192:2.1e-06:0"
    assert found["smpi/lat-factor"] == "15:1;528:3.48148;8208:5.85185"
    assert found["smpi/bw-factor"] == "15:0.114545;528:0.309091;8208:0.654545"


@pytest.mark.parametrize(("version", "overhead"), [("3.32", "0:5e-07:0"), ("4.1", "5e-07")])
def test_empty_messages_have_the_overhead_of_the_only_protocol(version, overhead):
    found = settings(machine("torus-4x4x2"), simgrid(version))
    assert [found[f"smpi/{each}"] for each in ("os", "ois", "or")] == [overhead] * 3


def test_a_protocol_may_have_no_latency():
    """As fitted where overheads are as long as half a round trip."""
    of_machine = machine("torus-4x4x2-bluewaters")
    first, *others = of_machine.network.protocols
    protocols = [first, *(msgspec.structs.replace(each, latency_s=0) for each in others)]
    network = msgspec.structs.replace(of_machine.network, protocols=protocols)
    found = settings(replace(of_machine, network=network), simgrid("3.32"))
    assert found["smpi/lat-factor"] == "15:1;528:0;8208:0"


def model(**pairs: LogGP) -> SystemModel:
    layout = ProbedLayout(nodes=2, ppn=2, oversubscribed=False, launches=5)
    fitted = {scope: PairModel(layout, pair, UNKNOWN, UNKNOWN) for scope, pair in pairs.items()}
    return SystemModel("site-x-mpich-123456", "20260101T000000Z", 100, fitted, UNKNOWN, UNKNOWN)


def protocol(from_bytes, alpha_s, beta_s, send=UNKNOWN, receive=UNKNOWN, end=None) -> LogGPProtocol:
    rest = (UNKNOWN, UNKNOWN, UNKNOWN)
    return LogGPProtocol(
        from_bytes, end, *rest, send, receive, UNKNOWN, UNKNOWN, alpha_s=alpha_s, beta_s=beta_s
    )


def test_a_fitted_system_is_a_network():
    overheads = Estimate(4e-7, 4e-7, 4e-7), Estimate(6e-7, 6e-7, 6e-7)
    off = LogGP(
        [protocol(1, 2e-6, 1e-9, *overheads, 4096), protocol(8192, 5e-6, 5e-10)], scale=0.01
    )
    on = LogGP([protocol(1, 1.2e-6, 2e-10)], scale=0.01)
    found = as_network(model(off_node=off, on_node=on))
    short, long = found.protocols
    assert (short.from_bytes, long.from_bytes) == (0, 4097)
    assert (short.overhead_s, short.latency_s) == pytest.approx((5e-7, 1e-6))
    assert (long.overhead_s, long.latency_s) == pytest.approx((6e-7, 3.8e-6))
    assert (short.bytes_per_s, long.bytes_per_s) == pytest.approx((1e9, 2e9))
    assert found.link_bytes_per_s == pytest.approx(2e9)
    assert found.on_node_latency_s == pytest.approx(2e-7)
    assert found.on_node_bytes_per_s == pytest.approx(5e9)
    assert found.source == "fitted to site-x-mpich-123456, campaign 20260101T000000Z"


def test_one_node_is_no_network():
    on = LogGP([protocol(1, 1.2e-6, 2e-10)], scale=0.01)
    with pytest.raises(ModelError, match="no parameters for messages between nodes"):
        as_network(model(on_node=on))


def test_a_kept_network_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    generic = networks.network("generic")
    with pytest.raises(NetworkError, match="'generic' cannot name a network"):
        networks.keep("generic", generic)
    networks.keep("mysite", generic)
    assert machine("torus-8x8x4-mysite").network == generic
    listed = json.loads(succeed("network", "list", "--json"))
    assert listed["mysite"] == msgspec.to_builtins(generic)
    (tmp_path / "networks" / "mysite.json").write_text('{"source": "x"}')
    with pytest.raises(NetworkError, match=r"mysite.json: not a network: Object missing required"):
        machine("torus-8x8x4-mysite")


NETWORK = msgspec.json.encode(networks.network("bluewaters")).decode()
DAMAGED = [
    *("", "[]", "null", "\0", NETWORK[:-20], NETWORK[20:]),
    '{"x":' * 100_000,
    NETWORK.replace('"protocols":[', '"protocols":[{"from_bytes":' + "[" * 100_000),
    NETWORK.replace('"from_bytes":0', '"from_bytes":600'),
    NETWORK.replace('"from_bytes":8193', '"from_bytes":513'),
    NETWORK.replace(
        '"latency_s":' + NETWORK.split('"latency_s":')[1].split(",")[0], '"latency_s":0', 1
    ),
]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_network_is_one_line(content, tmp_path, monkeypatch):
    assert content != NETWORK
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    path = tmp_path / "networks" / "mysite.json"
    path.parent.mkdir()
    path.write_text(content)
    said = fail("network", "list")
    assert said.startswith(f"Error: {path}: not a network: ")
    assert said.endswith("delete it, and make it again with `switchpoint network create`")
