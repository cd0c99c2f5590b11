"""The command `switchpoint`, as users call it."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests import synthetic
from tests.cli import call, commands, fail, succeed
from tests.conftest import Require
from tests.kernels.conftest import build_kernels
from tuner import __version__
from tuner.campaign.plans import Budget
from tuner.cli import main
from tuner.commands.naming import RENAMED, SECTIONS
from tuner.commands.options import PARTITIONS
from tuner.commands.show_plan import BUDGET
from tuner.export import verify
from tuner.export.verify import VerifyError, find_swpbench
from tuner.inputs.matrices.partitioners import PARTITIONERS
from tuner.machine import systems
from tuner.machine.mpi import Mpi, find_mpis
from tuner.paths import CHECKOUT

REFERENCE = (Path(__file__).parent.parent / "docs" / "reference" / "cli.md").read_text()


@pytest.mark.parametrize(("name", "command"), commands(main).items())
def test_the_reference_describes_every_command_and_option(
    name: str, command: click.Command
) -> None:
    assert f"\n## `switchpoint {name}" in REFERENCE
    section = REFERENCE.split(f"\n## `switchpoint {name}")[1].split("\n## ")[0]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in section, f"{name} {parameter.opts[0]}"
            assert parameter.help


def test_numbers_are_bounded() -> None:
    """Those that nothing could hold are wrong, and no overflow of some library."""
    kinds = [each.type for command in commands(main).values() for each in command.params]
    ranges = [kind for kind in kinds if isinstance(kind, click.IntRange | click.FloatRange)]
    assert len(ranges) > 20
    assert all(kind.max is not None for kind in ranges)


def test_the_reference_describes_no_other_command() -> None:
    headings = re.findall(r"^## `switchpoint ([a-z -]*[a-z])", REFERENCE, re.MULTILINE)
    assert sorted(headings) == sorted(commands(main))


def test_the_help_has_every_command_in_one_section() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(main.commands)
    text = succeed("--help")
    assert [text.index(f"\n{section}:") for section in SECTIONS] == sorted(
        text.index(f"\n{section}:") for section in SECTIONS
    )


def test_help_is_whole_and_fits_a_terminal_of_80_columns() -> None:
    whole = [*commands(main)]
    groups = {name.rpartition(" ")[0] for name in whole}  # "" is the first
    for name in [*whole, *groups]:
        lines = succeed(*name.split(), "--help").splitlines()
        assert max(map(len, lines)) <= 80, name
        if name in groups:
            listed = lines[lines.index("Commands:" if name else "Measure:") :]
            assert not any(line.endswith("...") for line in listed), name


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_earlier_name_warns_and_does_the_same(old: str, new: str) -> None:
    answer = call(*old.split(), "--help")
    assert answer.stderr == f"warning: `main {old}` is now `main {new}`; 0.2 drops the old name\n"
    options = [line for line in answer.stdout.splitlines() if line.startswith("  -")]
    assert options == [
        line for line in succeed(*new.split(), "--help").splitlines() if line in options
    ]
    assert options


def test_completion_knows_the_commands() -> None:
    words = {"_MAIN_COMPLETE": "bash_complete", "COMP_WORDS": "main sho", "COMP_CWORD": "1"}
    answer = CliRunner().invoke(main, [], prog_name="main", env=words)
    assert answer.stdout == "plain,show\n"
    words |= {"COMP_WORDS": "main show --json m", "COMP_CWORD": "3"}
    assert CliRunner().invoke(main, [], prog_name="main", env=words).stdout == "plain,models\n"


def test_version() -> None:
    assert succeed("--version") == f"switchpoint, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (["--version"], {"numpy", "pandas", "scipy"}),
        (["ingest", "--database", "a.db"], {"pandas", "scipy"}),
    ],
)
def test_commands_start_without_what_takes_long_to_load(
    arguments: list[str], without: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    code = "import sys, tuner.cli; tuner.cli.main(standalone_mode=False); print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert ended.returncode == 0
    loaded = ended.stdout.split()
    assert "click" in loaded
    assert without.isdisjoint(loaded)


def test_ingest_reports_what_it_did(two_systems: Path) -> None:
    assert "12 launches" in succeed("ingest")
    report: dict[str, Any] = json.loads(succeed("ingest", "--json"))
    assert (report["files"], report["unchanged"], report["launches"]) == (12, 12, 0)
    assert report["database"] == str(two_systems / "switchpoint.db")


def test_the_committed_sample_is_ingested_only_when_it_is_named(two_systems: Path) -> None:
    sample = two_systems / "sample"
    synthetic.write(sample, synthetic.Campaign(system="sample", samples=20))
    assert "12 launches" in succeed("ingest")
    assert "6 launches" in succeed("ingest", sample)
    assert "0 launches" in succeed("ingest")


def test_ingest_reports_what_it_cannot_use(two_systems: Path) -> None:
    broken = two_systems / "broken.jsonl"
    broken.write_text("{\n")
    result = call("ingest")
    assert result.exit_code == 0
    assert f"warning: {broken}:1: " in result.stderr
    assert "1 problems" in result.stdout


def test_a_budget_is_a_time_or_a_share() -> None:
    assert BUDGET.convert("1.5h", None, None) == Budget(5400)
    assert BUDGET.convert("15%", None, None) == Budget(0, 0.15)
    for wrong in ("0%", "15", "%", "-1m", "1d"):
        with pytest.raises(click.BadParameter, match="not a budget such as"):
            BUDGET.convert(wrong, None, None)


def test_a_table_can_be_restricted_to_campaigns(two_systems: Path) -> None:
    synthetic.write(two_systems, synthetic.Campaign(name="20261122T000000Z", samples=20, seed=2))
    succeed("ingest")
    arguments = ("--system", "local-cpu-mpich", "--json")
    (both,) = json.loads(succeed("tune", *arguments))
    campaign = ("--campaign", "20261122T000000Z")
    (one,) = json.loads(succeed("tune", *arguments, *campaign))
    assert json.loads(succeed("tune", "--json", *campaign)) == [one]  # the other system lacks it
    assert json.loads(succeed("tune", "--json", *campaign, *campaign)) == [one]
    assert both["provenance"]["launches"] == 2 * one["provenance"]["launches"]
    assert "this table omits 6 launches" in succeed("show")
    assert "no campaign other" in fail("tune", *arguments, "--campaign", "other")


@pytest.mark.parametrize("form", ["table", "header", "json"])
def test_a_rebuilt_store_exports_the_same(two_systems: Path, tmp_path: Path, form: str) -> None:
    succeed("ingest")
    succeed("tune")
    arguments = ("export", "--system", "local-cpu-mpich", "--format", form)
    before = succeed(*arguments)
    (two_systems / "switchpoint.db").unlink()
    succeed("ingest")
    assert succeed(*arguments) == before
    succeed(*arguments, "--output", tmp_path / "written")
    assert (tmp_path / "written").read_text() == before


def test_export_asks_which_system(two_systems: Path) -> None:
    succeed("ingest")
    assert "there are several systems; choose one with --system: local-cpu-mpich-" in fail("export")
    assert "2 systems match local" in fail("export", "--system", "local")
    assert "no systems match other" in fail("export", "--system", "other")


@pytest.mark.parametrize("command", ["show", "export", "tune", "serve"])
def test_without_a_store_the_command_that_makes_one_is_named(
    command: str, two_systems: Path
) -> None:
    assert "no store there; make it with `switchpoint run`, or `switchpoint ingest`" in fail(
        command
    )
    assert not (two_systems / "switchpoint.db").exists()


@pytest.mark.parametrize("command", ["ingest", "show", "export", "tune", "serve"])
def test_a_foreign_file_is_no_store(command: str, two_systems: Path, tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("text " * 100)
    assert "not a Switchpoint store" in fail(command, "--database", tmp_path / "other.db")


def test_tune_brings_an_old_store_up_to_date(two_systems: Path) -> None:
    old = Path(__file__).parent / "data" / "store-v1.db"
    shutil.copy(old, two_systems / "switchpoint.db")
    theirs = Path(shutil.copy(old, two_systems / "their store.db"))
    of_theirs = ("--database", theirs)
    assert "older version 1; run `switchpoint tune` to" in fail("show")
    assert f"run `switchpoint tune --database '{theirs}'` to" in fail("show", *of_theirs)
    for options in ((), of_theirs):
        succeed("tune", *options)
        succeed("show", *options)


def test_piped_output_is_not_wrapped(two_systems: Path) -> None:
    succeed("ingest")
    command = [sys.executable, "-m", "tuner.cli", "show"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in shown
    rows = [line for line in shown.splitlines() if line.startswith("exchange")]
    assert len(rows) == 2
    assert all("stfw:dims=2" in row or "direct" in row for row in rows)


def test_doctor_reports_what_is_there() -> None:
    result = call("doctor", "--json")
    parts = {part["name"]: part for part in json.loads(result.stdout)}
    assert parts["python"]["found"]
    absent = [name for name, part in parts.items() if part["required"] and not part["found"]]
    assert result.exit_code == (1 if absent else 0)


def test_without_kernels_the_place_without_them_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path))
    (tmp_path / "x.table").write_text("switchpoint-table 1\n")
    assert "no built swpbench below" in fail("check", "table", tmp_path / "x.table")


def test_a_name_that_is_not_there_is_printed_with_those_that_are(
    two_systems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed("ingest")
    said = fail("compare", "local-cpu-mpich", "nope")
    assert "no campaign or system nope; campaigns: 20261121T034500Z; systems: local-cpu-" in said
    names = ", ".join(mpi.name for mpi in find_mpis())
    said = fail("run", "--dry-run", "--environment", "nope")
    assert said == f"Error: no environment nope; there are: {names}"
    table = two_systems / "a.table"
    table.touch()
    said = fail("study", "applications", f"--table={table}", "--procs=2", "--environment=nope")
    assert said == f"Error: no environment nope here; there are: {names}"
    said = fail("study", "crossover", "a.mtx", "--procs=2", "--environment=nope")
    assert said == f"Error: no environment nope here; there are: {names}"


def test_each_partition_can_be_asked_for() -> None:
    assert tuple(PARTITIONERS) == PARTITIONS


@pytest.mark.parametrize("command", [("soak",), ("check", "choices")])
def test_options_for_jobs_need_jobs_and_select_nothing(
    two_systems: Path, command: tuple[str, ...]
) -> None:
    succeed("ingest")
    succeed("tune")
    system = ("--system", "mpich") if command == ("check", "choices") else ()
    assert "--config names" in call(*command, *system, "--", "-J", "account=a").stderr
    config = two_systems / "a.py"
    config.touch()
    chosen = call(*command, *system, "--config", config, "--", "-n", "exchange")
    assert "select checks" in chosen.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run --anonymous-as=", "--anonymous-as and --resume need a name"),
        ("run --resume=", "--anonymous-as and --resume need a name"),
        (
            "study applications --table=README.md --procs=2 --layout-sizes=12",
            "sizes are multiples of 8, as reductions take",
        ),
        ("nodes exec -n4 --node=vnode1 -- true", "give --node or --procs, not both"),
        ("nodes exec --ppn=2 -- true", "--ppn and --environment need --procs"),
        ("nodes exec --environment=mpich -- true", "--ppn and --environment need --procs"),
    ],
)
def test_options_that_would_be_ignored_are_refused(arguments: str, said: str) -> None:
    answer = call(*arguments.split())
    assert answer.exit_code == 2
    assert said in answer.stderr


def test_a_source_without_a_launch_is_an_error(two_systems: Path, tmp_path: Path) -> None:
    bad, empty = tmp_path / "bad.jsonl", tmp_path / "empty"
    bad.write_text("bad\n")
    empty.mkdir()
    for source in (bad, empty):
        for options in ([], ["--json"]):
            result = call("ingest", two_systems, source, *options)
            assert (result.exit_code, result.stderr.splitlines()[-1]) == (
                1,
                f"Error: no launch in {source}",
            )
            assert result.stdout
    succeed("ingest", two_systems)  # which are present
    succeed("ingest", CHECKOUT / "tests" / "data" / "pico")


def test_the_library_is_that_of_a_campaign_not_of_the_newest_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path))
    simulated = "install/simulated-torus-4x4x2-simgrid/bin"
    for place in ("install/local-cpu-mpich/bin", "sanitized-mpich-4.0.2/bench", simulated):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "swpbench").touch(mode=0o700)
    assert find_swpbench() == tmp_path / "install" / "local-cpu-mpich" / "bin" / "swpbench"
    shutil.rmtree(tmp_path / "install" / "local-cpu-mpich")
    monkeypatch.setenv("PATH", str(tmp_path / "sanitized-mpich-4.0.2" / "bench"))
    with pytest.raises(VerifyError, match="no built swpbench below"):
        find_swpbench()
    monkeypatch.delenv("SWITCHPOINT_KERNELS")
    monkeypatch.setattr(verify, "build_root", lambda: tmp_path)
    assert find_swpbench() == tmp_path / "sanitized-mpich-4.0.2" / "bench" / "swpbench"


def test_virtual_nodes_have_their_own_kernels_or_those_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi = Mpi("mpich", "mpich", "4.0.2", "mpicc", "mpiexec")
    monkeypatch.delenv("SWITCHPOINT_KERNELS", raising=False)
    monkeypatch.setattr(systems, "find_mpis", lambda: [mpi])
    monkeypatch.setattr(systems, "installation_directory", lambda system, _: tmp_path / system)
    for built in (systems.LOCAL, "virtual-nodes:tcp-1gbit"):
        with pytest.raises(systems.KernelsError, match="no built swpbench for mpich"):
            systems.kernels((built, "mpich"))
        (tmp_path / built / "bin").mkdir(parents=True)
        (tmp_path / built / "bin" / "swpbench").touch(mode=0o700)
        assert systems.kernels(("virtual-nodes:tcp-1gbit", "mpich")).root == tmp_path / built
        (tmp_path / built / "bin" / "swpbench").unlink()


def test_a_site_has_its_own_kernels_with_the_mpi_that_they_are_linked_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpich = Mpi("mpich", "mpich", "4.0.2", "mpicc", "mpiexec")
    openmpi = Mpi("openmpi", "openmpi", "4.1.4", "mpicc", "mpiexec")
    monkeypatch.delenv("SWITCHPOINT_KERNELS", raising=False)
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(systems, "find_mpis", lambda: [mpich, openmpi])
    monkeypatch.setattr("tuner.machine.directories.build_root", lambda: tmp_path)
    monkeypatch.setattr(systems, "mpi_of", lambda *_: openmpi)
    site, here = ("big:cpu", "gnu-openmpi"), (systems.LOCAL, "")
    with pytest.raises(systems.KernelsError) as error:
        systems.kernels(site, here)
    place = tmp_path / "install" / "big-cpu-gnu-openmpi"
    assert f"for gnu-openmpi in {place}, {tmp_path}/install/local-cpu-mpich, " in str(error.value)
    assert "run `switchpoint run --config big.py` to build" in str(error.value)
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "swpbench").touch(mode=0o700)
    found = systems.kernels(site, here)
    assert (found.root, found.mpi) == (place, dataclasses.replace(openmpi, name="gnu-openmpi"))
    with pytest.raises(systems.KernelsError, match="no built swpbench"):
        systems.kernels(site, family="mpich")
    with pytest.raises(systems.KernelsError, match=r"nope here; .*: mpich, openmpi"):
        systems.kernels((systems.LOCAL, "nope"))
    assert "environment nope here" in fail("advise", "-n2", "--environment=nope", "--", "true")


def test_advice_is_by_the_kernels_of_the_only_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.setattr("tuner.machine.directories.build_root", lambda: tmp_path)
    monkeypatch.delenv("SWITCHPOINT_KERNELS", raising=False)
    campaign = synthetic.Campaign(system="big:cpu", environment="gnu")
    synthetic.write(tmp_path, synthetic.of_bcast(campaign))
    succeed("ingest")
    place = tmp_path / "install" / "big-cpu-gnu"
    for options in ((), ("--system=big",), ("--environment=gnu",)):
        said = fail("advise", "-n2", *options, "--", "true")
        assert f"no built swpbench for gnu in {place}" in said
    assert str(place) not in fail("advise", "-n2", "--environment=mpich", "--", "true")
    upgrade = dataclasses.replace(
        campaign, name="20261122T000000Z", mpi_library="MPICH Version: 5.0.3"
    )
    synthetic.write(tmp_path, synthetic.of_bcast(upgrade))
    succeed("ingest")
    assert f"no built swpbench for gnu in {place}" in fail("advise", "-n2", "--", "true")
    synthetic.write(tmp_path, synthetic.of_bcast(synthetic.Campaign()))  # of this machine
    succeed("ingest")
    assert str(place) not in fail("advise", "-n2", "--environment=mpich", "--", "true")
    elsewhere = ("--launcher", "srun")
    assert f"no built swpbench for gnu in {place}" in fail(
        "advise", "-n2", *elsewhere, "--", "true"
    )
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "swpbench").write_text("of a module's MPI\n")
    (place / "bin" / "swpbench").chmod(0o755)
    assert "is of an MPI that is not found here" in fail("advise", "-n2", *elsewhere, "--", "true")


def test_the_library_reads_what_is_exported(
    two_systems: Path, tmp_path: Path, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpis = find_mpis()
    require("mpi", bool(mpis), "no MPI is installed")
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(build_kernels(mpis[0])))
    succeed("ingest")
    table = tmp_path / "exported.table"
    succeed("export", "--system", "local-cpu-mpich", "--output", table)
    assert succeed("check", "table", table) == f"{table}: 2 rules\n"
    latin = Path(shutil.copy(table, tmp_path / os.fsdecode(b"caf\xe9.table")))
    assert succeed("check", "table", latin) == f"{tmp_path}/caf\\xe9.table: 2 rules\n"
    table.write_text(table.read_text() + "rule op=exchange methods=direct\n")
    assert f"{table}:" in fail("check", "table", table)
    result = call("check", "table", "--json", table)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["valid"] is False


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "0"])
@pytest.mark.parametrize(
    "command", [("soak", "--minutes"), ("run", "--minutes"), ("check", "choices", "--budget")]
)
def test_a_time_is_a_positive_number(command: tuple[str, ...], value: str) -> None:
    answer = call(*command, value)
    assert answer.exit_code == 2
    assert f"Invalid value for '{command[-1]}'" in answer.stderr.splitlines()[-1]
