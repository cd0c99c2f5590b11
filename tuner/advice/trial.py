"""The application with a table and without, and why calls were not dispatched."""

import re
import tempfile
from pathlib import Path
from typing import IO

from tuner.advice.proof import Proof, prove
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
