"""Where results lie: SWITCHPOINT_RESULTS, else the checkout's results/, else the user's state."""

from __future__ import annotations

import os
from pathlib import Path


def results_directory() -> Path:
    """The directory of raw files and database; it need not exist yet."""
    named = os.environ.get("SWITCHPOINT_RESULTS")
    if named:
        return Path(named).expanduser()
    checkout = Path(__file__).resolve().parent.parent / "results"
    if (checkout / "README.md").is_file() and os.access(checkout, os.W_OK):
        return checkout
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "switchpoint" / "results"


def database_path() -> Path:
    """The store's file; it can be rebuilt from the raw files beside it."""
    return results_directory() / "switchpoint.db"
