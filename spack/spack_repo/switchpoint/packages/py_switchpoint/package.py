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
    depends_on("py-setuptools@77:", type="build")
    with default_args(type=("build", "run")):
        depends_on("py-click@8.1:")
        depends_on("py-jinja2@3.1:")
        depends_on("py-msgspec@0.19:")
        depends_on("py-numpy@1.26:")
        depends_on("py-pandas@2.2:")
        depends_on("py-pyamg@5.1:")
        depends_on("py-rich@13.5:")
        depends_on("py-scipy@1.11:")
    # A program of its own, with a path of its own.
    depends_on("reframe@4.7:", type="run")
    with default_args(when="+dashboard", type=("build", "run")):
        depends_on("py-dash@3.4:")
        depends_on("py-dash-bootstrap-components@2.0:")
        depends_on("py-flask-compress")  # which is dash[compress]
        depends_on("py-waitress@3.0:")

    @property
    def import_modules(self):
        """Those that --test=root imports; modules of checks need ReFrame, which runs them."""
        return ["tuner", "tuner.cli", "tuner.commands.run", "templates"] + (
            ["dashboard.app"] if "+dashboard" in self.spec else []
        )

    def test_imports(self):
        """As Spack's, with what was just installed on Python's path."""
        path = [self.module.python_purelib, os.environ.get("PYTHONPATH", "")]
        with set_env(PYTHONPATH=os.pathsep.join(path)):
            super().test_imports()

    def detect_dev_src_change(self):
        """Whether what is installed has changed; results and builds lie in the checkout as well."""
        sources = ["checks", "dashboard", "templates", "tuner"]
        root = self.spec.variants["dev_path"].value
        files = [join_path(root, "pyproject.toml")] + [
            file for name in sources for file in find(join_path(root, name), "*")
        ]
        installed_s = os.path.getmtime(join_path(self.prefix, ".spack", "spec.json"))
        changed = (file for file in files if "__pycache__" not in file)
        return any(os.path.getmtime(file) > installed_s for file in changed)

    def setup_build_environment(self, env):
        """Keeps setuptools from building in the checkout, whose build/ is for campaigns."""
        env.set("DIST_EXTRA_CONFIG", join_path(self.stage.path, "places.cfg"))

    @run_before("install")
    def name_places(self):
        """Where setuptools may write."""
        places = f"[build]\nbuild_base={self.stage.path}\n[egg_info]\negg_base={self.stage.path}\n"
        with open(join_path(self.stage.path, "places.cfg"), "w") as file:
            file.write(places)
