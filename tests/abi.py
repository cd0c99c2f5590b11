"""The binary interface of libswitchpoint, as text: what compiled programs rely on.

`python -m tests.abi` records it as kernels/abi/NUMBER.txt, where NUMBER is that of the last node in
kernels/abi/switchpoint.map. A record is never replaced: a changed interface has another number.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.compiler import COMPILER

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
HEADER = KERNELS / "include" / "switchpoint.h"
ABI = KERNELS / "abi"
MAP = ABI / "switchpoint.map"

# Handles are pointers, as in the standard ABI of MPI 5; their size is MPI's and not ours.
MPI_H = """
typedef struct comm *MPI_Comm;
typedef struct datatype *MPI_Datatype;
typedef struct op *MPI_Op;
"""


def nodes() -> dict[str, list[str]]:
    """Return the functions of each node of the map, by its number."""
    found = re.findall(
        r"^SWITCHPOINT_([\d.]+) \{(.*?)^\}", MAP.read_text(), re.MULTILINE | re.DOTALL
    )
    return {number: re.findall(r"\b(swp_\w+);", body) for number, body in found}


def number() -> str:
    """Return the number of the interface: MAJOR.MINOR."""
    return list(nodes())[-1]


def soname() -> str:
    """Return the name by which programs load the library."""
    return f"libswitchpoint.so.{number().partition('.')[0]}"


def record(number: str) -> Path:
    return ABI / f"{number}.txt"


def interface(header: Path = HEADER) -> str:
    """Return the types, constants and functions of the header, one a line."""
    with TemporaryDirectory() as place:
        (Path(place) / "mpi.h").write_text(MPI_H)
        compiler = [*COMPILER, "-std=c11", f"-I{place}", f"-I{header.parent}"]
        code = _run(*compiler, "-E", "-P", str(header))
        code = " ".join(code[code.index("enum swp_error") :].split())
        structs = re.findall(r"struct (swp_\w+) \{(.*?)\}", code)
        enumerators = re.findall(r"\bSWP_\w+", " ".join(re.findall(r"enum \w+ \{(.*?)\}", code)))
        program = Path(place) / "layout.c"
        program.write_text(_program(structs, enumerators))
        _run(*compiler, str(program), "-o", f"{place}/layout")
        layout = _run(f"{place}/layout")
    macros = re.findall(r"^#define (SWP_(?!VERSION)\w+ .*)$", _bare(header), re.MULTILINE)
    functions = re.findall(r"[\w *]+?\bswp_\w+\([^)]*\);", code)
    lines = (*macros, *map(_without_names, functions))
    return layout + "".join(f"{line}\n" for line in lines)


def _run(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _bare(header: Path) -> str:
    return re.sub(r"\s*/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)


def _program(structs: list[tuple[str, str]], enumerators: list[str]) -> str:
    """Return a C program that prints the layout of structs and the values of enumerators."""
    prints = []
    for struct, body in structs:
        prints.append(f'printf("{struct}: %zu bytes\\n", sizeof(struct {struct}));')
        for member, kind in _members(body):
            place = f"offsetof(struct {struct}, {member}), sizeof(((struct {struct} *)0)->{member})"
            said = f"{struct}.{member}: {kind} at %zu, %zu bytes\\n"
            prints.append(f'printf("{said}", {place});')
    prints += [f'printf("{name} = %d\\n", {name});' for name in enumerators]
    body = "\n".join(prints)
    return f'#include <stdio.h>\n#include "switchpoint.h"\nint main(void) {{\n{body}\n}}\n'


def _members(body: str) -> Iterator[tuple[str, str]]:
    """Yield each member of a struct with its type.

    Raises:
        ValueError: a member that is no scalar, pointer to data, or array of these.
    """
    for declaration in filter(None, map(str.strip, body.split(";"))):
        [(base, declarators)] = re.findall(r"^((?:\w+ )*)(.*)$", declaration)
        for declarator in declarators.split(","):
            found = re.fullmatch(r"((?:\*|const\b| )*)(\w+)((?:\[\d+\])*)", declarator.strip())
            if found is None:
                raise ValueError(f"the layout of {declaration!r} cannot be recorded")
            stars, member, lengths = found.groups()
            yield member, f"{base}{stars}".strip() + lengths


def _without_names(function: str) -> str:
    """Return a declaration without the names of its parameters, which no program depends on."""
    return re.sub(r" ?(?<=[ *])\w+(?=[,)])(?<!void)", "", function.strip())


def main() -> None:
    """Record the interface under its number. Exits with one line if that number has another."""
    text, path = interface(), record(number())
    if path.exists() and path.read_text() != text:
        sys.exit(f"{path} differs: add a node with another number to {MAP}")
    path.write_text(text)


if __name__ == "__main__":
    main()
