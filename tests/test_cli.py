"""The command `switchpoint`, as users call it."""

import dataclasses
import json
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from dashboard import app
from tests import synthetic
from tests.cli import call, commands, fail, succeed
from tests.conftest import TIMEOUT_S, Require
from tests.kernels.conftest import build_kernels
from tuner import __version__
from tuner.campaign.plans import Budget
from tuner.cli import main
from tuner.commands import browse
from tuner.commands.naming import RENAMED, SECTIONS
from tuner.commands.show_plan import BUDGET
from tuner.export.verify import find_swpbench
from tuner.machine import systems
from tuner.machine.mpi import Mpi, find_mpis
from tuner.paths import CHECKOUT

REFERENCE = (Path(__file__).parent.parent / "docs" / "reference" / "cli.md").read_text()


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write two systems, measured but not ingested."""
    directory = tmp_path / "results"
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(directory))
    synthetic.write(directory, synthetic.Campaign(samples=20))
    synthetic.write(
        directory, synthetic.of_discovery(synthetic.Campaign(environment="openmpi", samples=20))
    )
    return directory


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


def test_show_can_be_restricted_to_an_operation(results: Path) -> None:
    succeed("ingest")
    succeed("tune")
    text = succeed("show", "--op", "exchange", "--system", "mpich")
    assert "exchange" in text and "campaign " not in text and "discovery" not in text
    (table,) = json.loads(succeed("show", "--op", "exchange", "--system", "mpich", "--json"))[
        "tables"
    ]
    assert {rule["operation"] for rule in table["rules"]} == {"exchange"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["models", "--op", "exchange"], r"No such option:? '?--op\b"),
        (["--op", "exchange", "models"], "`show models` has no --op"),
        (["some/results"], "No such command 'some/results'"),
        (["models", "plan.json"], r"Got unexpected extra argument \(plan.json\)"),
        (["--next"], r"No such option:? '?--next\b"),
        (["overlap", "--next"], r"No such option:? '?--next\b"),
        (["plan", "plan.json", "--next"], "--next goes without a FILE"),
        (["plan", "--within=6"], "--within goes with --next"),
        (["plan", "--node-hours=1"], "--node-hours goes with --next"),
        (["plan", "--system=mpich"], "--system goes with --next"),
        (["--system=mpich", "plan"], "--system goes with --next"),
    ],
)
def test_a_wrong_option_of_show_is_one_line(words: list[str], message: str) -> None:
    answer = call("show", *words)
    (line,) = (line for line in answer.stderr.splitlines() if line.startswith("Error: "))
    assert answer.exit_code == 2
    assert re.match(f"Error: {message}", line)


def test_options_of_show_count_before_and_after_what_is_shown(tmp_path: Path) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(procs=(4, 8), cores=64, samples=20))
    database = tmp_path / "s.db"
    succeed("ingest", tmp_path, "--database", database)
    options = ("--json", "--database", database, "--system", "mpich")
    after = succeed("show", "plan", "--next", *options)
    assert json.loads(after)
    assert succeed("show", *options, "plan", "--next") == after


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


def test_ingest_reports_what_it_did(results: Path) -> None:
    assert "12 launches" in succeed("ingest")
    report: dict[str, Any] = json.loads(succeed("ingest", "--json"))
    assert (report["files"], report["unchanged"], report["launches"]) == (12, 12, 0)
    assert report["database"] == str(results / "switchpoint.db")


def test_the_committed_sample_is_ingested_only_when_it_is_named(results: Path) -> None:
    sample = results / "sample"
    synthetic.write(sample, synthetic.Campaign(system="sample", samples=20))
    assert "12 launches" in succeed("ingest")
    assert "6 launches" in succeed("ingest", sample)
    assert "0 launches" in succeed("ingest")


def test_ingest_reports_what_it_cannot_use(results: Path) -> None:
    broken = results / "broken.jsonl"
    broken.write_text("{\n")
    result = call("ingest")
    assert result.exit_code == 0
    assert f"warning: {broken}:1: " in result.stderr
    assert "1 problems" in result.stdout


def test_tune_then_show(results: Path) -> None:
    succeed("ingest")
    tuned = succeed("tune", "--system", "openmpi")
    assert "nbx" in tuned
    assert "stfw" not in tuned
    shown = succeed("show")
    for text in (
        "local-cpu-mpich-",
        "local-cpu-openmpi-",
        "20261121T034500Z",
        "nbx",
        "stfw:dims=2",
    ):
        assert text in shown
    assert "mpich" not in succeed("show", "--system", "openmpi").split("campaign ")[1]


def test_show_prints_switch_points(results: Path) -> None:
    succeed("ingest")
    lines = succeed("show", "--system", "local-cpu-mpich").splitlines()
    (before,) = (line for line in lines if "up to 1.41 KiB" in line)
    (after,) = (line for line in lines if "above 1.41 KiB" in line)
    assert "stfw:dims=2" in before
    assert "faster" in before
    assert "direct" in after


def test_collectives_are_shown_and_exported_beside_the_others(results: Path) -> None:
    """Without a degree: the one rule at each size is for all."""
    synthetic.write(results, synthetic.of_bcast(synthetic.Campaign()))
    succeed("ingest")
    lines = succeed("show", "--system", "local-cpu-mpich").splitlines()
    rows = [line.split() for line in lines if line.startswith("bcast")]
    assert [row[4] for row in rows] == ["-", "-"]
    assert ["binomial" in rows[0], "faster" in rows[0], "vendor" in rows[1]] == [True] * 3
    table = succeed("export", "--system", "local-cpu-mpich")
    rules = [line for line in table.splitlines() if line.startswith("rule op=bcast")]
    assert [" method=binomial " in rule for rule in rules] == [True, False]
    assert not any("mmax=" in rule for rule in rules)


def test_json_holds_what_is_shown(results: Path) -> None:
    succeed("ingest")
    document = json.loads(succeed("show", "--json"))
    assert [len(document[name]) for name in ("systems", "campaigns", "tables")] == [2, 2, 2]
    assert document["tables"] == json.loads(succeed("tune", "--json"))


def test_what_is_inferred_is_marked(tmp_path: Path) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(procs=(4, 8), cores=64, samples=20))
    database = tmp_path / "s.db"
    succeed("ingest", tmp_path, "--database", database)
    said = succeed("tune", "--database", database)
    assert "1 x 5 to 7 (i)" in said
    assert "(i) inferred from measured layouts" in said
    text = succeed("export", "--database", database)
    said = succeed("show", "plan", "--next", "--database", database)
    assert re.search(r"1 x 6 .*untried: only powers of two were measured", said)
    named = json.loads(
        succeed("show", "plan", "--next", "--within=6", "--json", "--database", database)
    )
    assert {(worth["ppn"], worth["untried"]) for worth in named} == {(5, True), (6, True)}
    hours = named[0]["node_hours"]
    assert 0 < hours < 0.1
    short = f"--node-hours={hours / 2:.3f}"
    shown = succeed("show", "plan", "--next", short, "--database", database)
    assert shown == "no other layout is within these limits\n"
    assert re.search(r"rule op=exchange nodes=1 ppn=5:7 .* evidence=\"inferred from 1 x ", text)


def test_that_no_layout_is_left_to_measure_is_no_error(tmp_path: Path) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(procs=(4,), cores=4, samples=20))
    database = tmp_path / "s.db"
    succeed("ingest", tmp_path, "--database", database)
    succeed("tune", "--database", database)
    asked = ("show", "plan", "--next", "--database", database)
    assert succeed(*asked) == "no other layout is left to measure\n"
    assert json.loads(succeed(*asked, "--json")) == []


def test_layouts_of_pico_are_not_called_crowded(tmp_path: Path) -> None:
    """Its results have no cores; one is stored."""
    pico = synthetic.Campaign(system="pico:made", procs=(4, 8), cores=1, samples=20)
    for path in synthetic.write(tmp_path, pico):
        path.write_text(
            path.read_text().replace('"oversubscribed": true', '"oversubscribed": false')
        )
    succeed("ingest", tmp_path, "--database", tmp_path / "s.db")
    said = succeed("tune", "--database", tmp_path / "s.db")
    assert "1 x 5 to 7 (i)" in said and "(o)" not in said


@pytest.mark.parametrize(
    ("sync", "mark", "words"),
    [
        ("hca", "(h)", "(h) started together by synchronised clocks"),
        ("window-cold", "(c)", "(c) with cold caches"),
        ("barrier", "(b)", "(b) started by barriers"),
    ],
)
def test_starts_by_other_than_one_clock_are_marked(
    tmp_path: Path, sync: str, mark: str, words: str
) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(sync=sync, samples=20))
    database = tmp_path / "s.db"
    succeed("ingest", tmp_path, "--database", database)
    said = succeed("tune", "--database", database)
    assert f"1 x 2 {mark}" in said
    assert words in said


def test_a_budget_is_a_time_or_a_share() -> None:
    assert BUDGET.convert("1.5h", None, None) == Budget(5400)
    assert BUDGET.convert("15%", None, None) == Budget(0, 0.15)
    for wrong in ("0%", "15", "%", "-1m", "1d"):
        with pytest.raises(click.BadParameter, match="not a budget such as"):
            BUDGET.convert(wrong, None, None)


def test_a_table_can_be_restricted_to_campaigns(results: Path) -> None:
    synthetic.write(results, synthetic.Campaign(name="20261122T000000Z", samples=20, seed=2))
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
def test_a_rebuilt_store_exports_the_same(results: Path, tmp_path: Path, form: str) -> None:
    succeed("ingest")
    succeed("tune")
    arguments = ("export", "--system", "local-cpu-mpich", "--format", form)
    before = succeed(*arguments)
    (results / "switchpoint.db").unlink()
    succeed("ingest")
    assert succeed(*arguments) == before
    succeed(*arguments, "--output", tmp_path / "written")
    assert (tmp_path / "written").read_text() == before


def test_export_asks_which_system(results: Path) -> None:
    succeed("ingest")
    assert "there are several systems; choose one with --system: local-cpu-mpich-" in fail("export")
    assert "2 systems match local" in fail("export", "--system", "local")
    assert "no systems match other" in fail("export", "--system", "other")


@pytest.mark.parametrize("command", ["show", "export", "tune", "serve"])
def test_without_a_store_the_command_that_makes_one_is_named(command: str, results: Path) -> None:
    assert "no store there; make it with `switchpoint ingest`" in fail(command)
    assert not (results / "switchpoint.db").exists()


@pytest.mark.parametrize("command", ["ingest", "show", "export", "tune", "serve"])
def test_a_foreign_file_is_no_store(command: str, results: Path, tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("text " * 100)
    assert "not a Switchpoint store" in fail(command, "--database", tmp_path / "other.db")


def test_tune_brings_an_old_store_up_to_date(results: Path) -> None:
    old = Path(__file__).parent / "data" / "store-v1.db"
    shutil.copy(old, results / "switchpoint.db")
    assert "older version 1; run `switchpoint ingest`" in fail("show")
    succeed("tune")
    succeed("show")


def test_piped_output_is_not_wrapped(results: Path) -> None:
    succeed("ingest")
    command = [sys.executable, "-m", "tuner.cli", "show"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in shown
    rows = [line for line in shown.splitlines() if line.startswith("exchange")]
    assert len(rows) == 2
    assert all("stfw:dims=2" in row or "direct" in row for row in rows)


def test_words_in_brackets_are_shown_as_they_are(results: Path) -> None:
    for path in results.rglob("*.jsonl"):
        path.write_text(path.read_text().replace("MPICH Version", "MPICH [/x] [mpiexec@n0]"))
    succeed("ingest")
    assert "MPICH [/x] [mpiexec@n0]: 5.0.2" in succeed("show")
    assert "MPICH [/x] [mpiexec@n0]: 5.0.2" in succeed("tune")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_serve_answers_until_it_is_ended(results: Path, host: str, require: Require) -> None:
    require("ipv6", ":" not in host or _has_ipv6(), "this machine cannot listen on ::1")
    succeed("ingest")
    command = [sys.executable, "-m", "tuner.cli", "serve", "--port", "0", "--host", host]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = next(word for word in line.split() if word[:4] == "http")
        assert "(this machine only); press Ctrl-C to stop" in line
        with urllib.request.urlopen(f"{address}healthz") as answer:
            assert answer.status == 200
    finally:
        server.terminate()
    assert server.wait(timeout=TIMEOUT_S) == 0


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "192.0.2.1"])
def test_a_bind_error_is_one_line(results: Path, host: str) -> None:
    succeed("ingest")
    line = fail("serve", "--host", host)
    assert f"cannot listen on {host}:8050: " in line
    assert call("serve", "--port", "65536").exit_code == 2


def test_an_empty_token_serves_nobody(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a script whose command for a token fails."""
    succeed("ingest")
    monkeypatch.setenv("SWITCHPOINT_TOKEN", "")
    monkeypatch.setattr("dashboard.app.serve", lambda *arguments, **options: None)
    assert "SWITCHPOINT_TOKEN is empty: give a token, or unset it" in fail("serve")


def test_a_run_serves_at_another_port_when_the_usual_one_is_taken(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve(database: Path, port: int, **options: str) -> None:
        ports.append(port)
        if port:
            raise app.ListenError("taken")

    ports: list[int] = []
    succeed("ingest")
    monkeypatch.setattr(app, "serve", serve)
    with click.Context(main) as context:
        browse.serve_somewhere(context)
    assert ports == [8050, 0]


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


def test_a_name_that_is_not_there_is_told_with_those_that_are(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed("ingest")
    said = fail("compare", "local-cpu-mpich", "nope")
    assert "no campaign or system nope; campaigns: 20261121T034500Z; systems: local-cpu-" in said
    names = ", ".join(mpi.name for mpi in find_mpis())
    said = fail("run", "--dry-run", "--environment", "nope")
    assert said == f"Error: no environment nope; there are: {names}"
    table = results / "a.table"
    table.touch()
    said = fail("study", "applications", f"--table={table}", "--procs=2", "--environment=nope")
    assert said == f"Error: no environment nope here; there are: {names}"
    said = fail("study", "crossover", "a.mtx", "--procs=2", "--environment=nope")
    assert said == f"Error: no environment nope here; there are: {names}"


def test_a_source_without_a_launch_is_an_error(results: Path, tmp_path: Path) -> None:
    bad, empty = tmp_path / "bad.jsonl", tmp_path / "empty"
    bad.write_text("bad\n")
    empty.mkdir()
    for source in (bad, empty):
        for options in ([], ["--json"]):
            result = call("ingest", results, source, *options)
            assert (result.exit_code, result.stderr.splitlines()[-1]) == (
                1,
                f"Error: no launch in {source}",
            )
            assert result.stdout
    succeed("ingest", results)  # which are present
    succeed("ingest", CHECKOUT / "tests" / "data" / "pico")


def test_the_library_is_that_of_a_campaign_not_of_the_newest_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path))
    for place in ("install/local-cpu-mpich/bin", "sanitized-mpich-4.0.2/bench"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "swpbench").touch(mode=0o700)
    assert find_swpbench() == tmp_path / "install" / "local-cpu-mpich" / "bin" / "swpbench"


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


def test_the_library_reads_what_is_exported(
    results: Path, tmp_path: Path, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpis = find_mpis()
    require("mpi", bool(mpis), "no MPI is installed")
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(build_kernels(mpis[0])))
    succeed("ingest")
    table = tmp_path / "exported.table"
    succeed("export", "--system", "local-cpu-mpich", "--output", table)
    assert succeed("check", "table", table) == f"{table}: 2 rules\n"
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
