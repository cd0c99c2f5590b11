"""The running server, with clients that send or read little, or ask for too much."""

import resource
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dash import Dash

from dashboard import server as http
from dashboard import web
from dashboard.server import server_on
from tests.dashboard.chromium import served
from tests.processes import TIMEOUT_S, wait_for

HALF_OPEN = 400  # the most that the limit of open files lets a test hold everywhere
HALF_A_HEADER = b"GET /healthz HTTP/1.1\r\nHost: localhost"
HALF_A_BODY = (
    b"POST /_dash-update-component HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{"
)
PAGES = ("healthz", "", "explore", "assets/switchpoint.css")


@contextmanager
def command(database: Path) -> Iterator[str]:
    """Yield the address of `switchpoint serve`, a process of its own."""
    arguments = [sys.executable, "-m", "tuner.cli", "serve", "--port", "0"]
    server = subprocess.Popen(
        [*arguments, "--database", str(database)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        yield next(word for word in server.stdout.readline().split() if word[:4] == "http")
    finally:
        server.terminate()
        server.wait(timeout=TIMEOUT_S)


def connect(address: str) -> socket.socket:
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port), timeout=TIMEOUT_S)


@pytest.mark.parametrize("sent", [b"", HALF_A_HEADER, HALF_A_BODY])
def test_half_open_connections_keep_nobody_out(database: Path, sent: bytes) -> None:
    with command(database) as address, ExitStack() as held:
        for _ in range(HALF_OPEN):
            held.enter_context(connect(address)).sendall(sent)
        for page in PAGES:
            with urllib.request.urlopen(address + page, timeout=TIMEOUT_S) as answer:
                assert answer.status == 200


def test_more_requests_are_answered_at_a_time_than_may_wait() -> None:
    assert http._THREADS > web.VIEWS


@pytest.fixture
def impatient(app: Dash) -> Iterator[str]:
    """Yield the address of a server that closes after a second what it otherwise closes later."""
    with served(app, patience_s=1) as address:
        yield address


@pytest.mark.parametrize("sent", [b"", HALF_A_HEADER, HALF_A_BODY])
def test_half_open_connections_are_closed(impatient: str, sent: bytes) -> None:
    with connect(impatient) as client:
        client.sendall(sent)
        assert client.recv(1) == b""


@pytest.mark.parametrize(
    ("begin", "drop"), [(b"GET /healthz HTTP/1.1\r\nX: ", b"x"), (b"", b"\r\n\r\n"), (b"", b"\r\n")]
)
def test_a_request_that_drips_is_closed(impatient: str, begin: bytes, drop: bytes) -> None:
    """Each byte is activity, but the request as a whole does not come in time."""
    closed = threading.Event()
    with connect(impatient) as client:
        client.sendall(begin)

        def drip() -> None:
            while not closed.wait(0.1):
                try:
                    client.sendall(drop)
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert ended(client)
        finally:
            closed.set()
            dripping.join()


def test_an_answer_that_nobody_reads_is_given_up(app: Dash) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # connections inherit it
    server = server_on(listening, app.server, patience_s=1)
    threading.Thread(target=server.run, daemon=True).start()
    with connect(f"http://127.0.0.1:{server.effective_port}") as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /assets/plotly-cartesian.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: len(server.active_channels) == 1)
        wait_for(lambda: not server.active_channels)
    server.close()


def test_a_connection_has_one_answer(impatient: str) -> None:
    """More, which nobody reads, would keep a thread waiting."""
    with connect(impatient) as client, client.makefile("rb") as answers:
        client.sendall(3 * (HALF_A_HEADER + b"\r\n\r\n"))
        answer = answers.read()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nConnection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1") == 1


def test_a_body_that_is_too_long_is_refused_before_it_is_sent(impatient: str) -> None:
    with connect(impatient) as client, client.makefile("rb") as answers:
        client.sendall(HALF_A_BODY.replace(b"900", b"900000000"))
        assert answers.readline().startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("limit", [64, 1024])
def test_what_connections_hold_is_within_the_limit_of_open_files(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: None)
    a_socket_and_a_file = 2
    assert 0 < a_socket_and_a_file * http._affordable(http._CONNECTIONS) < limit


def ended(client: socket.socket) -> bool:
    """Return whether the server ends the connection, in whatever way."""
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True
