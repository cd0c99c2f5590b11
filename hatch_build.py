"""Add to a wheel what is not in the tree: its commit and, when asked for, programs.

With SWITCHPOINT_PREBUILT=1 these are the kernels, built by the `mpicc_abi` on the path against the
standard ABI of MPI 5; the wheel is then one of this platform.
"""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OPTIONS = {
    "BUILD_SHARED_LIBS": "ON",
    "MPI_C_COMPILER": "mpicc_abi",
    # A link to the MPI's libraries, made at installation, instead of a path of this machine.
    "MPI_C_LINK_FLAGS": "-pthread",
    "CMAKE_INSTALL_RPATH": "$ORIGIN/../lib;$ORIGIN/../lib/mpi",
    "CMAKE_INSTALL_RPATH_USE_LINK_PATH": "OFF",
    "CMAKE_INSTALL_LIBDIR": "lib",
    # Other machines may lack these libraries.
    "CMAKE_DISABLE_FIND_PACKAGE_ZLIB": "ON",
    "SWITCHPOINT_FFTW": "OFF",
    "SWITCHPOINT_HWLOC": "OFF",
    # Nothing of Fortran is standard.
    "SWITCHPOINT_FORTRAN": "OFF",
    "SWITCHPOINT_TESTS": "OFF",
}


class CustomBuildHook(BuildHookInterface):
    """Makes these files for a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files, and name their places in the wheel."""
        if version == "editable":
            return
        self.place = TemporaryDirectory()
        made = Path(self.place.name)
        if commit := self.commit():
            (made / "commit.txt").write_text(commit)
            build_data["force_include"][made / "commit.txt"] = "switchpoint/kernels/commit.txt"
        if os.environ.get("SWITCHPOINT_PREBUILT", "0") != "0":
            self.build(made / "build", made / "prebuilt")
            build_data["force_include"][made / "prebuilt"] = "switchpoint/prebuilt"
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data |= {"pure_python": False, "tag": f"py3-none-{platform}"}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what is in the wheel now."""
        if version != "editable":
            self.place.cleanup()

    def commit(self) -> str:
        """Return the commit as the kernels' own build finds it, "" where there is none."""
        # Named like this, git looks into another user's checkout, too.
        git = ["git", f"--git-dir={self.root}/.git", f"--work-tree={self.root}"]
        listed = [*git, "ls-files", "--error-unmatch", "pyproject.toml"]
        described = [*git, "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
        try:
            subprocess.run(listed, cwd=self.root, capture_output=True, check=True)
            answer = subprocess.run(described, cwd=self.root, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return ""
        return answer.stdout.decode().strip()

    def build(self, build: Path, prefix: Path) -> None:
        """Build and install the kernels."""
        cmake, mpicc = shutil.which("cmake"), shutil.which(OPTIONS["MPI_C_COMPILER"])
        if cmake is None or mpicc is None:
            raise SystemExit("SWITCHPOINT_PREBUILT needs cmake and mpicc_abi (MPICH 5) on PATH")
        options = [f"-D{name}={value}" for name, value in OPTIONS.items()]
        source = ["-S", f"{self.root}/kernels", "-B", build, f"-DCMAKE_INSTALL_PREFIX={prefix}"]
        # pip's isolation hides the package of PyPI's cmake from its own script.
        hidden = ("PYTHONPATH", "PYTHONNOUSERSITE")
        own = {name: value for name, value in os.environ.items() if name not in hidden}
        parallel = ["--parallel", str(len(os.sched_getaffinity(0)))]
        for step in (
            [*source, *options],
            ["--build", build, *parallel],
            ["--install", build, "--strip"],
        ):
            subprocess.run([cmake, *step], check=True, env=own)
        for link in prefix.glob("lib/*.so"):  # a wheel has no links; linkers read this instead
            if link.is_symlink():
                name = link.readlink()
                link.unlink()
                link.write_text(f"INPUT({name})\n")
