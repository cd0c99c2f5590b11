"""Read the record of an application's run: a profile of Switchpoint, or a report of mpiP."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from tuner.advice import mpip, profile
from tuner.advice.profile import Profile, ProfileError, UnwrittenError
from tuner.files import open_file

_OF_PRELOAD = b"switchpoint: "


def read(path: Path) -> Profile:
    """Read a profile or report, or a directory of one profile for each program that ran in turn.

    Raises:
        ProfileError, OSError: it cannot be read, or no process has written its calls.
    """
    if path.is_dir():
        there = [each.name for each in path.iterdir()]
        names = sorted(filter(re.compile("[0-9]+").fullmatch, there), key=int)
        if there and not names:
            raise ProfileError(f"{path}: has no files 1, 2, …; name a file")
        return _in_turn(path, [path / name for name in names])
    return _read(path)


def _in_turn(path: Path, files: Sequence[Path]) -> Profile:
    """Return the profiles of programs in turn, without those that were killed before they wrote."""
    written = []
    for file in files:
        with suppress(UnwrittenError):
            written.append(_read(file))
    if not written:
        raise UnwrittenError(f"{path}: ")
    its = profile.in_turn(written)
    if not (left_out := len(files) - len(written)):
        return its
    note = f"{left_out} program{'s have' if left_out > 1 else ' has'} written no calls"
    return replace(its, notes=(*its.notes, note))


def _read(path: Path) -> Profile:
    try:
        with open_file(path) as file:
            return parse(file)
    except UnwrittenError as error:
        raise UnwrittenError(f"{path}: ") from error
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from error


def parse(file: IO[bytes]) -> Profile:
    """Return the calls in a profile or report. Raise ProfileError."""
    begin = file.read(len(_OF_PRELOAD))
    file.seek(0)
    if begin.startswith(mpip.FIRST_LINE):
        return mpip.parse(file)
    if begin == _OF_PRELOAD:
        raise ProfileError(
            "the preload's report has no times: record a profile with libswitchpoint_profile.so"
        )
    return profile.parse(file)
