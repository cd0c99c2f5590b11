"""`switchpoint serve`, as users start it: addresses, ports and tokens."""

import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import click
import pytest

from dashboard import app
from tests.cli import call, fail, succeed
from tests.conftest import Require
from tests.processes import TIMEOUT_S
from tuner.cli import main
from tuner.commands import browse


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_serve_answers_until_it_is_ended(two_systems: Path, host: str, require: Require) -> None:
    require("ipv6", ":" not in host or _has_ipv6(), "this machine cannot listen on ::1")
    succeed("ingest")
    command = [sys.executable, "-m", "tuner.cli", "serve", "--port", "0", "--host", host]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = next(word for word in line.split() if word[:4] == "http")
        assert "(this machine only); press Ctrl-C to stop" in line
        with urllib.request.urlopen(f"{address}healthz") as answer:
            assert answer.status == 200
    finally:
        server.terminate()
    assert server.wait(timeout=TIMEOUT_S) == 0


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "192.0.2.1"])
def test_a_bind_error_is_one_line(two_systems: Path, host: str) -> None:
    succeed("ingest")
    line = fail("serve", "--host", host)
    assert f"cannot listen on {host}:8050: " in line
    assert call("serve", "--port", "65536").exit_code == 2


def test_an_empty_token_serves_nobody(two_systems: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a script whose command for a token fails."""
    succeed("ingest")
    monkeypatch.setenv("SWITCHPOINT_TOKEN", "")
    monkeypatch.setattr("dashboard.app.serve", lambda *arguments, **options: None)
    assert "SWITCHPOINT_TOKEN is empty: give a token, or unset it" in fail("serve")


def test_a_malformed_number_of_required_executions_is_refused_at_the_start(
    two_systems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed("ingest")
    succeed("tune")
    monkeypatch.setenv("SWITCHPOINT_REQUIRE_SOAK", "1e4")
    assert "SWITCHPOINT_REQUIRE_SOAK=1e4: not a number" in fail("serve", "--host", "a..b")


def test_a_run_serves_at_another_port_when_the_usual_one_is_taken(
    two_systems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve(database: Path, port: int, **options: str) -> None:
        ports.append(port)
        if port:
            raise app.ListenError("taken")

    ports: list[int] = []
    succeed("ingest")
    monkeypatch.setattr(app, "serve", serve)
    with click.Context(main) as context:
        browse.serve_somewhere(context)
    assert ports == [8050, 0]
