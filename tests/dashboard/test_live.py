"""`Run.serve` shows a run for as long as it lasts, and leaves its page in a folder where one is given."""

from __future__ import annotations

import gc
import json
import threading
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

from pipeflow.dashboard import FILE, live, read
from pipeflow.dashboard.live import numbers_of
from pipeflow.dsl import take
from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats
from tests.dashboard.plans import small_plan


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_the_page_shows_the_items_that_the_program_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LINGER", 0.0)  # nobody comes back to hear of the end
    with small_plan().run() as run:
        url = run.serve(title="mine", folder=tmp_path)
        items = [next(run) for _ in range(3)]
        with urlopen(f"{url}run.json") as answer:
            told = json.load(answer)
    assert items == [{"loss": 0.5}, {"loss": 0.5}, {"loss": 0.25}]
    assert (told["title"], told["engine"], told["ending"]) == ("mine", "inline", None)
    assert told["latest"]["curves"] == {"loss": 0.5}
    kept = read(tmp_path / FILE)
    assert kept.ending is not None
    assert kept.ending.how == "finished"
    assert kept.snapshots[-1].nodes[3].items_out == 3


def test_the_page_ends_with_the_items_where_no_block_does() -> None:
    run = (small_plan() | take(2)).run()
    run.serve()
    assert len(list(run)) == 2
    assert "pipeflow dashboard" not in threads()


def test_the_page_goes_with_a_run_that_nobody_holds() -> None:
    run = small_plan().run()
    run.serve()
    next(run)
    del run
    gc.collect()
    assert "pipeflow dashboard" not in threads()


@pytest.mark.parametrize(
    ("error", "how", "message"),
    [(KeyError("reward"), "failed", "KeyError: 'reward'"), (KeyboardInterrupt(), "interrupted", "")],
)
def test_what_ends_the_loop_is_the_runs_ending(
    error: BaseException, how: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(type(error)), small_plan().run() as run:  # noqa: PT012  # the block is what is tested
        run.serve(folder=tmp_path)
        next(run)
        raise error
    ending = read(tmp_path / FILE).ending
    assert ending is not None
    assert (ending.how, ending.message) == (how, message)


def test_a_port_that_is_taken_leaves_nothing_behind_and_the_run_goes_on() -> None:
    with small_plan().run() as run, small_plan().run() as other:
        port = int(run.serve().rstrip("/").rpartition(":")[2])
        with pytest.raises(OSError, match=f"port {port}"):
            other.serve(port)
        assert next(other) == {"loss": 0.5}
    assert "pipeflow dashboard" not in threads()


def test_a_run_is_served_once_and_not_when_it_is_closed() -> None:
    with small_plan().run() as run:
        url = run.serve()
        with pytest.raises(RuntimeError, match=f"the run has its page already, {url}"):
            run.serve()
    with pytest.raises(RuntimeError, match="the run is closed"):
        run.serve()


def test_the_numbers_of_a_report_are_its_episodes_and_its_metrics() -> None:
    episodes = EpisodeStats(np.array([10.0, 30.0]), np.array([5, 15]))
    report = Report(3, 20, 60, episodes, {"policy_loss": -0.5})
    assert numbers_of(report) == (
        {"episode_return": 20.0, "episode_length": 10.0, "policy_loss": -0.5},
        60,
    )


@pytest.mark.parametrize(
    ("item", "curves"),
    [
        (3, {"value": 3.0}),
        (np.float32(0.5), {"value": 0.5}),
        ("word", {}),
        ({"a": 1, "b": "c"}, {"a": 1.0}),
    ],
)
def test_other_items_give_what_numbers_they_have(item: object, curves: dict[str, float]) -> None:
    assert numbers_of(item) == (curves, 0)
