"""Figures are worked out between two readings, and so is the bottleneck."""

from __future__ import annotations

import pytest

from pipeflow.dashboard.snapshots import Bottleneck, NodeFigures, Reading, bottleneck, figures, window_between
from pipeflow.lowering.stats import GroupStats, NodeStats, RunStats

SAMPLE, GATHER, UPDATE = range(3)


def reading(seconds: float, *, concurrent: bool = True, sample: float = 0.0, update: float = 0.0) -> Reading:
    """Readings of two workers and a learner, where a second brings ten items and a second of waiting."""
    items = int(10 * seconds)
    nodes = (
        NodeStats("sample", "a.py:1", items, items, sample, seconds, 2, 1.5, 3, "shard", ("Worker",)),
        NodeStats("gather", "a.py:2", items, items, 0.0, seconds, 2),
        NodeStats("update", "a.py:3", items, items, update, seconds, 2, role="stage", groups=("Learner",)),
    )
    groups = (GroupStats("Worker", 2, sample), GroupStats("Learner", 1, update))
    return Reading(
        seconds, RunStats("ray", nodes, groups=groups, wall_seconds=seconds, concurrent=concurrent)
    )


def test_rates_are_those_between_the_readings() -> None:
    found = figures(window_between(reading(10, sample=8.0, update=5.0), reading(14, sample=12.0, update=7.0)))
    assert found[SAMPLE] == NodeFigures(140, 140, 10.0, 0.5, 1.0, 14.0, 2, 1.5, 3)  # 4 s of 2 actors' 8 s
    assert found[UPDATE].busy == 0.5  # 2 s of one actor's 4 s
    assert found[GATHER].busy == 0.0


def test_in_one_process_all_actors_share_its_time() -> None:
    found = figures(window_between(reading(0, concurrent=False), reading(4, concurrent=False, sample=3.0)))
    assert found[SAMPLE].busy == 0.75


def test_a_share_is_at_most_one_and_no_time_has_no_rate() -> None:
    late = figures(
        window_between(reading(1), reading(2, update=30.0))
    )  # a call of 30 s that ended in this second
    assert late[UPDATE].busy == 1.0
    still = figures(window_between(reading(1), reading(1, update=1.0)))
    assert (still[UPDATE].per_second, still[UPDATE].busy) == (0.0, 0.0)


def test_the_bottleneck_is_the_one_of_the_window_and_not_of_the_run() -> None:
    before, now = reading(10, sample=19.0), reading(14, sample=20.0, update=3.6)
    assert now.stats.bottleneck is not None
    assert now.stats.bottleneck.node.name == "sample"
    found = bottleneck(window_between(before, now))
    assert found.node == UPDATE
    assert found.busy == pytest.approx(0.9)
    assert found.advice.startswith("Try ")


def test_without_work_there_is_none() -> None:
    assert bottleneck(window_between(reading(1), reading(2))) == Bottleneck(None, 0.0, "No stage was busy.")
