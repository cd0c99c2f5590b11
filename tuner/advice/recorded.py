"""What a run of an application recorded: a profile of Switchpoint, or a report of mpiP."""

from pathlib import Path
from typing import IO

from tuner.advice import mpip, profile
from tuner.advice.profile import Profile, ProfileError
from tuner.files import open_file

_OF_PRELOAD = b"switchpoint: "


def read(path: Path) -> Profile:
    """Read a profile or report, or a directory of one profile for each program that ran in turn.

    Raises:
        ProfileError, OSError: it cannot be read, or no process has written its calls.
    """
    if path.is_dir():
        names = sorted((each.name for each in path.iterdir() if each.name.isdecimal()), key=int)
        files = [path / name for name in names]
        written = [each for each in files if each.stat().st_size > 0]
        return profile.in_turn([_read(each) for each in written or files or [path / "1"]])
    return _read(path)


def _read(path: Path) -> Profile:
    try:
        with open_file(path) as file:
            return parse(file)
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
