"""Advice that is kept beside its profile, among the results."""

from pathlib import Path

import msgspec

from tuner import atomic
from tuner.advice.document import Advice, failure_of
from tuner.files import read_json

_DIRECTORY = "profiles"
_SUFFIX = ".json"
MOST = 100
"""The most that is listed, the newest first."""


def profile_path(results: Path, name: str) -> Path:
    """Return the path of a profile of that name: a directory, as scripts run several programs."""
    return (results / _DIRECTORY / f"{name}.profile").absolute()


def save(profile: Path, its: Advice) -> None:
    """Write the advice on a profile beside it. Raise OSError."""
    atomic.write(profile.with_suffix(_SUFFIX), msgspec.json.encode(its))


def before(results: Path, identity: str) -> tuple[list[tuple[float, float]], str]:
    """Return the pairs that a comparison goes on with, and how it failed earlier, else "".

    None are left where it was resolved.
    """
    found = next((its for its in newest(results).values() if its.identity == identity), None)
    if found is None:
        return [], ""
    return found.pairs if found.outcome in ("open", "failed") else [], failure_of(found)


def newest(results: Path) -> dict[str, Advice]:
    """Return what is kept, by name; files that are no advice are left out."""
    paths = sorted((results / _DIRECTORY).glob(f"*{_SUFFIX}"), reverse=True)
    found = {}
    for path in paths[:MOST]:
        try:
            found[path.stem] = read_json(path, Advice)
        except (ValueError, OSError):
            continue
    return found
