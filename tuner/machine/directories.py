"""The directories of builds and jobs, and the search paths of the programs that they start."""

import hashlib
import os
import shlex
import sys
from pathlib import Path

from tuner.errors import SwitchpointError
from tuner.paths import CHECKOUT, is_checkout, own_directory


class ScratchError(SwitchpointError, ValueError):  # sites' configurations catch the latter
    """Error raised when jobs cannot run in any directory; the message says why and what to do."""


def build_root() -> Path:
    """Return the directory of all builds: the checkout's build/, else the cache."""
    build = CHECKOUT / "build"
    if is_checkout() and os.access(build if build.exists() else CHECKOUT, os.W_OK):
        return build
    return cache_directory()


def scratch_directory() -> Path:
    """Return the directory of ReFrame's jobs: the build, or the cache if no script starts there.

    Raises:
        ScratchError: neither can be used.
    """
    candidates = [build_root() / "reframe", cache_directory() / f"reframe-{_checkout()}"]
    for path in candidates:
        if _is_one_word(path):  # ReFrame splits the path of a job's script
            return path
    raise ScratchError(
        f"{candidates[-1]}: ReFrame cannot run jobs in a path with spaces or quotes; name another "
        "with XDG_CACHE_HOME"
    )


def _is_one_word(path: Path) -> bool:
    try:
        return shlex.split(str(path)) == [str(path)]
    except ValueError:  # of a quote without another
        return False


def cache_directory() -> Path:
    """Return the user's directory of what can be made again; it need not exist yet."""
    return own_directory("XDG_CACHE_HOME", ".cache")


def _checkout() -> str:
    return hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]


def installation_directory(system: str, environment: str) -> Path:
    """Return where a campaign installs the kernels; `system` is ReFrame's, as "local:cpu"."""
    return build_root() / "install" / f"{system.replace(':', '-')}-{environment}"


def objects_directory(system: str, environment: str) -> Path:
    """Return where this checkout's kernels are compiled, by a campaign before it installs them."""
    name = installation_directory(system, environment).name
    return build_root() / f"cmake-{name}-{_checkout()}"


def search_path() -> str:
    """Return PATH, with the running virtual environment first even when it is not activated."""
    path = os.environ.get("PATH", "")
    return f"{sys.prefix}/bin{os.pathsep}{path}" if sys.prefix != sys.base_prefix else path


def python_path() -> str:
    """Return PYTHONPATH with the directory of all parts first: other programs import them too."""
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return os.pathsep.join(dict.fromkeys([str(CHECKOUT), *named]))
