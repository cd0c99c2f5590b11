"""The page Choose: the method of a case, and the lines that start an application with it."""

import math
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard import pages, starting
from tests import raw
from tests.dashboard.frames import drawn, said
from tests.synthetic import Campaign, exchange_times, of_bcast, tuned_store, write


@pytest.mark.parametrize(("size", "method"), [(64, "stfw:dims=2"), (1048576, "direct")])
def test_choose_names_the_method_of_the_table(database: Path, size: int, method: str) -> None:
    _, parts = drawn(pages.choose.PAGE, database, f"?o=exchange&r=1x2&b={size}&d=6")
    text = said(parts["answer"])
    assert method in text
    assert ("faster than direct" in text) == (method != "direct")
    assert "SWITCHPOINT_TABLE" in said(parts["switch"])


@pytest.mark.parametrize("size", [1, 2**26])
def test_choose_marks_the_selected_size_whatever_it_is(database: Path, size: int) -> None:
    _, parts = drawn(pages.choose.PAGE, database, f"?o=exchange&b={size}")
    layout = parts["ribbon"]["layout"]
    low, high = layout["xaxis"]["range"]
    assert layout["shapes"][-1]["x0"] == size
    assert low < math.log10(size) < high


def test_choose_preloads_for_collectives(database: Path) -> None:
    _, parts = drawn(pages.choose.PAGE, database, "?o=bcast&b=64")
    assert "binomial" in said(parts["answer"])
    assert "LD_PRELOAD" in said(parts["switch"])


def test_choose_says_what_promise_the_preload_needs(tmp_path: Path) -> None:
    write(tmp_path, replace(of_bcast(Campaign(sizes=(8,))), operation="alltoallv"))
    path = tuned_store(tmp_path)
    text = said(drawn(pages.choose.PAGE, path, "?o=alltoallv")[1]["switch"])
    assert "swp_fixed_counts=true" in text and "needs no change" not in text


def test_choose_asks_for_no_size_where_there_are_no_data(tmp_path: Path) -> None:
    write(tmp_path, replace(of_bcast(Campaign(sizes=(1,))), operation="barrier"))
    path = tuned_store(tmp_path)
    choice, parts = drawn(pages.choose.PAGE, path, "?o=barrier")
    assert choice.options["size"] == [("1", "no data")]
    assert "not measured" not in said(parts["answer"])


def test_choose_starts_applications_as_the_system_does(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "lib" / "libswitchpoint_pmpi.so"
    library.parent.mkdir()
    library.touch()
    for name in ("srun", "mpiexec.mpich"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path))
    system = drawn(pages.choose.PAGE, database)[0].system | {"environment": "mpich"}
    assert starting.preload(system) == (library, "")
    program = f"env LD_PRELOAD={library} ./app"
    assert starting.command(system, 4, 4, library) == f"mpiexec.mpich -n 4 {program}"
    site = system | {"name": "cluster:batch"}
    assert starting.command(site, 4, 2, library) == f"srun -n 4 --ntasks-per-node=2 {program}"
    nodes = system | {"name": "virtual-nodes:tcp"}
    begun = "switchpoint nodes exec --environment mpich -n 4 --ppn 2"
    assert starting.command(nodes, 4, 2, library) == f"{begun} {program}"
    assert starting.command(nodes, 4, 2, None) == f"{begun} ./app"
    hostile = starting.command(nodes | {"environment": "a; $(b)"}, 4, 2, None)
    assert hostile == f"{begun} ./app".replace("mpich", "'a; $(b)'")
    spaced = starting.command(nodes, 4, 2, Path("/my work/lib") / library.name)
    assert re.search(rf"LD_PRELOAD={library.name} 'LD_LIBRARY_PATH=/my work/lib[:']", spaced)
    for launcher, begun in (
        ("srun", "srun -n 4 --ntasks-per-node=4"),
        ("mpirun", "mpirun -n 4"),
        ("a; b", "mpiexec.mpich -n 4"),
    ):
        assert starting.command(system, 4, 4, None, launcher) == f"{begun} ./app"
    system |= {"mpi_library": "Open MPI v4.1.4", "cores": 2}
    options = ["--oversubscribe", *["--allow-run-as-root"] * (os.geteuid() == 0)]
    options += ["-x", "SWITCHPOINT_TABLE"]
    begun = f"mpirun {' '.join(options)} -n 4 ./app"
    assert starting.command(system, 4, 4, None, "mpirun") == begun


def test_choose_preloads_the_library_of_the_systems_own_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "build_root", lambda: tmp_path)
    libraries = {}
    for name in ("local-cpu-mpich", "cluster-batch-mpich", "local-cpu-openmpi"):
        libraries[name] = tmp_path / "install" / name / "lib" / "libswitchpoint_pmpi.so"
        libraries[name].parent.mkdir(parents=True)
        libraries[name].touch()
    system = {"name": "cluster:batch", "environment": "mpich", "mpi_library": "MPICH 4.0.2, b"}
    assert starting.preload(system) == (libraries["cluster-batch-mpich"], "")
    on_nodes = system | {"name": "local:cpu+block"}
    assert starting.preload(on_nodes) == (libraries["local-cpu-mpich"], "")
    for other in (
        starting.preload(system, is_last=False),
        starting.preload(system | {"name": "b:c"}),
    ):
        assert other.library == Path("PREFIX/lib/libswitchpoint_pmpi.so")
        assert other.prefix.startswith("where Switchpoint is installed for MPICH 4.0.2; here, ")
        assert "cluster-batch-mpich, local-cpu-mpich may be" in other.prefix
    none = starting.preload(system | {"environment": "intelmpi"})
    assert none.prefix == "where Switchpoint is installed for MPICH 4.0.2"
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path / "none"))
    assert starting.preload(system).prefix


def test_choose_says_which_size_stands_for_one_that_was_not_measured(database: Path) -> None:
    _, parts = drawn(pages.choose.PAGE, database, "?o=bcast&b=64")
    assert "not measured: 32 B stands for it" in said(parts["answer"])
    _, parts = drawn(pages.choose.PAGE, database, "?o=bcast&b=128")
    assert "stands for it" not in said(parts["answer"])


def test_choose_says_where_rules_end(tmp_path: Path) -> None:
    write(tmp_path, Campaign(sizes=(8, 64), procs=(2,)))
    database = tuned_store(tmp_path)
    for size, said_of_it in (
        (128, "stfw:dims=2"),
        (256, "No rule applies to messages above 128 B. So direct is used, or"),
    ):
        _, parts = drawn(pages.choose.PAGE, database, f"?o=exchange&r=1x2&d=6&b={size}")
        assert said_of_it in said(parts["answer"])


def test_choose_says_where_rules_end_that_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table that is downloaded has the others, too, but they do not apply."""

    def times(method: str, size: int) -> float:
        return 1e-6 if (method, size) == ("neighbor", 512) else exchange_times(method, size)

    write(tmp_path, Campaign(sizes=(8, 64, 512), procs=(2,), times=times))
    database = tuned_store(tmp_path)
    for listed, said_of_it in (
        ("", "neighbor"),
        ("neighbor", "to messages above 181 B. So direct"),
    ):
        monkeypatch.setenv("SWITCHPOINT_OFF", listed)
        _, parts = drawn(pages.choose.PAGE, database, "?o=exchange&r=1x2&d=6&b=512")
        assert said_of_it in said(parts["answer"])


def test_choose_calls_no_degree_measured_whose_mean_was_less(database: Path) -> None:
    """All ranks of the case send to 15 others, and only hubs did."""
    for link, said_of_it in (
        ("r=1x2&b=512&d=15", "not measured: 512 B, degree 15, mean degree 4.25 stands for it"),
        ("r=1x2&b=512&d=6", "not measured: 512 B, degree 6, mean degree 5.5 stands for it"),
    ):
        _, parts = drawn(pages.choose.PAGE, database, f"?o=exchange&{link}")
        assert said_of_it in said(parts["answer"])


def test_choose_shows_the_evidence_of_the_class_of_its_degrees(tmp_path: Path) -> None:
    """Hubs, too, have one process that sends to all three others."""
    patterns = (("hub:hubs=2,seed=1", 3, 2.5), ("random:degree=6,seed=1", 3, 3.0))
    write(tmp_path, Campaign(patterns=patterns, procs=(4,), cores=8))
    choice, _ = drawn(pages.choose.PAGE, tuned_store(tmp_path), "?o=exchange&r=1x4&b=64&d=3")
    assert choice.point is not None
    assert choice.point.case.pattern == "random:degree=6,seed=1"


def test_choose_starts_as_many_processes_as_were_measured(tmp_path: Path) -> None:
    for path in write(tmp_path, Campaign(procs=(7,), cores=8)):
        raw.change(path, lambda it: it.update(nodes=2, ppn=4) if "nodes" in it else None)
    _, parts = drawn(pages.choose.PAGE, tuned_store(tmp_path), "?o=exchange&b=64")
    assert "-n 7" in said(parts["switch"])
