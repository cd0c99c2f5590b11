"""The system's Chromium and a server for it: for tests, and pictures of the documentation."""

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dash import Dash

from dashboard.server import server_on

NAMES = ("chromium", "chromium-browser", "google-chrome")
NOT_DRAWN = "figure:not(:has(.main-svg))"
"""Selector of the figures of a page that are not drawn yet."""

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
    """Return the first of the usual names that is on the path."""
    paths = filter(None, map(shutil.which, NAMES))
    return next(map(Path, paths), None)


@contextmanager
def served(app: Dash, prefix: str = "", **options: int) -> Iterator[str]:
    """Yield the address of a running server; the app was made with `prefix`."""
    server = server_on(socket.create_server(("127.0.0.1", 0)), app.server, prefix, **options)
    threading.Thread(target=server.run, daemon=True).start()
    yield f"http://127.0.0.1:{server.effective_port}"
    server.close()
