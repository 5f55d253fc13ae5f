"""`pipeflow show` serves the page of a run's folder until Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from pipeflow.cli import main
from pipeflow.dashboard import FILE
from tests.dashboard.plans import recorded


def asked(url: str) -> dict[str, object]:
    with urlopen(f"{url}run.json") as answer:
        found: dict[str, object] = json.load(answer)
    return found


def test_a_run_is_served_until_ctrl_c(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / FILE, items=3)
    told: list[dict[str, object]] = []
    printed: list[str] = []

    def wait(seconds: float) -> None:
        printed.append(capsys.readouterr().out)
        (url,) = re.findall(r"http://\S+", printed[0])
        told.append(asked(url))
        if len(told) == 2:
            raise KeyboardInterrupt
        # Somebody goes on with the run meanwhile.
        recorded(tmp_path / FILE, items=5)
        os.utime(tmp_path / FILE, (2000.0, 2000.0))

    monkeypatch.setattr("time.sleep", wait)
    assert main(["show", str(tmp_path)]) == 0
    assert re.fullmatch(r"small: http://127\.0\.0\.1:\d+/  \(Ctrl-C ends\)\n", printed[0])
    steps = [one["latest"]["steps"] for one in told if isinstance(one["latest"], dict)]
    assert steps == [30, 50]
    assert "pipeflow dashboard" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "show needs the folder of a run, as in pipeflow show runs/my-run"),
        (["nowhere"], "nowhere does not exist; give the folder of a run, as train printed it"),
        (["."], ". has no dashboard.jsonl in it; give the folder of a run, as train printed it"),
        (
            ["damaged"],
            "damaged/dashboard.jsonl is damaged: line 1: no JSON; the run cannot be shown",
        ),
        (["damaged", "--port", "65536"], "--port must be from 0 to 65535, got 65536"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("damaged").mkdir()
    (Path("damaged") / FILE).write_text("nothing of the kind\n")
    assert main(["show", *words]) == 2
    assert capsys.readouterr().err == f"pipeflow: error: {message}\n"


def test_a_port_that_is_taken_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path / FILE, items=1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["show", str(tmp_path), "--port", str(port)]) != 0
    assert capsys.readouterr().err == (
        f"pipeflow: error: port {port} of 127.0.0.1 cannot be used: Address already in use; "
        "leave it out for a free one\n"
    )
