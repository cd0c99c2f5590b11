"""The HTTP server: clients that connect and do not send, or do not read, do not block others."""

import resource
import socket
import sys

from flask import Flask
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer, create_server
from waitress.task import WSGITask

from dashboard.web import VIEWS

_THREADS = VIEWS + 16  # most wait
_SWITCH_S = 0.0005
"""When a thread that computes lets others go on, which read the store row by row."""

_PATIENCE_S = 20
"""Seconds that a connection may idle, or a request or a response may take to transfer."""

_CONNECTIONS = 2000
_FILES_EACH = 2  # its socket, and the file that it sends or that its long request is kept in
_OTHER_FILES = 100 + VIEWS  # of the process; every view opens the store


class _Task(WSGITask):
    """An answer after which the connection is closed.

    Requests that follow the first one are dropped: with answers that nobody reads, they would
    fill the buffers of the connection, for whose room a thread waits.
    """

    def build_response_header(self) -> bytes:
        """Return the header as for a client that asks for one answer."""
        self.request.headers["CONNECTION"] = "close"
        return super().build_response_header()


class _Channel(HTTPChannel):
    """A connection with a time limit for its whole request, not only for the next byte."""

    task_class = _Task
    last_activity: float  # by time.time(), as HTTPChannel sets it
    _has_begun = False

    def handle_read(self) -> None:
        """Read the data that arrived; only the first, and the end of a request, are activity.

        Else drops of a request, or blank lines before it, would keep the connection open.
        """
        since = self.last_activity
        super().handle_read()
        is_complete = self.requests or self.close_when_flushed  # as the answer may be there already
        if self._has_begun and not is_complete:
            self.last_activity = since
        self._has_begun = True


def server_on(
    listening: socket.socket, application: Flask, prefix: str = "", patience_s: int = _PATIENCE_S
) -> TcpWSGIServer:
    """Return a server of the application on a socket, ready to run.

    The threads of the process switch sooner from now on.
    """
    sys.setswitchinterval(_SWITCH_S)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux only; its connections inherit it
        listening.setsockopt(socket.SOL_TCP, socket.TCP_USER_TIMEOUT, 1000 * patience_s)
    server = create_server(
        application,
        sockets=[listening],
        threads=_THREADS,
        url_prefix=prefix,
        connection_limit=_affordable(_CONNECTIONS),
        max_request_body_size=application.config["MAX_CONTENT_LENGTH"] + 1,  # before it is read
        asyncore_use_poll=True,  # select() fails beyond 1024 files
        channel_timeout=patience_s,
        log_socket_errors=False,  # clients that went away
        cleanup_interval=max(1, patience_s // 5),
    )
    server.channel_class = _Channel
    return server


def _affordable(connections: int) -> int:
    """Return how many connections the limit of open files allows; raise that limit if possible.

    If accept() found no free file, the server would try again without a pause.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_EACH * connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return connections
    return min(connections, max(soft - _OTHER_FILES, soft // 2) // _FILES_EACH)
