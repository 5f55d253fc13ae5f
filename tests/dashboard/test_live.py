"""`serve` hands on the items of a run and tells the page of each."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

from pipeflow.dashboard import FILE, read, serve
from pipeflow.dashboard.live import numbers_of
from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats
from tests.dashboard.plans import small_plan


def test_the_items_are_the_runs_and_the_page_shows_them(tmp_path: Path) -> None:
    plan = small_plan()
    with plan.run() as run, serve(run, plan, title="mine", folder=tmp_path) as page:
        items = [next(page) for _ in range(3)]
        with urlopen(f"{page.url}run.json") as answer:
            told = json.load(answer)
    assert items == [{"loss": 0.5}, {"loss": 0.5}, {"loss": 0.25}]
    assert (told["title"], told["engine"], told["ending"]) == ("mine", "inline", None)
    kept = read(tmp_path / FILE)
    assert kept.ending is not None
    assert kept.snapshots[-1].nodes[3].items_out == 3


def test_an_error_in_the_loop_is_the_runs_ending(tmp_path: Path) -> None:
    def consume() -> float:
        plan = small_plan()
        with plan.run() as run, serve(run, plan, folder=tmp_path) as page:
            return next(page)["reward"]

    with pytest.raises(KeyError):
        consume()
    ending = read(tmp_path / FILE).ending
    assert ending is not None
    assert (ending.how, ending.message) == ("failed", "KeyError: 'reward'")


def test_a_port_that_is_taken_leaves_nothing_behind() -> None:
    plan = small_plan()
    with plan.run() as run, serve(run, plan) as page:
        port = int(page.url.rstrip("/").rpartition(":")[2])
        with pytest.raises(OSError, match=f"port {port}"):
            serve(run, plan, port=port)
    assert "pipeflow dashboard" not in {thread.name for thread in threading.enumerate()}


def test_the_numbers_of_a_report_are_its_episodes_and_its_metrics() -> None:
    episodes = EpisodeStats(np.array([10.0, 30.0]), np.array([5, 15]))
    report = Report(3, 20, 60, episodes, {"policy_loss": -0.5})
    assert numbers_of(report) == (
        {"episode_return": 20.0, "episode_length": 10.0, "policy_loss": -0.5},
        60,
    )


@pytest.mark.parametrize(
    ("item", "curves"), [(3, {"value": 3.0}), ("word", {}), ({"a": 1, "b": "c"}, {"a": 1.0})]
)
def test_other_items_give_what_numbers_they_have(item: object, curves: dict[str, float]) -> None:
    assert numbers_of(item) == (curves, 0)
