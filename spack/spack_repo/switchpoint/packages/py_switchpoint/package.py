"""The command `switchpoint`, the ReFrame checks and the dashboard; sources by `develop`."""

import os

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PySwitchpoint(PythonPackage):
    """Measures MPI exchange methods by ReFrame and hands applications a table of the fastest."""

    license("Apache-2.0 AND MIT")

    version("0.1.0")

    variant("dashboard", default=True, description="Browse results in a web browser")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.27:", type="build")
    with default_args(type=("build", "run")):
        depends_on("py-click@8.1:")
        depends_on("py-jinja2@3.1:")
        depends_on("py-msgspec@0.22:")
        depends_on("py-numpy@1.26:")
        depends_on("py-pandas@2.2:")
        depends_on("py-pyamg@5.1:")
        depends_on("py-rich@13.5:")
        depends_on("py-scipy@1.11:")
    # A program of its own, with a path of its own.
    depends_on("reframe@4.9:", type="run")
    conflicts("^reframe@4.10.0:4.10.1", msg="it ends when a job of Slurm waits")
    with default_args(when="+dashboard", type=("build", "run")):
        depends_on("py-dash@3.4:")
        depends_on("py-dash-bootstrap-components@2.0:")
        depends_on("py-flask-compress")  # which is dash[compress]
        depends_on("py-waitress@3.0:")

    @property
    def import_modules(self):
        """Return what --test=root imports; modules of checks need ReFrame, which runs them."""
        modules = ["tuner.cli", "tuner.commands.run", "templates"]
        if "+dashboard" in self.spec:
            modules.append("dashboard.app")
        return ["switchpoint"] + [f"switchpoint.{module}" for module in modules]

    def test_imports(self):
        """Import as Spack does, with what was just installed on Python's path."""
        path = [self.module.python_purelib, os.environ.get("PYTHONPATH", "")]
        with set_env(PYTHONPATH=os.pathsep.join(path)):
            super().test_imports()

    def detect_dev_src_change(self):
        """Return whether sources have changed; results and builds lie in the checkout as well."""
        sources = ["checks", "dashboard", "kernels", "switchpoint", "templates", "tuner"]
        root = self.spec.variants["dev_path"].value
        files = [join_path(root, name) for name in ("pyproject.toml", "hatch_build.py")] + [
            file for name in sources for file in find(join_path(root, name), "*")
        ]
        installed_s = os.path.getmtime(join_path(self.prefix, ".spack", "spec.json"))
        changed = (file for file in files if "__pycache__" not in file)
        return any(os.path.getmtime(file) > installed_s for file in changed)
