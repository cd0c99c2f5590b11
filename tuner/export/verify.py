"""Checks of a method table by the library itself, with `swpbench table`.

The file of an MPI library is read by exactly its version, as others misread it. Such a library
prints nothing about its rules, so it is seen at work.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tuner.errors import SwitchpointError
from tuner.export.exported import stated_in
from tuner.export.loaded import CheckedRule, checked_rules
from tuner.export.mpi_library import installation, launcher, made_for
from tuner.export.witness import witness
from tuner.files import open_file
from tuner.machine.directories import build_root, search_path
from tuner.machine.mpi import LABELS
from tuner.machine.processes import answer
from tuner.machine.systems import named_kernels, program_in

_TIMEOUT_S = 60
_HEAD_BYTES = 4096
_MOST_BYTES = 1 << 24


class VerifyError(SwitchpointError):
    """Error raised when the table is wrong, or when there is no library to check it."""


def find_swpbench() -> Path:
    """Return the newest swpbench below SWITCHPOINT_KERNELS, or else below campaigns' installations.

    Those of simulated ranks do not start by themselves. Without any installation it is the one on
    the path.
    Raise VerifyError if there is none.
    """
    root = named_kernels() or build_root()
    places = (place for place in root.glob("install/*") if not place.name.startswith("simulated-"))
    programs = [found for place in (root, *places) if (found := program_in(place))]
    if (
        not programs
        and not named_kernels()
        and (on_path := shutil.which("swpbench", path=search_path()))
    ):
        return Path(on_path)
    if not programs:
        raise VerifyError(
            f"no built swpbench below {root}: build the kernels with `switchpoint run`, or set "
            "SWITCHPOINT_KERNELS to a build or installation"
        )
    return max(programs, key=lambda path: path.stat().st_mtime)


def verify_table(path: Path) -> str:
    """Return the library's answer for a valid table, `FILE: N rules`. Raise VerifyError for others.

    For a file of an MPI library it is the launcher of that version. Raise VendorError if it is not
    installed.
    """
    if reader := made_for(_head(path)):
        family, version = reader
        return f"{path}: for {LABELS[family]} {version}: {launcher(family, version)}"
    program = find_swpbench()
    its = answer([program, "table", path], _TIMEOUT_S, VerifyError)
    if its.returncode != 0:
        said = (its.stderr or its.stdout).strip().splitlines()
        reason = next((line for line in said if line.startswith("swpbench:")), "\n".join(said[:1]))
        raise VerifyError(
            reason.removeprefix("swpbench: ") or f"{program} failed without a message"
        )
    return its.stdout.strip()


def verify_rules(paths: Sequence[Path]) -> Iterator[CheckedRule]:
    """Yield whether an MPI library that loads the files together runs each of their rules.

    Method tables have none of its rules. Raise VerifyError if the files are not for one library,
    or none states a rule, and VendorError if it is not installed.
    """
    readers = {path: reader for path in paths if (reader := made_for(_head(path)))}
    if not readers:
        return
    if len(set(readers.values())) > 1:
        raise VerifyError(f"{' and '.join(map(str, readers))} are for different libraries")
    family, version = next(iter(readers.values()))
    texts = {path: _text(path) for path in readers}
    if not any(map(stated_in, texts.values())):
        raise VerifyError(
            f"{' and '.join(map(str, texts))}: all rules of the table are left out, and the "
            "comments of the file say why"
        )
    with witness(installation(family, version)) as program:
        yield from checked_rules(texts, family, program)


def _head(path: Path) -> str:
    with open_file(path) as file:
        return file.read(_HEAD_BYTES).decode(errors="replace")


def _text(path: Path) -> str:
    with open_file(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise VerifyError(f"{path}: over {_MOST_BYTES >> 20} MiB; no export is so long")
    return content.decode(errors="replace")
