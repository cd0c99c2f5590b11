"""The kernels: library, swpbench and their tests; sources by `develop`, from the checkout."""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Switchpoint(CMakePackage):
    """MPI exchanges and collectives by the fastest measured method, and what measures them."""

    license("Apache-2.0")

    version("0.1.0")

    variant("shared", default=True, description="Build a shared library")
    variant("tests", default=False, description="Build the kernel tests, as --test=root does")
    variant("fortran", default=False, description="Build the Fortran module")
    variant("hwloc", default=True, description="Know which ranks share a socket")
    variant("fftw", default=False, description="Measure overlap with Fourier transforms")
    variant("simgrid", default=False, description="Build for SimGrid's simulated MPI")

    depends_on("c", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.20:", type="build")
    depends_on("zlib-api")
    depends_on("mpi@3.1:", when="~simgrid")
    depends_on("simgrid@3.32: +smpi", when="+simgrid")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2:", when="+hwloc")
    depends_on("fftw@3: ~mpi", when="+fftw")
    conflicts("+tests", when="+simgrid", msg="kernel tests need a real MPI")
    conflicts("+fortran", when="+simgrid", msg="the Fortran module needs a real MPI")
    conflicts("^mpich ~fortran", when="+fortran", msg="the Fortran module needs MPI's own")

    def cmake_args(self):
        """Return options of kernels/CMakeLists.txt."""
        tests = self.run_tests or "+tests" in self.spec
        if "+simgrid" in self.spec:
            toolchain = join_path(self.stage.source_path, "cmake", "simgrid.cmake")
            compiler, tests = self.define("CMAKE_TOOLCHAIN_FILE", toolchain), False
        else:
            compiler = self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc)
        options = [
            compiler,
            self.define("SWITCHPOINT_TESTS", tests),
            self.define_from_variant("SWITCHPOINT_FORTRAN", "fortran"),
            self.define_from_variant("SWITCHPOINT_HWLOC", "hwloc"),
            self.define_from_variant("SWITCHPOINT_FFTW", "fftw"),
            # Simulated ranks are threads, which must not share a library's variables.
            self.define(
                "BUILD_SHARED_LIBS", "+shared" in self.spec and "+simgrid" not in self.spec
            ),
        ]
        if "+fortran" in self.spec:
            options.append(self.define("MPI_Fortran_COMPILER", self.spec["mpi"].mpifc))
        return options

    @run_before("cmake")
    def configure_again(self):
        """Have a checkout configured anew: Spack does it once, perhaps without tests."""
        if self.run_tests:
            for name in ("Makefile", "build.ninja"):
                force_remove(join_path(self.build_directory, name))
