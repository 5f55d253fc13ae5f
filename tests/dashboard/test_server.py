"""The server answers this machine, changes nothing, and lets the browser load nothing from elsewhere."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files

import pytest

from pipeflow.dashboard.server import PageServer
from pipeflow.dashboard.views import Ending
from tests.dashboard.plans import snapshot, view

VIEW = view(snapshot(1, 10, loss=0.5), snapshot(2, 20, loss=0.25))
OWN_FILES = [
    file
    for file in (files("pipeflow.dashboard") / "static").iterdir()
    if file.name.endswith((".js", ".css", ".html"))
]


@pytest.fixture
def server() -> Iterator[PageServer]:
    server = PageServer(lambda: VIEW)
    yield server
    server.close()


def ask(
    server: PageServer, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_the_page_and_all_that_it_names_are_there(server: PageServer) -> None:
    status, headers, body = ask(server, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    named = re.findall(r'(?:src|href)="([^"]+)"', body.decode())
    for script in (file for file in OWN_FILES if file.name.endswith(".js")):
        named += re.findall(r'from "\./([^"]+)"', script.read_text())
    assert len(named) > 10
    assert {ask(server, f"/{name}")[0] for name in named} == {200}


def test_the_run_is_told_whole_and_then_what_is_new(server: PageServer) -> None:
    _, headers, body = ask(server, "/run.json")
    told = json.loads(body)
    assert headers["Content-Type"] == "application/json"
    assert (told["title"], len(told["plan"]["nodes"]), len(told["snapshots"])) == ("small", 5, 2)
    told = json.loads(ask(server, "/run.json?after=1")[2])
    assert "plan" not in told
    assert [one["seconds"] for one in told["snapshots"]] == [2]
    assert told["latest"]["curves"] == {"loss": 0.25}


def test_what_is_no_number_of_seconds_is_refused(server: PageServer) -> None:
    assert ask(server, "/run.json?after=x")[::2] == (400, b"after is a number of seconds\n")


@pytest.mark.parametrize(
    "path", ["/../server.py", "/%2e%2e/server.py", "//etc/passwd", "/vendor", "/vendor/", "/page.js/", "/run"]
)
def test_nothing_else_can_be_asked_for(path: str, server: PageServer) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8080", "127.0.0.1:1", "LOCALHOST"])
def test_this_machine_is_answered_under_any_port_of_a_tunnel(host: str, server: PageServer) -> None:
    assert ask(server, "/run.json", host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "user@evil.example",
        "",
        "[",
        "10.0.0.7",
    ],
)
def test_another_name_for_this_machine_is_not(host: str, server: PageServer) -> None:
    status, _, body = ask(server, "/run.json", host=host)
    assert status == 421
    assert b"small" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_nothing_but_get_is_answered(method: str, server: PageServer) -> None:
    status, headers, _ = ask(server, "/run.json", method)
    assert (status, headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize("path", ["/", "/run.json", "/nothing", "/vendor/uplot/uPlot.iife.min.js"])
def test_every_answer_is_for_this_page_alone(path: str, server: PageServer) -> None:
    headers = ask(server, path)[1]
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in headers


def test_what_is_no_request_is_refused_in_plain_text(server: PageServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"<script>alert(1)</script>\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(4096):
            answer += part
    assert b"<html" not in answer.lower()


def test_it_listens_on_the_loopback_alone(server: PageServer) -> None:
    assert server._server.server_address == ("127.0.0.1", server.port)


def test_a_port_that_is_taken_is_an_error_that_says_so(server: PageServer) -> None:
    with pytest.raises(
        OSError, match=rf"^port {server.port} of 127\.0\.0\.1 cannot be used: Address already in"
    ):
        PageServer(lambda: VIEW, server.port)


def test_nothing_of_it_is_left() -> None:
    server = PageServer(lambda: VIEW)
    ask(server, "/")
    port = server.port
    server.close()
    assert "pipeflow dashboard" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_page_that_is_open_hears_how_the_run_ended() -> None:
    shown = VIEW
    server = PageServer(lambda: shown)
    ask(server, "/run.json")
    shown = replace(VIEW, ending=Ending("finished", 1002.0))
    heard: list[object] = []
    page = threading.Thread(
        target=lambda: heard.append(json.loads(ask(server, "/run.json?after=2")[2])["ending"])
    )
    closing = threading.Thread(target=server.close, args=(30.0,))
    closing.start()
    page.start()
    closing.join(20.0)
    page.join(20.0)
    assert not closing.is_alive()
    assert heard == [{"how": "finished", "time": 1002.0, "message": ""}]


def test_the_page_names_no_other_host() -> None:
    for file in OWN_FILES:
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, file.name
        assert "innerHTML" not in text, file.name


def test_the_libraries_come_with_their_licences() -> None:
    vendor = files("pipeflow.dashboard") / "static" / "vendor"
    for library in ("dagre", "uplot"):
        assert "Permission is hereby granted" in (vendor / library / "LICENSE").read_text()
