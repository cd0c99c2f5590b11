"""Builds and installs the kernels, once for each environment of a system."""

import shlex
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function

from tuner.mpi import available_cores, installation_directory
from tuner.simulation.launch import TOOLCHAIN

SOURCES = Path(__file__).resolve().parent.parent / "kernels"


class build_kernels(rfm.CompileOnlyRegressionTest):
    """The kernels, built in the stage directory and installed where applications find them."""

    descr = "Switchpoint's library and swpbench"
    build_system = "CMake"
    build_locally = True
    sourcesdir = None

    @run_after("setup")
    def skip_without_sources(self):
        """A wheel has no kernels."""
        self.skip_if(not SOURCES.is_dir(), f"no kernel sources in {SOURCES}: use a checkout")

    @run_before("compile")
    def configure(self):
        """Tells CMake where everything is, as the source tree is built without being copied."""
        build = shlex.quote(str(Path(self.stagedir) / "build"))
        self.build_system.configuredir = shlex.quote(str(SOURCES))
        self.build_system.builddir = build
        self.build_system.max_concurrency = available_cores()
        self.build_system.flags_from_environ = False
        self.build_system.cc = ""
        if "simulated" in self.current_partition.features:
            compiler = f"-DCMAKE_TOOLCHAIN_FILE={shlex.quote(str(SOURCES / 'cmake' / TOOLCHAIN))}"
        else:
            compiler = f"-DMPI_C_COMPILER={shlex.quote(self.current_environ.cc)}"
        self.build_system.config_opts = [
            compiler,
            "-DSWITCHPOINT_TESTS=OFF",
            f"-DCMAKE_INSTALL_PREFIX={shlex.quote(str(self.installation))}",
        ]
        self.postbuild_cmds = [f"cmake --install {build}"]

    @property
    def installation(self) -> Path:
        """bin, include and lib of one system and environment."""
        return installation_directory(self.current_partition.fullname, self.current_environ.name)

    @sanity_function
    def swpbench_is_installed(self):
        """The program that every check runs is there."""
        swpbench = self.installation / "bin" / "swpbench"
        return sn.assert_true(swpbench.is_file(), msg=f"{swpbench} was not built")
