"""Copies of raw files from the scratch directories of launches to the results and the store."""

import filecmp
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from glob import escape
from pathlib import Path

import msgspec

from tuner.atomic import replacing, write
from tuner.domain.records import Header, System
from tuner.errors import SwitchpointError
from tuner.files import open_file, read_json, shown
from tuner.paths import database_path, results_directory
from tuner.rawfile import reading
from tuner.rawfile.ingest import ingest
from tuner.rawfile.lines import EndLine
from tuner.units import is_digits

SAMPLE = "sample"

_LAYOUTS = "layouts.json"


class RawFileError(SwitchpointError):
    """Error raised when a raw file of a launch that has just ended is not as it should be."""


def keep(paths: Iterable[Path]) -> list[Path]:
    """Copy complete raw files to results/<system>/<campaign>/ and ingest them.

    Raises:
        RawFileError: a file is not complete, its place holds another file, or the copied file
            cannot be used as it is.
        OSError: a file cannot be read or copied.
    """
    kept = [_copy(path) for path in paths]
    if problems := ingest(database_path(), kept).problems:
        raise RawFileError("\n".join(map(str, problems)))
    return kept


def complete_of_campaign(directory: Path, campaign: str) -> list[Path]:
    """Return the complete raw files of a campaign anywhere below a directory.

    Those on another layout than expected are left out. A job that ReFrame has retried leaves
    several of one launch: return the newest of each.
    """
    found = []
    for path in reading.below(directory):
        with suppress(FileNotFoundError):  # another process clears the directory
            found.append((path.stat().st_mtime_ns, path))
    newest = {}
    for _, path in sorted(found):
        header = _header_if_complete(path, campaign)
        if header and not wrong_layout(path):
            newest[campaign_directory(header) / path.name] = path
    return list(newest.values())


def expect(directory: Path, layouts: Mapping[str, tuple[int, int]]) -> None:
    """Record the ranks, and those on a node, of launches that will write files in a directory.

    What was recorded before holds for other files.
    """
    write(directory / _LAYOUTS, msgspec.json.encode({**_expected(directory), **layouts}))


def _expected(directory: Path) -> dict[str, tuple[int, int]]:
    try:
        return read_json(directory / _LAYOUTS, dict[str, tuple[int, int]])
    except (OSError, ValueError):  # none is there, or it was damaged
        return {}


def wrong_layout(path: Path) -> str:
    """Return how the launch of a raw file was laid out if another layout was expected, else "".

    A launcher without integration may start all ranks on one node.
    """
    header, layout = reading.read_header(header_line(path)), _expected(path.parent).get(path.name)
    if header is None or layout is None:
        return ""
    procs, ppn = layout
    wanted = procs, -(-procs // ppn)
    if (header.procs, header.nodes) == wanted:
        return ""
    return f"the launch had (ranks, nodes) {(header.procs, header.nodes)}, expected {wanted}"


def is_complete(path: Path, campaign: str) -> bool:
    """Return whether a raw file that may have vanished is of a campaign and has its last line."""
    return _header_if_complete(path, campaign) is not None


def _header_if_complete(path: Path, campaign: str) -> Header | None:
    try:
        header, complete = reading.read_ends(path)
    except FileNotFoundError:
        return None
    return header if complete and header is not None and header.campaign == campaign else None


def of_results() -> list[Path]:
    """Return the results except the committed sample, which was measured on another machine."""
    sample = results_directory() / SAMPLE
    found = reading.below(results_directory(), links=True)
    return [path for path in found if sample not in path.parents]


def of_campaign(campaign: str) -> list[Path]:
    """Return the raw files of a campaign among the results, of all its systems."""
    return sorted(results_directory().glob(f"*/{escape(campaign)}/*.jsonl"))


def numbers_there(campaign: str, system: str, environment: str, name: str) -> set[int]:
    """Return the numbers of one job's raw files that are among the results.

    `system` is that in their headers, `name` the part of their names before the number.
    """
    there = set()
    for path in of_campaign(campaign):
        job, _, number = path.stem.rpartition("-")
        if job != name or not is_digits(number):
            continue
        header = reading.read_header(header_line(path))
        if header and (header.system, header.environment) == (system, environment):
            there.add(int(number))
    return there


def header_line(path: Path) -> bytes:
    """Return the first line of a raw file, empty when the file does not exist any more."""
    try:
        with open_file(path) as lines:
            return reading.read_line(lines)
    except FileNotFoundError:
        return b""


def end_record(path: Path) -> EndLine:
    """Return the last line of a raw file. Raise RawFileError when the file is damaged."""
    end = reading.read_end(path)
    if end is None:
        raise RawFileError(
            f"{shown(path)}: damaged, as it does not end with an end record; delete it, and "
            "`switchpoint run --resume` measures it again"
        )
    return end


def campaign_directory(header: Header) -> Path:
    """Return the directory of a campaign's raw files."""
    return results_directory() / System.of(header).id / header.campaign


def _copy(path: Path) -> Path:
    header, complete = reading.read_ends(path)
    if header is None or not complete:
        what = (
            "no end record: the launch did not finish" if header else "no header in its first line"
        )
        raise RawFileError(f"{shown(path)}: {what}")
    target = campaign_directory(header) / path.name
    if not target.exists():
        with replacing(target) as aside:
            shutil.copyfile(path, aside)
    elif not filecmp.cmp(target, path, shallow=False):
        raise RawFileError(
            f"{shown(target)} exists and is another file; {shown(path)} is not copied"
        )
    return target
