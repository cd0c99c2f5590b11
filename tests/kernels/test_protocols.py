"""The protocols of ranks that share memory, in all their executions: models that SPIN checks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.compiler import COMPILER
from tests.conftest import Require
from tests.processes import TIMEOUT_S
from tuner.paths import CHECKOUT

MODELS = CHECKOUT / "kernels" / "tests" / "protocols"
INTERLEAVED = "RUN="  # every step of a rank between any two of another

pytestmark = pytest.mark.check


def search(model: str, settings: str, directory: Path) -> str:
    """Return what SPIN's exhaustive search of a model prints; it ends at the first error."""
    definitions = [f"-D{setting}" for setting in settings.split()]
    limits = ["-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=4096"]
    for command in (
        ["spin", *definitions, "-a", str(MODELS / f"{model}.pml")],
        [*COMPILER, "-O2", "-w", *limits, "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=directory, check=True)
    command = ["./pan", "-m100000", "-n"]
    done = subprocess.run(
        command, cwd=directory, check=True, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert "too small" not in done.stdout, done.stdout  # the greatest depth
    return done.stdout


@pytest.fixture(autouse=True)
def spin(require: Require) -> None:
    """Skip without the model checker."""
    require("spin", shutil.which("spin") is not None, "no spin on the path")


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("bulletins", "RANKS=3 LAST=4"),
        ("bulletins", f"RANKS=3 LAST=4 {INTERLEAVED}"),
        ("boards", "RANKS=3 LAST=4"),
        ("boards", f"RANKS=2 LAST=3 {INTERLEAVED}"),
        ("boards", "RANKS=2 LAST=4 SLICED"),
        ("boards", f"RANKS=2 LAST=3 SLICED {INTERLEAVED}"),
        ("slots", "RANKS=3 LAST=4 PLANS=1 WITH_MPI"),
        ("slots", "RANKS=3 LAST=3 PLANS=1 BARRIERS=1"),
        ("slots", "RANKS=2 LAST=3 PLANS=1 MESSAGES=1"),
        ("slots", "RANKS=2 LAST=3 PLANS=2"),
        ("slots", f"RANKS=2 LAST=3 PLANS=1 BARRIERS=1 {INTERLEAVED}"),
        ("lent", "RANKS=3 LAST=4 PLANS=1"),
        ("lent", "RANKS=3 LAST=3 PLANS=1 BARRIERS=1"),
        ("lent", "RANKS=2 LAST=3 PLANS=1 MESSAGES=1"),
        ("lent", "RANKS=2 LAST=3 PLANS=2"),
        pytest.param("boards", f"RANKS=3 LAST=2 {INTERLEAVED}", marks=pytest.mark.nightly),
        pytest.param("slots", "RANKS=2 LAST=3 PLANS=2 BARRIERS=1", marks=pytest.mark.nightly),
        pytest.param("slots", "RANKS=2 LAST=3 PLANS=2 WITH_MPI", marks=pytest.mark.nightly),
    ],
)
def test_no_execution_races_or_hangs(model: str, settings: str, tmp_path: Path) -> None:
    assert "errors: 0" in search(model, settings, tmp_path)


@pytest.mark.parametrize(
    ("model", "mistake", "found"),
    [
        ("bulletins", "BULLETINS=1", "assertion violated"),
        ("boards", "KNOWN_TOO_EARLY", "assertion violated"),
        ("boards", "NOT_AWAITED", "assertion violated"),
        ("boards", "SLICED SUM_WHERE_OTHERS_READ", "assertion violated"),
        ("boards", "SLICED SUM_ON_NEXT_BOARD", "assertion violated"),
        ("slots", "NOT_ACKNOWLEDGED", "assertion violated"),
        ("slots", "BARRIERS=1 SLOTS=1", "invalid end state ("),
        ("slots", "BARRIERS=1 AWAITED=1", "invalid end state ("),
        ("slots", "BARRIERS=1 SENT_BY_WAIT", "invalid end state ("),
        ("slots", "MESSAGES=1 SENT_BY_WAIT", "invalid end state ("),
        ("lent", "NOT_AWAITED", "assertion violated"),
        ("lent", "BARRIERS=1 BUFFERS=1", "invalid end state ("),
        ("lent", "BARRIERS=1 AWAITED=1", "invalid end state ("),
        ("lent", "MESSAGES=1 AWAITED=1", "invalid end state ("),
    ],
)
def test_mistakes_are_found(model: str, mistake: str, found: str, tmp_path: Path) -> None:
    assert found in search(model, f"RANKS=2 LAST=3 PLANS=1 {mistake}", tmp_path)
