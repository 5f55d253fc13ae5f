"""What the tests of `pipeflow check` have in common: modules for it to look at, and what it says of them."""

from __future__ import annotations

import pytest

from pipeflow.cli import main

HEAD = """\
from __future__ import annotations

from pipeflow import Stream, actors, drain, from_items, gather_sync, take
from tests.typing.domain import RolloutWorker, Trajectories, gae, workers

"""
LINES = HEAD.count("\n")
FAULTY = HEAD + "plan = from_items([1]) | take(0)\n"
MESSAGE = "take(0) lets nothing pass, and nothing before it is asked for an item; take 1 or more"


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> str:
    assert main(["check", "--no-types", *words]) == code
    captured = capsys.readouterr()
    return captured.err if code == 2 else captured.out
