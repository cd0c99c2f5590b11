"""Raw files in the form of docs/reference/benchfile.md, read, written and changed by records."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def read(path: Path) -> list[Record]:
    """Return the records of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, records: Iterable[Record]) -> Path:
    """Write records as the lines of a file, and return it."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def write_launch(path: Path, header: Record, records: Sequence[Record]) -> Path:
    """Write a launch that ended: header, records, and the end that counts them; return the file."""
    samples = sum(len(record.get("samples_s", ())) for record in records)
    end = {"record": "end", "cases": len(records), "samples": samples}
    return write(path, [header, *records, end | {"seconds": 1.0, "skipped": []}])


def change(path: Path, changed: Callable[[Record], None]) -> None:
    """Change the records of a file in place."""
    records = read(path)
    for record in records:
        changed(record)
    write(path, records)
