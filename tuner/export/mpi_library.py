"""The MPI library that a table was measured with, found on this machine, and its algorithms.

The names and numbers of algorithms, and MPICH's built-in selection, are read from exactly that
library: they change between versions, and a file for another version silently selects wrong
algorithms.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from tuner.export.choices import VendorError
from tuner.machine.mpi import LABELS, Mpi, find_all_mpis, is_of, library_of
from tuner.machine.processes import answer

_MARK = re.compile(r"Switchpoint's choices for (MPICH|Open MPI|Intel MPI) ([0-9][\w.]*)")
_TIMEOUT_S = 60


def version_for(banner: str, family: str) -> str:
    """Return the version of a table's library. Raise VendorError if it is of another family."""
    found, version = library_of(banner)
    if found != family:
        raise VendorError(
            f"the table was measured with {banner!r}, whose algorithms cannot be exported for "
            f"{LABELS[family]}"
        )
    return version


def installation(family: str, version: str) -> Mpi:
    """Return the installation of exactly that version. Raise VendorError if there is none."""
    here = [mpi for alike in find_all_mpis() for mpi in alike if mpi.family == family]
    for mpi in here:
        if mpi.version == version:
            return mpi
    what = f"{LABELS[family]} {version}"
    others = " and ".join(str(mpi) for mpi in here)
    raise VendorError(
        f"this needs {what} itself, which is not on PATH"
        + (f" (only {others}, with other algorithms)" if others else "")
        + ": run this where it is installed"
    )


def launcher(family: str, version: str) -> str:
    """Return the program that starts ranks with exactly that library. Raise VendorError."""
    try:
        return installation(family, version).mpiexec
    except VendorError:
        program = shutil.which("mpiexec") or ""
        its = Mpi(family, family, version, "", program)
        if family == "intelmpi" and is_of(its, program):  # without a compiler
            return program
        raise


def made_for(text: str) -> tuple[str, str] | None:
    """Return the family and version for which a file with this beginning is, or None."""
    match = _MARK.search(text)
    if match is None:
        return None
    return next(key for key, name in LABELS.items() if name == match.group(1)), match.group(2)


class Algorithm(NamedTuple):
    """An algorithm of Open MPI in its rules files; fan_out is 0 for algorithms without one."""

    number: int
    fan_out: int


def openmpi_algorithms(mpi: Mpi) -> dict[str, dict[str, Algorithm]]:
    """Return the algorithms of each operation, by name, from the library's ompi_info.

    A variable that selects `chain` takes the fan-out from another variable; a rules file states it.
    """
    program = Path(mpi.mpiexec).with_name("ompi_info")
    command = [str(program), "--param", "coll", "tuned", "--level", "9", "--parsable"]
    its = answer(command, _TIMEOUT_S, VendorError)
    fan_outs = dict(
        re.findall(r"coll_tuned_(\w+)_algorithm_chain_fanout:value:([0-9]+)", its.stdout)
    )
    found: dict[str, dict[str, Algorithm]] = {}
    pattern = r"coll_tuned_(\w+)_algorithm:enumerator:value:([0-9]+):(\S+)"
    for operation, number, name in re.findall(pattern, its.stdout):
        fan_out = int(fan_outs.get(operation, 0)) if name == "chain" else 0
        found.setdefault(operation, {})[name] = Algorithm(int(number), fan_out)
    if not found:
        raise VendorError(f"{program} lists no algorithms: {its.stderr.strip()[:200]}")
    return found


class Selections(NamedTuple):
    """MPICH's default selections: algorithms, and compositions of operations.

    Libraries without the device ch4 have no compositions; `names` are all algorithms that can be
    selected.
    """

    algorithms: dict[str, Any]
    compositions: dict[str, Any]
    names: set[str]


def mpich_selections(mpi: Mpi) -> Selections:
    """Return the library's built-in selections, which are text in the library's file.

    Raise VendorError if they are not found.
    """
    for path in _library_files(mpi):
        content = path.read_bytes()
        names = {name.decode() for name in re.findall(rb"algorithm=(MPIR_\w+)\0", content)}
        texts = [
            content[match.start() : content.index(b"\0", match.start())]
            for match in re.finditer(rb'\{\s*"collective=', content)
        ]
        try:
            trees = [json.loads(text) for text in texts if b"_Bcast_intra_" in text]
        except ValueError as error:
            raise VendorError(f"{path}: cannot read its selection: {error}") from error
        of_kind: dict[str, dict[str, Any]] = {"algorithm": {}, "composition": {}}
        for tree in trees:
            kind = "composition" if "composition=" in str(tree) else "algorithm"
            of_kind[kind] = max(of_kind[kind], tree, key=len)
        if names and of_kind["algorithm"]:
            return Selections(of_kind["algorithm"], of_kind["composition"], names)
    raise VendorError(f"{mpi}: its library contains no selection that can be changed")


def _library_files(mpi: Mpi) -> list[Path]:
    """Return the files that may be the wrapper's library, without links. Raise VendorError."""
    shown = answer([mpi.mpicc, "-show"], _TIMEOUT_S, VendorError)
    if shown.returncode != 0:
        raise VendorError(f"{mpi.mpicc} -show failed: {shown.stderr.strip()[:200]}")
    names = [name for name in re.findall(r"-l(\S+)", shown.stdout) if "mpi" in name]
    directories = [Path(directory) for directory in re.findall(r"-L(\S+)", shown.stdout)]
    files = [
        path.resolve()
        for name in names
        for directory in directories
        for path in sorted(directory.glob(f"lib{name}.so*"))
    ]
    return [path for path in dict.fromkeys(files) if path.is_file() and path.stat().st_size > 4096]
