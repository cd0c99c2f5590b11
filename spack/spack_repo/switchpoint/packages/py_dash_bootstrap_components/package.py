"""For releases of Spack's own repository that have version 1 only."""

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyDashBootstrapComponents(PythonPackage):
    """Bootstrap components for Dash."""

    homepage = "https://www.dash-bootstrap-components.com/"
    pypi = "dash-bootstrap-components/dash_bootstrap_components-2.0.4.tar.gz"

    license("Apache-2.0")

    version("2.0.4", sha256="c3206c0923774bbc6a6ddaa7822b8d9aa5326b0d3c1e7cd795cc975025fe2484")

    depends_on("python@3.9:", type=("build", "run"))
    depends_on("py-hatchling", type="build")
    depends_on("py-dash@3.0.4:", type=("build", "run"))
