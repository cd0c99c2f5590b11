"""The directory beside the store that keeps bundles, one for each system."""

import sys
from collections.abc import Iterable
from pathlib import Path

from tuner import atomic
from tuner.catalogue.bundle import SUFFIX, Bundle, BundleError, read, read_packed
from tuner.files import files_below, printable


def directory(database: Path) -> Path:
    """Return where the bundles beside a store are; it need not exist yet."""
    return database.parent / "catalogue"


def files(sources: Iterable[Path]) -> list[Path]:
    """Return the files named, and the bundles below directories."""
    return [
        path
        for source in sources
        for path in (files_below(source, SUFFIX) if source.is_dir() else [source])
    ]


def add(database: Path, path: Path) -> Bundle:
    """Keep the bundle in a file instead of an older one of its system, and return it.

    Raise BundleError if it is none, or older than what is kept, OSError when it cannot be written.
    """
    packed, its = read_packed(path)
    provenance = its.provenance
    kept = directory(database) / f"{provenance.system}{SUFFIX}"
    if _date_of(kept) > provenance.date:
        raise BundleError(f"{path}: older than what is kept in {kept}")
    atomic.write(kept, packed)
    return its


def _date_of(kept: Path) -> str:
    """Return the date of a bundle, or "" for a file that cannot be read as one."""
    try:
        return read(kept).provenance.date
    except (BundleError, OSError):
        return ""


def bundles(database: Path) -> list[Bundle]:
    """Return all bundles that are kept, with a warning for each that cannot be read."""
    found = []
    for path in sorted(directory(database).glob(f"*{SUFFIX}")):
        try:
            found.append(read(path))
        except (BundleError, OSError) as error:
            print(printable(f"warning: passed over: {error}"), file=sys.stderr)
    return found
