"""The committed inputs: a file for each parser, a line for each input, as Python writes bytes."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from tuner.paths import CHECKOUT

PLACE = Path(__file__).with_name("corpora")
ALSO = {
    "matrix": (CHECKOUT / "tests" / "data" / "matrix", "*/*.mtx"),
    "table": (CHECKOUT / "kernels" / "tests" / "tables", "*/*.table"),
}
"""Files of other tests that a parser's corpus has too."""


def inputs(parser: str) -> list[bytes]:
    """Return the inputs of a parser, those of other tests among them."""
    directory, names = ALSO.get(parser, (PLACE, ""))
    others = [path.read_bytes() for path in sorted(directory.glob(names))] if names else []
    lines = (PLACE / f"{parser}.txt").read_text("ascii").splitlines()
    return [*others, *(bytes(ast.literal_eval(line)) for line in lines)]


def add(parser: str, new: Iterable[bytes]) -> int:
    """Add inputs that a parser's corpus lacks, and return their number."""
    known = set(inputs(parser))
    lines = [f"{content!r}\n" for content in sorted(set(new) - known)]
    with (PLACE / f"{parser}.txt").open("a", encoding="ascii") as file:
        file.writelines(lines)
    return len(lines)


def unpack(parser: str, directory: Path) -> list[Path]:
    """Write every input of a parser to a file, and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, content in enumerate(inputs(parser)):
        paths.append(directory / f"{number}")
        paths[-1].write_bytes(content)
    return paths
