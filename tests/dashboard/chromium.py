"""The system's Chromium, for the tests and the pictures of the documentation."""

import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> Path | None:
    """The first of the usual names that is on the path."""
    paths = filter(None, map(shutil.which, NAMES))
    return next(map(Path, paths), None)
