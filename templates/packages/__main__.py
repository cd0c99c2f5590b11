"""Write the recipes and the archive of the last commit: `python -m templates.packages [PLACE]`.

The version of the project, and the oldest of what it needs, are those of pyproject.toml and
kernels/CMakeLists.txt; what recipes pin is in `PINNED`.
"""

import re
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

from templates import render

CHECKOUT = Path(__file__).resolve().parents[2]
# An easyconfig names the versions of a generation of toolchains, and a container that of its image.
PINNED = {
    "debian": "12",
    "gompi": "2024a",
    "CMake": "3.29.3",
    "pkgconf": "2.2.0",
    "hwloc": "2.10.0",
    "zlib": "1.3.1",
}
TEMPLATES = {
    "easybuild.eb.j2": "switchpoint-{version}-gompi-{pinned[gompi]}.eb",
    "conda.yaml.j2": "recipe.yaml",
    "conda-mpi.yaml.j2": "conda_build_config.yaml",
    "apptainer.def.j2": "switchpoint.def",
}


def facts() -> dict[str, Any]:
    """Return the values that the recipes take from the project."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    cmake = (CHECKOUT / "kernels" / "CMakeLists.txt").read_text("utf-8")
    needs = re.findall(r"VERSION ([\d.]+)\)$|hwloc>=([\d.]+)", cmake, re.MULTILINE)
    return {
        **{name: project["project"][name] for name in ("version", "description", "license")},
        "python": project["project"]["requires-python"].removeprefix(">="),
        "hatchling": project["build-system"]["requires"][0].removeprefix("hatchling>="),
        "pinned": PINNED,
        "conda": [named for each in project["project"]["dependencies"] for named in _conda(each)],
        "cmake": max(first for first, _ in needs),
        "hwloc": max(second for _, second in needs),
    }


def _conda(requirement: str) -> list[str]:
    """Return a requirement of PyPI as those of conda, which has no extras."""
    name, _, least = requirement.partition(">=")
    plain, _, extra = name.rstrip("]").partition("[")
    return [f"{plain} >={least}", *(["flask-compress"] if extra == "compress" else [])]


def write(place: Path) -> None:
    """Write archive and recipes."""
    place = place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    values = facts()
    name = f"switchpoint-{values['version']}"
    archive = place / f"{name}.tar.gz"
    command = ["git", "archive", f"--prefix={name}/", f"--output={archive}", "HEAD"]
    subprocess.run(command, cwd=CHECKOUT, check=True)
    digest = sha256(archive.read_bytes()).hexdigest()
    for template, file in TEMPLATES.items():
        text = render(f"packages/{template}", **values, archive=archive.name, sha256=digest)
        (place / file.format(**values)).write_text(text, "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / "build" / "packages")
