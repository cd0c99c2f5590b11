"""The user's own directories, also where there is no home."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def own_directory(variable: str, otherwise: str) -> Path:
    """What an environment variable names, else a place in the home, else one for this boot."""
    try:
        return Path(os.environ.get(variable) or f"~/{otherwise}").expanduser() / "switchpoint"
    except RuntimeError:  # no HOME, and a user without a name
        return Path(tempfile.gettempdir()) / f"switchpoint-{os.getuid()}" / otherwise
