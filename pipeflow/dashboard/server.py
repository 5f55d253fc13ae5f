"""The page's web server: files of the package and one run as JSON, for this machine alone.

Apart from the recording, which makes the views that are served here. A page of a run is nobody else's business:
the server listens on the loopback, answers only what calls it by that name (so that no foreign web page can have
its own name resolved to it), changes nothing, and tells the browser to load nothing from elsewhere.
"""

from __future__ import annotations

import json
import logging
import math
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from typing_extensions import override

from pipeflow.dashboard.encoding import changes, header
from pipeflow.dashboard.views import RunView
from pipeflow.state.values import Json

LOOPBACK = "127.0.0.1"
_NAMES = (LOOPBACK, "localhost")
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_READ_SECONDS = 10.0  # a connection that says nothing for so long is closed
_OPEN_SECONDS = 3.0  # a page that asked so short a time ago is still open: it asks every second

_LOGGER = logging.getLogger(__name__)


class PageServer:
    """Serves a run's page until it is closed. view: what the run looks like now; called by other threads.

    Raises OSError if the port cannot be taken.
    """

    def __init__(self, view: Callable[[], RunView], port: int = 0) -> None:
        try:
            self._server = _Server(view, port)
        except OSError as error:
            message = (
                f"port {port} of {LOOPBACK} cannot be used: {error.strerror}; leave it out for a free one"
            )
            raise OSError(message) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="pipeflow dashboard", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.port}/"

    def close(self, linger: float = 0.0) -> None:
        """Stop. linger: seconds to wait at most until a page that is open has seen how the run ended."""
        if time.monotonic() - self._server.asked_at < _OPEN_SECONDS:
            self._server.told_ending.wait(linger)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """asked_at: when a page last asked for the run. told_ending: one was told how the run ended."""

    daemon_threads = True

    def __init__(self, view: Callable[[], RunView], port: int) -> None:
        self.view = view
        self.files = _static_files()
        self.asked_at = -math.inf
        self.told_ending = threading.Event()
        super().__init__((LOOPBACK, port), _Handler)

    @override
    def server_bind(self) -> None:
        # HTTPServer's own asks for the host's name, which may take a name server's time.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    # `Any`: what socketserver calls a request is a socket here, and its signature says so nowhere.
    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # else the browser has gone
            _LOGGER.exception("the dashboard could not answer")


class _Handler(BaseHTTPRequestHandler):
    # A handler is only ever made by the server that it is the handler of.
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = _READ_SECONDS
    server_version, sys_version = "pipeflow", ""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if not self._is_for_this_machine():
            self._say(HTTPStatus.MISDIRECTED_REQUEST, "this page is served to 127.0.0.1 and localhost alone")
        elif url.path == "/run.json":
            self._send_run(url.query)
        elif (found := self.server.files.get(url.path)) is not None:
            self._send(HTTPStatus.OK, *found)
        else:
            self._say(HTTPStatus.NOT_FOUND, "there is no such page")

    def _refuse(self) -> None:
        self._say(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered", {"Allow": "GET"})

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse

    def _is_for_this_machine(self) -> bool:
        hosts = self.headers.get_all("Host", [])
        try:
            return len(hosts) == 1 and urlsplit(f"//{hosts[0]}").hostname in _NAMES
        except ValueError:
            return False

    def _send_run(self, query: str) -> None:
        """The run: all of it, or with `after` what is new since so many seconds."""
        asked = parse_qs(query).get("after")
        try:
            after = -math.inf if asked is None else float(asked[0])
        except ValueError:
            self._say(HTTPStatus.BAD_REQUEST, "after is a number of seconds")
            return
        view = self.server.view()
        self.server.asked_at = time.monotonic()
        content: dict[str, Json] = {} if asked is not None else header(view)
        content |= {**changes(view, after), "now": time.time()}
        body = json.dumps(content, allow_nan=False).encode()
        self._send(HTTPStatus.OK, "application/json", body)
        if view.ending is not None:
            self.server.told_ending.set()

    def _say(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{message}\n".encode(), headers)

    def _send(self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        sent = {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}
        for name, value in sent.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    @override
    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses is said in plain text too."""
        self._send(code, "text/plain; charset=utf-8", f"{message or HTTPStatus(code).phrase}\n".encode())

    # `Any`: the standard library's signature.
    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a terminal that shows a run has no place for requests."""


def _static_files() -> dict[str, tuple[str, bytes]]:
    """The package's files by their paths on the server; no other can be asked for."""
    found: dict[str, tuple[str, bytes]] = {}

    def add(folder: Traversable, path: str) -> None:
        for entry in folder.iterdir():
            suffix = f".{entry.name.rpartition('.')[2]}"
            if entry.is_dir():
                add(entry, f"{path}{entry.name}/")
            elif suffix in _TYPES:
                found[f"{path}{entry.name}"] = _TYPES[suffix], entry.read_bytes()

    add(files("pipeflow.dashboard") / "static", "/")
    found["/"] = found["/index.html"]
    return found
