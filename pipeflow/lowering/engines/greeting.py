"""A first look at an address: whether what listens there can be a Ray at all, within seconds and without Ray."""

from __future__ import annotations

import os
import socket

_PROBE_SECONDS = 5.0
# How a connection in HTTP/2 begins, with an empty frame of settings, and the type of frame that answers it.
_HTTP2_SETTINGS = b"\x04"
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00" + _HTTP2_SETTINGS + bytes(5)


def check_greeting(address: str) -> None:
    """Raise `OSError` where nobody listens, or not in HTTP/2 as Ray does: Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or os.environ.get("RAY_USE_TLS") == "1":
        return
    with socket.create_connection((host, int(port)), timeout=_PROBE_SECONDS) as probe:
        probe.sendall(_HTTP2_PREFACE)
        answer = probe.recv(9)
    if answer[3:4] != _HTTP2_SETTINGS:
        message = "what listens there is not Ray; its dashboard, for one, has another port"
        raise ConnectionError(message)
