"""Advice that is kept beside its profile, among the results."""

from pathlib import Path

import msgspec

from tuner import atomic
from tuner.advice.document import Advice
from tuner.files import read_bytes

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


def unresolved(results: Path, trial: str) -> Advice | None:
    """Return the newest advice on a trial if it failed, or ended before it was resolved."""
    found = next((its for its in newest(results).values() if its.trial == trial), None)
    return found if found and found.verdict in ("open", "failed") else None


def newest(results: Path) -> dict[str, Advice]:
    """Return what is kept, by name; files that are no advice are left out."""
    paths = sorted((results / _DIRECTORY).glob(f"*{_SUFFIX}"), reverse=True)
    decode = msgspec.json.Decoder(Advice).decode
    found = {}
    for path in paths[:MOST]:
        try:
            found[path.stem] = decode(read_bytes(path))
        except (msgspec.MsgspecError, OSError):
            continue
    return found
