"""The system's Chromium, a tab, and a server: for tests, and pictures of the documentation."""

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dash import Dash
from playwright.sync_api import Page

from dashboard.server import server_on

BUSY_MS = 180_000  # other tests may keep the machine busy
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


class Visit:
    """A tab that remembers what went wrong in it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.troubles: list[str] = []
        page.set_default_timeout(BUSY_MS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("request", self._request)
        page.on("response", self._response)

    def _console(self, message: object) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"console: {message.text}")

    def _request(self, request: object) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.troubles.append(f"foreign: {request.url}")

    def _response(self, response: object) -> None:
        if response.status >= 400:
            self.troubles.append(f"{response.status}: {response.url}")

    def open(self, path: str) -> Page:
        """Go to a page and wait until its figures are drawn."""
        self.page.goto(self.address + path)
        # These look at every frame; `expect` soon looks once a second only.
        self.page.locator("h1").first.wait_for()
        self.page.wait_for_function("which => !document.querySelector(which)", arg=NOT_DRAWN)
        return self.page
