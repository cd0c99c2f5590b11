"""The recipes of CONTRIBUTING, followed step by step on a copy of the checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests import synthetic
from tests.conftest import Require
from tests.kernels.benchrun import SWPBENCH, bench
from tests.kernels.conftest import Kernels
from tuner.machine.mpi import Mpi, find_mpis
from tuner.models.fitting import fitted
from tuner.models.predicting import PatternCase, predictor
from tuner.paths import CHECKOUT
from tuner.rawfile.reading import read
from tuner.store.store import Store

pytestmark = pytest.mark.check

Edit = Callable[[str], str]


def checkout(place: Path) -> Path:
    """Make a checkout of the files as they are, without results."""
    listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":!results"]
    for name in git(CHECKOUT, *listed).split("\0"):
        if (CHECKOUT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, place / name)
    git(place, "init", "--quiet")
    return place


def git(place: Path, *arguments: str) -> str:
    return run(["git", "-C", str(place), *arguments])


def run(command: list[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    environment = os.environ | (env or {})
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def steps(title: str) -> set[str]:
    """Return the file with which each step of a recipe begins."""
    recipes = (CHECKOUT / "CONTRIBUTING.md").read_text().split("\n### ")
    (recipe,) = [each for each in recipes if each.startswith(f"{title}\n")]
    return set(re.findall(r"^\d+\. `([^`]+)`", recipe, re.MULTILINE))


def follow(place: Path, title: str, chosen: dict[str, str], edits: dict[str, Edit]) -> None:
    """Edit the files that the recipe names, and no others; `chosen` are its words in capitals."""
    paths = steps(title)
    for word, name in chosen.items():
        paths = {path.replace(word, name) for path in paths}
    assert paths == set(edits)
    for path, edit in edits.items():
        file = place / path
        before = file.read_text() if file.exists() else ""
        after = edit(before)
        assert after != before
        file.write_text(after)


def documented_there(place: Path, of: str) -> None:
    """Run the tests of the copy's documents that are about methods, or forms."""
    git(place, "add", "--all")
    tests = [sys.executable, "-m", "pytest", "-q", "tests/test_docs.py", "-k", of]
    assert " passed" in run(tests, place, {"PYTHONPATH": str(place)})


def add(text: str, after: str) -> Edit:
    """Return an edit that puts a text behind the only place of another."""

    def edit(before: str) -> str:
        assert before.count(after) == 1, after
        return before.replace(after, after + text)

    return edit


def both(first: Edit, second: Edit) -> Edit:
    return lambda text: second(first(text))


# ---- A method ----

METHODS = {"exchange": "direct", "discovery": "pex", "collective": "star"}
"""What a new one of each kind starts from."""


def write_method(kind: str, name: str) -> Edit:
    source = (CHECKOUT / "kernels" / "methods" / kind / f"{METHODS[kind]}.c").read_text()
    for old, new in (
        (f"swp_{kind}_{METHODS[kind]}", f"swp_{kind}_{name}"),
        (f'.name = "{METHODS[kind]}"', f'.name = "{name}"'),
    ):
        assert source.count(old) == 1
        source = source.replace(old, new)
    return lambda _: source


def build(place: Path, mpi: Mpi) -> Kernels:
    kernels = Kernels(mpi, place / "build" / "tests")
    options = [f"-DMPI_C_COMPILER={shutil.which(mpi.mpicc)}"]
    env = {"CCACHE_BASEDIR": str(place)}
    run(["cmake", "-S", str(place / "kernels"), "-B", str(kernels.build), *options], env=env)
    targets = ["swpbench", "swp_oracle", "swp_collectives", "swp_yield"]
    run(["cmake", "--build", str(kernels.build), "-j2", "--target", *targets], env=env)
    return kernels


FILL = """
static void fill(const struct regions *in) {
  for (int64_t t = 0; t < in->times; t++)
    memset(in->to + t * in->span, 1, (size_t)in->size_bytes);
}
"""
PARAMETER = {
    "kernels/bench/probes/parameters.c": both(
        add(', {"fill", 1, fill}', '{"reduce", 8, reduce}'),
        add(FILL, "  int64_t size_bytes, span, times;\n};\n"),
    ),
    "tuner/models/system.py": add(
        '\n    filling: Parameter = single("fill", per_byte, "filling ns/B")',
        'single("reduce", per_byte, "reducing ns/B")',
    ),
    "docs/reference/benchfile.md": add(
        "\n| `fill` | filling s bytes of memory | `filling` |",
        "(`MPI_Reduce_local`) | `reducing` |",
    ),
    "tuner/models/predict.py": add(" + or_zero(model.filling)", "or_zero(model.reducing)"),
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Kernels:
    """Build a copy with a new method of each kind, and a new parameter of the models."""
    mpis = find_mpis()
    require("mpi", bool(mpis), "no MPI is installed")
    require("cmake", shutil.which("cmake") is not None, "no cmake on the path")
    copy = checkout(tmp_path_factory.mktemp("copy"))
    for kind in METHODS:
        name = f"new_{kind}"
        follow(
            copy,
            "Add a method",
            {"KIND": kind, "NAME": name},
            {
                f"kernels/methods/{kind}/{name}.c": write_method(kind, name),
                "kernels/methods/methods.def": f"{{}}METHOD(swp_{kind}_{name})\n".format,
                "docs/explanation/methods.md": f"{{}}\n- **{name}** is like others.\n".format,
            },
        )
    follow(copy, "Add a parameter of the models", {}, PARAMETER)
    return build(copy, min(mpis, key=lambda mpi: mpi.name))


def test_a_method_after_its_recipe_is_found_and_measured(kernels: Kernels, tmp_path: Path) -> None:
    """The recipe is followed for one method of each kind."""
    listed = kernels.run_alone(SWPBENCH, "list").stdout
    for kind, operation, program in (
        ("exchange", "exchange", "swp_oracle"),
        ("discovery", "discovery", "swp_oracle"),
        ("collective", "gather", "swp_collectives"),
    ):
        assert re.search(rf"^{operation}\s+new_{kind}\s", listed, re.MULTILINE)
        spec = f"{operation}:new_{kind}"
        tested = kernels.run(f"tests/{program}", ["--brief", "--only", spec], 3)
        assert tested.returncode == 0, tested.stdout + tested.stderr
        file = tmp_path / f"{kind}.jsonl"
        pattern = "blocks" if kind == "collective" else "random:degree=2"
        result = bench(kernels, file, 3, op=operation, pattern=pattern)
        assert result.status == 0, result.stderr
        measured = read(file)
        assert f"new_{kind}" in {case.method for case in measured.cases}
        assert measured.complete
        assert measured.problems == []
    documented_there(kernels.build.parents[1], "method")


# ---- A parameter of the models ----


def test_a_parameter_after_its_recipe_is_fitted_shown_and_predicted_with(
    kernels: Kernels, tmp_path: Path
) -> None:
    """How long it takes to fill memory, as if reductions did so."""
    copy = kernels.build.parents[1]
    options = ["--sizes", "1:64K:x4", "--max-samples", "8", "--campaign", "probes"]
    probe = ["probe", "--out", str(tmp_path / "probe.jsonl"), *options]
    assert kernels.run(SWPBENCH, probe, 2).returncode == 0
    assert bench(kernels, tmp_path / "reduce.jsonl", op="reduce", pattern="blocks").status == 0
    database = tmp_path / "s.db"

    def switchpoint(*words: str) -> str:
        command = [sys.executable, "-m", "tuner.cli", *words, "--database", str(database)]
        return run(command, copy, {"PYTHONPATH": str(copy)})

    assert "0 problems" in switchpoint("ingest", str(tmp_path))
    assert re.search(r"^filling ns/B: ", switchpoint("fit"), re.MULTILINE)
    (shown,) = json.loads(switchpoint("show", "models", "--json"))
    switchpoint("report", "--output", str(tmp_path / "report.html"))
    assert "filling ns/B" in (tmp_path / "report.html").read_text()
    with Store.open(database, readonly=True) as store:
        model = fitted(store, shown["system"])
    without_s = predictor(model, PatternCase("reduce", "", 2, 2)).times(1 << 20)["binomial"]
    predict = ["predict", "--op", "reduce", "--procs", "2", "--methods", "binomial"]
    (answer,) = json.loads(switchpoint(*predict, "--sizes", "1M", "--json"))["times_s"]
    filling_s = (1 << 20) * shown["filling"]["value"]
    assert answer["methods"][0]["time_s"] == pytest.approx(without_s + filling_s)
    documented_there(copy, "parameter")


# ---- An export form ----


ASKS = """
import pathlib, sys
from dashboard.app import create_app
client = create_app(pathlib.Path(sys.argv[1])).server.test_client()
answer = client.get(f"/api/v1/tables/{sys.argv[2]}?format=brief")
assert answer.status_code == 200, answer.data
sys.stdout.write(answer.get_data(as_text=True))
"""


def test_an_export_form_is_written_after_its_recipe(tmp_path: Path) -> None:
    copy = checkout(tmp_path / "copy")
    follow(
        copy,
        "Add an export form",
        {"FORM": "brief"},
        {
            "templates/brief.j2": lambda _: (
                "{% for rule, _ in rules %}\n{{ rule.operation }} {{ rule.method }}\n{% endfor %}\n"
            ),
            "tuner/export/brief.py": lambda _: (
                (CHECKOUT / "tuner/export/header.py")
                .read_text()
                .replace('"header.h.j2"', '"brief.j2"')
                .replace('"C header"', '"Brief list"')
                .replace('"switchpoint_table.h"', '"brief.txt"')
            ),
            "tuner/export/forms.py": both(
                add(" brief,", "from tuner.export import"),
                add('\n    "brief": brief.FORM,', '\n    "header": header.FORM,'),
            ),
            "docs/reference/cli.md": add(
                "\n| `--format brief` | operation and method of each rule |",
                "every decided point, and the fitted parameters |",
            ),
        },
    )
    synthetic.write(tmp_path / "results", synthetic.Campaign(samples=20))
    database = synthetic.tuned_store(tmp_path / "results")
    environment = {"PYTHONPATH": str(copy)}
    command = [sys.executable, "-m", "tuner.cli", "export", "--database", str(database)]
    written = run([*command, "--format", "brief"], copy, environment)
    rules = json.loads(run([*command, "--format", "json"], copy, environment))["rules"]
    assert written.splitlines() == [f"{rule['operation']} {rule['method']}" for rule in rules]
    with Store.open(database, readonly=True) as store:
        (system,) = store.systems()["system"]
    asks = [sys.executable, "-c", ASKS, str(database), system]
    assert run(asks, copy, environment) == written
    documented_there(copy, "form")
