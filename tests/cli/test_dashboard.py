"""What `pipeflow train` keeps and serves of a run for its page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest

from pipeflow.cli import main, training
from pipeflow.dashboard import FILE, read
from pipeflow.tracking.records import Record
from tests.cli.small import FLAGS, rows_of


def trained(*words: str) -> int:
    return main(["train", "ppo", *FLAGS, "--env", "CartPole-v1", "--quiet", "--logdir", "run", *words])


def test_every_run_is_kept() -> None:
    assert trained("--steps", "300") == 0
    view = read(Path("run") / FILE)
    assert (view.title, view.engine) == ("ppo on CartPole-v1", "inline")
    assert view.ending is not None
    assert view.ending.how == "finished"
    latest = view.snapshots[-1]
    assert latest.steps == int(rows_of(Path("run"))[-1]["steps"])
    assert latest.nodes[-1].items_out == 3
    assert {"policy_loss", "recent_return"} <= {name for one in view.snapshots for name in one.curves}


def test_the_page_is_served_while_the_run_is_trained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, object]] = []

    class Reader:
        """Opens the page at the first update."""

        def record(self, record: Record, /) -> None:
            if not told:
                (url,) = re.findall(
                    r"^page (http://127\.0\.0\.1:\d+/)$", capsys.readouterr().out, re.MULTILINE
                )
                with urlopen(f"{url}run.json") as answer:
                    told.append(json.load(answer))

        def close(self) -> None:
            """Nothing."""

    def display(steps: int, quiet: bool) -> Reader:
        return Reader()

    monkeypatch.setattr(training, "display", display)
    monkeypatch.setattr("pipeflow.dashboard.live.LINGER", 0.0)
    assert trained("--steps", "300", "--dashboard") == 0
    assert [(one["title"], one["ending"]) for one in told] == [("ppo on CartPole-v1", None)]


def test_what_ended_the_run_is_kept() -> None:
    environment = ("--env", "tests.cli.environments:Misbehaving-v0", "--env-kwargs", "fault=exception")
    assert main(["train", "ppo", *FLAGS, *environment, "--quiet", "--logdir", "run", "--steps", "9999"]) == 1
    ending = read(Path("run") / FILE).ending
    assert ending is not None
    assert ending.how == "failed"
    assert ending.message.startswith("StageError: ")


def test_the_page_goes_on_where_the_run_does() -> None:
    assert trained("--steps", "300") == 0
    before = read(Path("run") / FILE)
    assert main(["train", "--resume", "run", "--steps", "600", "--quiet"]) == 0
    after = read(Path("run") / FILE)
    assert after.snapshots[: len(before.snapshots)] == before.snapshots
    assert after.snapshots[-1].steps == int(rows_of(Path("run"))[-1]["steps"]) >= 600
