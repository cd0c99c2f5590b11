"""The application with a table and without, and why calls were not dispatched."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from tuner.advice.document import percent
from tuner.advice.proof import LEAST_PAIRS, Proof, prove
from tuner.advice.running import Application, Invocation, RunError, run
from tuner.files import one_line

_SAID = re.compile(r"^switchpoint: (\w+ (?:not )?by .*)$", re.MULTILINE)


def compare(app: Application, table: Path, end_s: float) -> tuple[Proof, list[str]]:
    """Run the application with and without the table, and return what rank 0 dispatched too.

    Its output is shown only where a run fails. Raises RunError.
    """
    said: list[str] = []

    def timed(start: Invocation) -> float:
        with tempfile.TemporaryFile() as output:
            try:
                return run(start, output, output)
            except RunError as error:
                raise RunError(f"{error}: {_last_line(_text(output))}") from error
            finally:
                said[:] = _SAID.findall(_text(output)) or said

    without = app.preloading(None)
    proof = prove(lambda: timed(without), lambda: timed(app.tabled(table)), end_s)
    return proof, [one_line(line) for line in said]


def _text(output: IO[bytes]) -> str:
    output.seek(0, 2)
    output.seek(max(output.tell() - (1 << 16), 0))
    return output.read().decode(errors="replace")


def _last_line(text: str) -> str:
    return one_line(next(iter(reversed(text.strip().splitlines())), "it printed nothing"))


def document(proof: Proof) -> dict[str, Any]:
    """Return what the runs show for programs; the interval is null where pairs are too few."""
    unknown = {"low": None, "high": None} if len(proof.pairs) < LEAST_PAIRS else {}
    return asdict(proof) | unknown | {"verdict": proof.verdict}


def sentences(proof: Proof) -> Iterator[str]:
    """Yield what the runs show."""
    pairs = f"{len(proof.pairs)} pair{'s' * (len(proof.pairs) != 1)} of runs"
    low, high = (percent(1 - end, 1) for end in (proof.high, proof.low))
    few = len(proof.pairs) < LEAST_PAIRS
    interval = "no interval: three pairs are needed" if few else f"{low} to {high}"
    found = percent(abs(1 - proof.ratio), 1)
    so_far = f"saves {found}" if proof.ratio <= 1 else f"takes {found} longer"
    words = {
        "gain": f"gain: the table saves {found} of the run time",
        "loss": "no gain: the program is slower with the table",
        "none": "no gain: the difference is below 1 %",
        "open": f"not resolved within the budget; so far the table {so_far}",
    }
    yield f"{words[proof.verdict]} ({interval}, by {pairs})"
