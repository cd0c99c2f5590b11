"""The check that builds and installs the kernels, once for each environment of a system.

With `-S build_kernels.builder=Spack`, Spack builds them from the package in this checkout.
"""

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.buildsystems import CMake, Spack
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.environments import Environment, snapshot
from reframe.core.runtime import loadenv

from tuner.machine.directories import installation_directory, objects_directory
from tuner.machine.doctor import OLDEST_CMAKE, c_compilers, find_cmake
from tuner.machine.mpi import available_cores, find_all_mpis, is_linked_with
from tuner.machine.processes import UnansweredError, answer
from tuner.machine.simulation.launch import TOOLCHAIN
from tuner.paths import CHECKOUT, is_checkout

SOURCES = CHECKOUT / "kernels"
SPACK_REPOSITORY = CHECKOUT / "spack" / "spack_repo" / "switchpoint"
PREBUILT = CHECKOUT / "prebuilt"  # of a wheel
STANDARD_MPI = "libmpi_abi.so.1"
SPACK_SITE_IS_NAMED = '"SWITCHPOINT_SPACK_SITE" in env'


@contextmanager
def loaded(*environs: Environment) -> Iterator[None]:
    """Load the modules and variables of environments for a block, as job scripts do."""
    before = snapshot()
    try:
        loadenv(*environs)
        yield
    finally:
        before.restore()


class build_kernels(rfm.CompileOnlyRegressionTest):
    """The kernels; only changed parts are rebuilt. Installed where applications find them."""

    descr = "Switchpoint's library and swpbench"
    # ReFrame 4.10 rejects any value of `build_system` on the command line.
    builder = variable(str, value="CMake")
    build_locally = True
    sourcesdir = None
    skipped_because = variable(str, value="")  # for the report

    @run_after("init")
    def choose_builder(self) -> None:
        """Choose one of ReFrame's build systems by name: CMake or Spack."""
        self.build_system = self.builder

    @run_after("setup")
    def take_what_is_built(self) -> None:
        """Outside a checkout, use the swpbench on the path or, without a compiler, the wheel's.

        Where they can be built they are, so that they also fit what the environment's mpicc makes:
        programs with the standard ABI are made by another.
        """
        if is_checkout():
            return
        with loaded(self.current_partition.local_env, self.current_environ):
            self.choose_installation()

    def choose_installation(self) -> None:
        """Choose among what there is with the environment's modules and variables."""
        self.standard_mpi = None
        if on_path := self.find_installed():
            self.built = on_path
        else:
            lacking = self.find_lacking()
            if not lacking:
                return
            self.built, self.standard_mpi = PREBUILT, self.find_standard_mpi()
            if self.standard_mpi is None:
                self.skipped_because = (
                    f"the kernels cannot be built without {', '.join(lacking)}: `switchpoint "
                    "doctor` shows how to get them"
                )
                self.skip(self.skipped_because)
        self.build_system = "CustomBuild"

    def find_installed(self) -> Path | None:
        """Return the installation of the swpbench on the path; None if it is of no use here.

        It may be of simulated ranks' or another MPI, or be one that campaigns have made.
        """
        if "simulated" in self.current_partition.features:
            return None
        path, mpicc = shutil.which("swpbench"), shutil.which(self.current_environ.cc)
        if path is None:
            return None
        installation = Path(path).resolve().parent.parent
        if installation.is_relative_to(self.installation.parent.resolve()):
            return None
        mpis = [each for its in find_all_mpis() for each in its]
        mpi = next((each for each in mpis if mpicc and Path(mpicc).samefile(each.mpicc)), None)
        return installation if mpi is None or is_linked_with(path, mpi) else None

    def find_lacking(self) -> list[str]:
        """Return what is needed to build and is not here; without a compiler of MPI, nothing.

        The commands of a job may bring that.
        """
        if not SOURCES.is_dir():
            return [f"their sources in {SOURCES}, or a swpbench on the path"]
        if shutil.which(self.current_environ.cc) is None:
            return []
        tools = {"make": ["make"], "a C compiler": c_compilers()}
        lacking = [tool for tool, names in tools.items() if not any(map(shutil.which, names))]
        has_cmake = find_cmake(os.environ["PATH"]) is not None
        return lacking if has_cmake else [*lacking, f"cmake {OLDEST_CMAKE} or later"]

    def find_standard_mpi(self) -> Path | None:
        """Return the environment's library with the ABI of MPI 5 if the wheel's programs run."""
        mpicc = shutil.which(self.current_environ.cc)
        if mpicc is None or not (PREBUILT / "bin" / "swpbench").is_file():
            return None
        library = Path(mpicc).resolve().parent.parent / "lib" / STANDARD_MPI
        environment = os.environ | {"LD_LIBRARY_PATH": str(library.parent)}
        try:
            starts = answer([PREBUILT / "bin" / "swpbench", "--version"], None, env=environment)
        except UnansweredError:  # of another platform
            return None
        return library if library.exists() and starts.returncode == 0 else None

    @run_before("compile")
    def configure(self) -> None:
        """Set all paths of the build system; the source tree is built without a copy."""
        target = shlex.quote(str(self.installation))
        is_cmake = isinstance(self.build_system, CMake)
        # A link leads to files of another installation: nothing may be written through it.
        self.prebuild_cmds = [f"[ {'! -L' if is_cmake else '-L'} {target} ] || rm -rf {target}"]
        if is_cmake:
            self.configure_cmake()
        elif isinstance(self.build_system, Spack):
            self.configure_spack()
        else:
            built = shlex.quote(str(self.built))
            if self.standard_mpi is None:
                self.prebuild_cmds.append(f"mkdir -p {shlex.quote(str(self.installation.parent))}")
                self.build_system.commands = [f"ln -sfn {built} {target}"]
            else:
                libraries = shlex.quote(str(self.standard_mpi.parent))
                self.prebuild_cmds = [*self.lock(), f"rm -rf {target}.new {target}.old"]
                # Launches of other campaigns may run what is installed.
                self.build_system.commands = [
                    f"mkdir -p {target}.new",
                    f"cp -R {built}/. {target}.new",
                    f"ln -s {libraries} {target}.new/lib/mpi",
                    f"[ ! -e {target} ] && [ ! -L {target} ] || mv {target} {target}.old",
                    f"mv {target}.new {target}",
                    f"rm -rf {target}.old",
                ]

    def lock(self) -> list[str]:
        """Return commands that wait for a running build of the same files.

        If files cannot be locked, nothing is shared: `build` is the directory for objects.
        """
        shared = objects_directory(self.current_partition.fullname, self.current_environ.name)
        return [
            f"build={shlex.quote(str(shared))}",
            'mkdir -p "$build"',
            f'exec 9> "$build.lock" && flock 9 || build={shlex.quote(self.stagedir)}/build',
        ]

    def configure_cmake(self) -> None:
        """Build with the environment's MPI compiler, after a running build of the same files."""
        self.prebuild_cmds += [
            *self.lock(),
            # CMake's cached results may be outdated, for example after a module changed.
            'rm -rf "$build/CMakeCache.txt" "$build"/CMakeFiles/[0-9]*',
        ]
        cmake = find_cmake(os.environ["PATH"])
        if cmake is not None and cmake != shutil.which("cmake"):  # which is too old
            self.prebuild_cmds.append(f'cmake() {{ {shlex.quote(cmake)} "$@"; }}')
        build = '"$build"'
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
            '-G "Unix Makefiles"',  # CMAKE_GENERATOR may name another; ReFrame 4.9 runs make
            compiler,
            "-DSWITCHPOINT_TESTS=OFF",
            f"-DCMAKE_INSTALL_PREFIX={shlex.quote(str(self.installation))}",
        ]
        self.postbuild_cmds = [f"cmake --install {build}"]

    def configure_spack(self) -> None:
        """Build with the MPI that the environment's extras name for Spack, such as mpich@4."""
        mpi = self.current_environ.extras.get("spack_mpi")
        environment = Path(self.stagedir) / "spack"
        environment.mkdir(exist_ok=True)  # a stage is kept for the batches that follow
        manifest = {
            "include": [{"path": "$SWITCHPOINT_SPACK_SITE", "when": SPACK_SITE_IS_NAMED}],
            "repos": {"switchpoint": str(SPACK_REPOSITORY)},
            "specs": ["switchpoint" if mpi is None else f"switchpoint ^{mpi}"],
            "develop": {"switchpoint": {"spec": "switchpoint", "path": str(SOURCES)}},
            "view": {"default": {"root": str(self.installation), "link": "roots"}},
        }
        # JSON is YAML.
        (environment / "spack.yaml").write_text(json.dumps({"spack": manifest}, indent=1))
        self.build_system.environment = str(environment)

    @property
    def installation(self) -> Path:
        """Return the prefix (bin, include, lib) of one system and environment."""
        return installation_directory(self.current_partition.fullname, self.current_environ.name)

    @sanity_function
    def swpbench_is_installed(self) -> Any:
        """Check that swpbench, which every check runs, is installed."""
        swpbench = self.installation / "bin" / "swpbench"
        return sn.assert_true(swpbench.is_file(), msg=f"{swpbench} was not built")
