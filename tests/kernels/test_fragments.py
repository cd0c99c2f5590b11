"""The documents' fragments are code: each is compiled in a frame, and run."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.test_docs import PAGES

from .conftest import Kernels

FRAME = Path(__file__).with_name("fragment.c")
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(fragments LANGUAGES C)
find_package(switchpoint REQUIRED)
# GCC takes Open MPI 5's MPI_UNWEIGHTED, a small number, for an array of no elements.
add_compile_options(-Wall -Wextra -Werror -Wno-stringop-overread)
foreach(name {names})
  add_executable(${{name}} {frame})
  target_compile_definitions(${{name}} PRIVATE FRAGMENT="{place}/${{name}}.inc")
  target_link_libraries(${{name}} PRIVATE switchpoint::switchpoint)
endforeach()
"""


class Fragment(NamedTuple):
    """A fragment of a page, and the line there at which it begins."""

    page: Path
    line: int
    text: str


def fragments(language: str) -> list[Fragment]:
    """Return the fragments in a language, of all pages."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for block in re.finditer(rf"(?ms)^```{language}\n(.*?)^```", text):
            line = text.count("\n", 0, block.start(1)) + 1
            found.append(Fragment(page, line, block[1]))
    return found


def do(*command: str | Path) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def test_fragments_of_c_compile_and_run(any_kernels: Kernels, tmp_path: Path) -> None:
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    names = []
    for page, line, text in fragments("c"):
        names.append(f"{page.stem}-{line}")
        (tmp_path / f"{names[-1]}.inc").write_text(f'#line {line} "{page}"\n{text}')
    assert len(names) >= 9
    project = PROJECT.format(names=" ".join(names), frame=FRAME, place=tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(project)
    do("cmake", "--install", any_kernels.build, "--prefix", prefix)
    options = (f"-DMPI_C_COMPILER={any_kernels.mpi.mpicc}", f"-DCMAKE_PREFIX_PATH={prefix}")
    do("cmake", "-S", tmp_path, "-B", build, *options)
    do("cmake", "--build", build)
    for name in names:
        done = any_kernels.run(str(build / name), [], 2)
        assert (done.returncode, done.stderr) == (0, ""), name
