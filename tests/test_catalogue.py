"""Bundles, the catalogue that keeps them, and what a system borrows."""

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import synthetic, test_soaks
from tests.decisions import PROVENANCE, on, point
from tuner.campaign.order import FIXED, FixedOrder
from tuner.campaign.reframe import Call
from tuner.catalogue import borrowing
from tuner.catalogue.borrowing import (
    Borrower,
    BorrowingError,
    _of_bundle,
    borrowed,
    by_distance,
    like,
    of_nearest,
    order,
)
from tuner.catalogue.bundle import Bundle, BundleError, pack, read, unpack, without_hosts, write
from tuner.cli import main
from tuner.domain.cases import NodeCores
from tuner.domain.tables import Point, Ratio, Soaked, SoakedAt, Table
from tuner.export.forms import export
from tuner.machine.simulation.machines import machine
from tuner.models.networks import as_model
from tuner.rawfile.ingest import ingest
from tuner.selection.match import covers
from tuner.selection.rules import compile_rules
from tuner.selection.tuning import tune
from tuner.store.store import Store


def bcast(method: str, size: int, ppn: int, over: bool = False, status: str = "faster") -> Point:
    return on(point(method, size, (0, 0.0), status, operation="bcast"), 1, ppn, over)


POINTS = [
    bcast("binomial", 8, 4),
    bcast("vendor:algorithm=chain", 1024, 4),
    bcast("binomial", 8, 8),
    bcast("vendor", 1024, 8, status="open"),
    bcast("star", 8, 16, over=True),
]
SAME = Borrower("this machine", "openmpi", "4.1.4", NodeCores(8))
SOAKED = Soaked("bcast", "binomial", 11000, "", [SoakedAt(1, 4, 8, 11000)])


def lender(library: str = "Open MPI v4.1.4, package", cores: int = 8, name: str = "a") -> Bundle:
    provenance = replace(PROVENANCE, system=name, mpi_library=library, cores=cores, soaks=[SOAKED])
    return Bundle(provenance, POINTS, None)


def packed(bundle: Bundle) -> bytes:
    return pack(Table(bundle.provenance, [], bundle.points), bundle.model)


def test_a_bundle_comes_back_as_it_was() -> None:
    its = lender()._replace(model=as_model(machine("torus-4x4x2")))
    assert unpack(packed(its)) == its
    assert packed(its) == packed(its)


def changed(edit: Callable[[str], str], digest: bool = True) -> bytes:
    """Return a bundle whose content was edited, with the digest made anew or not."""
    head, _, content = gzip.decompress(packed(lender())).partition(b"\n")
    header, edited = json.loads(head), edit(content.decode()).encode()
    assert edited != content
    if digest:
        header["sha256"] = hashlib.sha256(edited).hexdigest()
    return gzip.compress(json.dumps(header).encode() + b"\n" + edited)


def crossed(*places: tuple[int, int]) -> bytes:
    """Return a bundle of layouts, all crowded."""
    points = [on(bcast("star", 8, 2), nodes, ppn, over=True) for nodes, ppn in places]
    return packed(lender()._replace(points=points))


def test_a_bundle_from_before_arrivals_were_distinguished_is_read() -> None:
    assert '"staggered": false' in gzip.decompress(packed(lender())).decode()
    older = changed(lambda it: it.replace('"staggered": false, ', ""))
    assert unpack(older).points == unpack(packed(lender())).points


def test_a_bundle_without_errors_of_ratios_is_read() -> None:
    older = unpack(changed(lambda it: it.replace(', "error": 0.05', ""))).points
    assert older == [
        its._replace(ratios=tuple(ratio._replace(error=None) for ratio in its.ratios))
        for its in POINTS
    ]


BROKEN = {
    "its content does not have its digest": changed(lambda it: it.replace("star", "ring"), False),
    "truncated": packed(lender())[:-9],
    "something follows its end": packed(lender()) + b"more",
    "a bundle of version 2; this reads version 1": gzip.compress(
        b'{"format":"switchpoint-bundle","version":2,"sha256":""}\n'
    ),
    "larger than 8 MiB": bytes((1 << 23) + 1),
    "larger than 32 MiB once unpacked": gzip.compress(bytes(1 << 26)),
    "more than 2097152 values": changed(
        lambda it: it.replace('"points": [', '"points": [' + (1 << 20) * "{},")
    ),
    "the first line is not a bundle header": gzip.compress(b"{}\n"),
    "`switchpoint bundle` writes them": b"switchpoint-table 1\n",
    r"control characters: \x1b[2Jgcc": changed(lambda it: it.replace("gcc", r"\u001b[2Jgcc")),
    "not a table": changed(lambda it: it[:-9]),
    "not a table: ": changed(lambda it: "[" * 99999 + it),
    "the system has no name": changed(lambda it: it.replace('"system": "a"', '"system": "../a"')),
    "not a table: not an ISO 8601 date: 9999": changed(
        lambda it: it.replace('"date": "2026-11-21T03:45:00Z"', '"date": "9999"')
    ),
    "the shares of disturbed parts": changed(
        lambda it: it.replace('"refused": {}', '"refused": {"moon": 0.5}')
    ),
    "parts are unknown or out of range": changed(
        lambda it: it.replace('"noisy": 0.0', '"noisy": 1.5')
    ),
    "Number out of range": changed(lambda it: it.replace('"noisy": 0.0', f'"noisy": {10**400}')),
    "point 1: a value is out of its range": changed(lambda it: it.replace("binomial", "x y")),
    "point 1: a value is out": changed(lambda it: it.replace('"level": 0.95', '"level": 1e-300')),
    "point 1: a value is": changed(lambda it: it.replace('"error": 0.05', '"error": -0.05')),
    "point 1: a value": changed(lambda it: it.replace('"error": 0.05', '"error": 21')),
    "point 5: a value is out": changed(lambda it: it.replace('"procs": 16', '"procs": 1')),
    "point 1: Expected `int": changed(lambda it: it.replace('"mmax": 0', '"mmax": "0"')),
    "point 2: a value is out of its": changed(
        lambda it: it.replace("vendor:algorithm=chain", "vendor")  # the default wins nowhere
    ),
    "point 2: a value is out": crossed((2, 1), (1 << 30, 1)),
    "point 4: a value is out": changed(  # settled, but not by the default
        lambda it: it.replace('"status": "open"', '"status": "equal"').replace(
            '"method": "vendor"', '"method": "ring"'
        )
    ),
    "it decides twice on a size": packed(lender()._replace(points=[*POINTS, POINTS[0]])),
    "a number of launches or executions": changed(
        lambda it: it.replace('"executions": 11000', f'"executions": {10**20}')
    ),
    "infers rules of other layouts from more than 134217728 values": packed(
        lender()._replace(
            points=[
                on(bcast(f"star{nodes}", size, 2), nodes, ppn, over=True)
                for nodes, ppn in [*product(range(2, 65), [9]), (65, 4095)]
                for size in range(8, 32)
            ]
        )
    ),
    "has more than 2048 decisions of an operation on a layout": packed(
        lender()._replace(points=[bcast("star", size, 4) for size in range(2049)])
    ),
    "point 1: a value is out of": crossed((2, 1 << 20)),
    "has more than 64 layouts": crossed(*((2, 2 + n) for n in range(65))),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_bundle_gives_one_line(message: str) -> None:
    with pytest.raises(BundleError) as error:
        unpack(BROKEN[message])
    assert message in str(error.value)
    assert str(error.value).isprintable()


NO_POINTS = {
    "bytes of sixteen digits": bcast("star", 10**15, 4),
    "a degree of sixteen digits": point("nap", 8, (10**15, 1.0)),
    "a collective with a degree": bcast("star", 8, 4)._replace(mmax=3),
    "a collective with a mean degree": bcast("star", 8, 4)._replace(mavg=1.5),
    "the library's own choice": bcast("auto", 8, 4),
    "an algorithm of PICO's": bcast("pico:ring", 8, 4),
    "a method twice": bcast("star", 8, 4)._replace(ratios=2 * (Ratio("star", 0.5),)),
    "more methods than any library has": bcast("star", 8, 4)._replace(
        ratios=tuple(Ratio(f"star{number}", 0.5) for number in range(257))
    ),
}


@pytest.mark.parametrize("what", NO_POINTS)
def test_what_no_method_table_can_hold_is_refused(what: str) -> None:
    its = packed(lender()._replace(points=[NO_POINTS[what]]))
    with pytest.raises(BundleError, match="point 1: a value is out of its range"):
        unpack(its)


def test_a_small_bundle_of_large_layouts_is_read_at_once() -> None:
    """Nodes that share their cores would have rules for each of thousands of numbers of nodes."""
    its = unpack(crossed((2, 2), (4095, 2), (1 << 18, 4095)))
    assert len(compile_rules(its.points, NodeCores(its.provenance.cores))) < 200


def test_a_bundle_of_layouts_that_share_no_numbers_is_read() -> None:
    """A campaign measures full nodes and, one at a time, what promises most between them."""
    full = [(1, 64), *((1 << power, 128) for power in range(6))]
    between = [(3, 128), (1, 91), (2, 76), (6, 128), (12, 100), (24, 45), (5, 19)]
    assert len(unpack(crossed(*full, *between)).points) == len(full) + len(between)


def test_what_nothing_could_read_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.bundle"
    points = [bcast("star", 8, 2 + n) for n in range(65)]
    with pytest.raises(BundleError, match=f"{path} was not written, .* more than 64 layouts"):
        write(path, Table(lender().provenance, [], points), None)
    assert list(tmp_path.iterdir()) == []
    assert write(path, Table(lender().provenance, [], POINTS), None) == path.stat().st_size
    assert read(path) == lender()


def test_settled_rules_are_borrowed_and_marked() -> None:
    table = borrowed(lender(), SAME)
    rules = [line for line in export(table, "table").splitlines() if line.startswith("rule")]
    assert [rule.split(" evidence=")[0] for rule in rules] == [
        "rule op=bcast nodes=1 ppn=4 bytes=0:90 method=binomial",
        "rule op=bcast nodes=1 ppn=4 bytes=91:* method=vendor:algorithm=chain",
        "rule op=bcast nodes=1 ppn=5:7 bytes=0:90 method=binomial",
        "rule op=bcast nodes=1 ppn=8 bytes=0:90 method=binomial",
        "rule op=bcast nodes=1 ppn=9:15 bytes=0:16 method=star",
        "rule op=bcast nodes=1 ppn=16 bytes=0:16 method=star",
    ]
    assert all(' evidence="borrowed from a, ' in rule for rule in rules)
    assert "borrowed from a, inferred from 1 x 4, faster" in rules[2]
    assert "soaked 11000 times" in rules[0]
    assert "soaks carry over" in export(table, "table")
    assert export(table, "header").count("borrowed from a, ") == len(rules)
    assert all(rule["borrowed"] for rule in json.loads(export(table, "json"))["rules"])


def test_what_is_filled_is_not_borrowed() -> None:
    filled = bcast("binomial", 65536, 4, status="open")._replace(filled=True)
    lent = lender()._replace(points=[POINTS[0], filled])
    table = borrowed(lent, SAME)
    (rule,) = table.rules
    assert (rule.method, covers(rule, filled)) == ("binomial", False)
    assert [its.method for its in table.points] == ["binomial", "vendor"]


def test_settled_choices_of_the_default_are_borrowed_beside_open_ones() -> None:
    settled = [bcast("vendor", size, 4, status="default") for size in (64, 512, 4096)]
    points = [bcast("vendor", 8, 4, status="open"), *settled, bcast("binomial", 65536, 4)]
    lent = lender()._replace(points=points)
    assert [
        (rule.bytes_low, rule.bytes_high, rule.method) for rule in borrowed(lent, SAME).rules
    ] == [(23, 16384, "vendor"), (16385, 131072, "binomial")]


def test_settled_degrees_are_borrowed_beside_open_ones() -> None:
    points = [
        point("direct", 8, (mmax, mavg), "default" if (mmax, mavg) == (9, 8.0) else "open")
        for mmax, mavg in ((2, 2.0), (9, 2.0), (9, 8.0))
    ]
    lent = lender()._replace(points=points)
    (rule,) = borrowed(lent, SAME).rules
    assert (rule.mmax_low, rule.mmax_high, rule.mavg_low, rule.mavg_high) == (5, None, 4.0, None)


def test_settled_choices_are_inferred_beside_open_ones() -> None:
    """The nearest layout is 3 nodes from 5 to 7, and else one of the open powers of two."""
    points = [
        on(point("vendor", 8, (0, 0.0), status, operation="bcast"), nodes, 1)
        for nodes, status in ((2, "open"), (3, "default"), (16, "open"))
    ]
    lent = lender()._replace(points=points)
    rules = borrowed(lent, SAME).rules
    assert [(rule.nodes_low, rule.nodes_high) for rule in rules] == [(3, 3), (5, 7)]


def test_what_failed_a_soak_of_the_borrower_is_not_borrowed(tmp_path: Path) -> None:
    database = tmp_path / "s.db"
    ingest(database, [test_soaks.write(tmp_path, test_soaks.failed("star", operation="bcast"))])
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        here = borrowing.of_store(store, system)
    assert here.failed == {("bcast", "star")}
    lent, left = (
        {rule.method for rule in borrowed(lender(), its).rules}
        for its in (SAME, SAME._replace(failed=here.failed))
    )
    assert lent - left == {"star"}


def test_what_differs_is_not_borrowed() -> None:
    table = borrowed(lender(), Borrower("this machine", "mpich", "4.0.2", NodeCores(16)))
    assert {rule.method for rule in table.rules} == {"binomial"}
    assert {rule.ppn_high for rule in table.rules} == {4, 7, 8}  # 16 had no cores there
    assert "soaks do not carry over" in export(table, "table")
    assert "soaked 11000 times" not in export(table, "table")
    small = Borrower("this machine", "mpich", "4.0.2", NodeCores(2))
    assert [rule.method for rule in borrowed(lender(), small).rules] == ["star"]
    opened = [its._replace(status="open") for its in POINTS]
    with pytest.raises(BorrowingError, match="no settled rule"):
        borrowed(lender()._replace(points=opened), small)


def test_clusters_and_virtual_nodes_borrow_layouts_alone_that_both_have_cores_for() -> None:
    """Of 8 cores: on each of the cluster's nodes, and of all virtual nodes together."""
    places = (1, 4), (2, 4), (4, 4), (1, 16), (2, 16)

    def of(is_over: Callable[[int, int], bool]) -> Bundle:
        points = [
            on(bcast("star" if ppn == 16 else "binomial", 8, 4), nodes, ppn, is_over(nodes, ppn))
            for nodes, ppn in places
        ]
        return lender()._replace(points=points)

    cluster, virtual = of(lambda _, ppn: ppn > 8), of(lambda nodes, ppn: nodes * ppn > 8)
    nodes = SAME._replace(cores=NodeCores(8, shared=True))
    common = {(1, 4), (2, 4), (1, 16), (2, 16)}
    for its, here, lent in (
        *((cluster, SAME, {*places}), (virtual, nodes, {*places})),
        *((cluster, nodes, common), (virtual, SAME, common)),
    ):
        layouts = {point.case.layout for point in like(its, here)}
        assert {(layout.nodes, layout.ppn) for layout in layouts} == lent
    rules = [rule for rule in borrowed(cluster, nodes).rules if rule.nodes_low == 2]
    assert [(rule.ppn_low, rule.ppn_high, rule.method) for rule in rules] == [
        *((4, 4, "binomial"), (5, 15, "star"), (16, 16, "star"))  # from 5 on too few cores
    ]


@pytest.mark.parametrize(
    ("name", "measured_as", "shares"),
    [
        *(("virtual-nodes:tcp-1gbit", "", True), ("lab", "virtual-nodes:tcp-1gbit", True)),
        *(("lab+block", "local:cpu", True), ("lab", "local:cpu", False), ("sample", "", False)),
    ],
)
def test_virtual_nodes_of_the_store_share_cores(
    name: str, measured_as: str, shares: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    call = Call(Path("nodes.py"), [], {"system_name": "lab"})
    its = FixedOrder("a", call, 1.0, 6, "", [measured_as])
    FIXED.save(its, FIXED.path_of("a"))
    measured = synthetic.Campaign(system=name, samples=20, procs=(2,))
    ingest(tmp_path / "s.db", synthetic.write(tmp_path, measured))
    with Store.open(tmp_path / "s.db") as store:
        (system,) = store.systems()["system"]
        assert borrowing.of_store(store, system).cores.shared == shares


def test_the_same_system_library_and_version_count_before_cores_and_network() -> None:
    here = Borrower("b", "openmpi", "4.1.4", NodeCores(8), as_model(machine("torus-4x4x2")))
    same = lender(name="same")
    shelf = [
        *(lender(name="b"), lender("MPICH Version: 4.0.2", name="other library")),
        *(lender("Open MPI v5.0.1", name="other version"), lender(cores=64, name="large"), same),
        lender(name="same network")._replace(model=here.model),
    ]
    assert [its.provenance.system for its in by_distance(here, shelf)] == [
        *("b", "same network", "same", "large", "other version", "other library")
    ]
    with pytest.raises(BorrowingError, match="the catalogue has no table for b"):
        of_nearest(here, [])


def test_a_system_with_nothing_to_lend_does_not_hide_a_farther_one() -> None:
    opened = [its._replace(status="open") for its in POINTS]
    near = lender()._replace(points=opened)
    far = lender("Open MPI v5.0.1", name="far")
    assert of_nearest(SAME, [far, near]).provenance.system == "far"
    assert of_nearest(SAME, [far, lender()]).provenance.system == "a"
    with pytest.raises(BorrowingError, match="no settled rule of a "):
        of_nearest(SAME, [near, far._replace(points=opened)])


def test_a_lender_is_no_farther_for_a_network_that_the_borrower_does_not_know() -> None:
    known = lender(name="as many cores")._replace(model=as_model(machine("torus-4x4x2")))
    assert by_distance(SAME, [lender(cores=15, name="more cores"), known])[0] == known


def test_cores_that_pico_did_not_record_make_a_lender_no_farther() -> None:
    its = lender(cores=1, name="pico")
    theirs = its._replace(provenance=replace(its.provenance, name="pico:machine"))
    assert by_distance(SAME, [lender(cores=15, name="fewer cores"), theirs])[0] == theirs
    assert like(theirs, SAME._replace(cores=NodeCores(4))) == theirs.points


def test_unknown_libraries_are_not_taken_for_each_other() -> None:
    lent = lender("CRAY MPICH version 8.1.28")
    other, same = (
        borrowed(lent, _of_bundle(lender(library, name="b")))
        for library in ("MVAPICH2 Version: 2.3", "CRAY MPICH version 8.1.28")
    )
    assert {rule.method for rule in other.rules} < {rule.method for rule in same.rules}
    assert (other.provenance.soaks, same.provenance.soaks) == ([], [SOAKED])


def test_what_a_simulated_machine_lends_is_not_soaked() -> None:
    lent = lender("SMPI", name="simulated-torus-mpich-1f00ba")
    table = borrowed(lent, SAME)
    assert "not soaked" in export(table, "table")


@pytest.mark.parametrize("host", ["myserver", "my_server", "myserver.site.org"])
@pytest.mark.parametrize("name", ["{}:cpu", "{}", "local:{}"])
def test_a_bundle_has_no_host_name(host: str, name: str, tmp_path: Path) -> None:
    database, short = tmp_path / "s.db", host.partition(".")[0]
    measured = synthetic.Campaign(
        system=name.format(short.title()),
        environment=f"{short}-gnu",
        name=f"night_{short}-2",
        mpi_library=f"MPICH Version: 5.0.2, of {host}",
        host=host,
        samples=20,
        procs=(2,),
    )
    ingest(database, synthetic.write(tmp_path, measured))
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        fitted = as_model(machine("torus-4x4x2"))
        model = replace(fitted, system=system, campaign=measured.name)
        tuned = tune(store, system, required_executions=0)
        table, model = without_hosts(store, tuned, model)
    assert table.rules
    assert {rule.evidence.campaign for rule in table.rules} == {"night_host-2"}
    assert b"server" not in gzip.decompress(pack(table, model)).lower()


def test_methods_are_ordered_by_what_they_add() -> None:
    def of(size: int, **ratios: float) -> Point:
        known = tuple(Ratio(name, ratio) for name, ratio in ratios.items())
        return bcast("vendor", size, 4)._replace(ratios=known)

    points = [of(8, star=0.5, ring=0.55, chain=1.2), of(1024, star=1.5, ring=1.6, chain=0.8)]
    methods = ["vendor", "new", "ring", "chain", "star"]
    assert order(methods, "bcast", points) == ["star", "chain", "vendor", "new", "ring"]
    assert order(methods, "gather", points) == methods


def test_a_directory_without_bundles_is_an_error(tmp_path: Path) -> None:
    store = ["--database", str(tmp_path / "s.db")]
    added = CliRunner().invoke(main, ["catalogue", "add", str(tmp_path), *store])
    assert (added.exit_code, added.stdout) == (1, "")
    assert added.stderr == f"Error: {tmp_path}: no *.bundle; `switchpoint bundle` writes them\n"


@pytest.mark.parametrize(("system", "named"), [("local:cpu", "local"), ("node0:cpu", "host")])
def test_one_machine_measures_and_another_borrows(
    system: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner, store = CliRunner(), ["--database", str(tmp_path / "s.db")]

    def call(*words: str) -> str:
        done = runner.invoke(main, [*words, *store])
        assert done.exit_code == 0, done.output
        return done.output

    built = "Open MPI v4.1.4, package: Open MPI root@node0.site Distribution"
    measured = synthetic.Campaign(system=system, mpi_library=built, samples=20, procs=(2,))
    synthetic.write(tmp_path, measured)
    call("ingest", str(tmp_path))
    call("tune", "--require-soak=0")
    call("bundle", "--output=lent.bundle")
    assert b"node0" not in gzip.decompress(Path("lent.bundle").read_bytes())
    Path("broken.bundle").write_bytes(BROKEN["truncated"])
    store = ["--database", str(tmp_path / "other" / "s.db")]
    added = runner.invoke(main, ["catalogue", "add", ".", *store])
    assert (added.exit_code, added.stderr) == (
        1,
        "Error: broken.bundle: truncated: copy it again\n",
    )
    assert f"other/catalogue: {named}-cpu-mpich-" in added.stdout
    assert "Open MPI v4.1.4" in call("catalogue", "list")
    (kept,) = json.loads(call("catalogue", "list", "--json"))
    here = Borrower("here", "mpich", "4.0.2", NodeCores(4))
    monkeypatch.setattr("tuner.catalogue.borrowing.this_machine", lambda _: here)
    assert f'evidence="borrowed from {kept["system"]}, faster: stfw:dims=2' in call(
        "export", "--borrow"
    )
    assert "`switchpoint check table borrowed.table`" in call(
        "export", "--borrow", "--output=borrowed.table"
    )
    refused = runner.invoke(main, ["export", "--borrow", "--format=openmpi", *store])
    assert (refused.exit_code, "cannot mark rules" in refused.stderr) == (1, True)
    shelf = tmp_path / "other" / "catalogue"
    (shelf / "damaged.bundle").write_bytes(BROKEN["truncated"])
    listed = runner.invoke(main, ["catalogue", "list", "--json", *store])
    assert json.loads(listed.stdout) == [kept]
    assert listed.stderr == f"warning: passed over: {shelf}/damaged.bundle: truncated: " + (
        "copy it again\n"
    )
    (shelf / f"{kept['system']}.bundle").write_bytes(BROKEN["truncated"])
    call("catalogue", "add", "lent.bundle")
    (shelf / "damaged.bundle").unlink()
    assert json.loads(call("catalogue", "list", "--json")) == [kept]
    older = replace(unpack(Path("lent.bundle").read_bytes()).provenance, date="2020-01-01")
    Path("lent.bundle").write_bytes(packed(lender()._replace(provenance=older)))
    again = runner.invoke(main, ["catalogue", "add", "lent.bundle", *store])
    assert (again.exit_code, "older than what is kept" in again.stderr) == (1, True)
