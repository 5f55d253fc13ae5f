"""Figures are worked out between two readings, and the bottleneck is the busiest actors' largest stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeflow.dashboard.snapshots import NodeFigures, Reading, bottleneck, figures
from pipeflow.lowering.stats import NodeStats, RunStats
from tests.dashboard.plans import graph

SAMPLE, GATHER, DOUBLED, UPDATE, SYNC = range(5)


def reading(seconds: float, engine: str = "ray", **busy: float) -> Reading:
    """Readings of the small plan in which a second brings ten items and a second of waiting."""
    nodes = tuple(
        NodeStats(node.name, node.site, int(10 * seconds), int(10 * seconds), 0.0, seconds, 2, 1.5, 3)
        for node in graph().nodes
    )
    named = {"sample": SAMPLE, "gather": GATHER, "doubled": DOUBLED, "update": UPDATE, "sync": SYNC}
    changed = {named[name]: seconds for name, seconds in busy.items()}
    return Reading(
        seconds,
        RunStats(
            engine,
            tuple(replace(node, busy_seconds=changed.get(index, 0.0)) for index, node in enumerate(nodes)),
        ),
    )


def test_rates_are_those_between_the_readings() -> None:
    found = figures(graph(), reading(10, sample=8.0, update=5.0), reading(14, sample=12.0, update=7.0))
    assert found[SAMPLE] == NodeFigures(140, 140, 10.0, 0.5, 1.0, 14.0, 2, 1.5, 3)  # 4 s of 2 actors' 8 s
    assert found[UPDATE].busy == 0.5  # 2 s of one actor's 4 s
    assert found[GATHER].busy == 0.0


def test_in_one_process_all_actors_share_its_time() -> None:
    found = figures(graph(), reading(0, "inline"), reading(4, "inline", sample=3.0))
    assert found[SAMPLE].busy == 0.75


def test_a_share_is_at_most_one_and_no_time_has_no_rate() -> None:
    late = figures(graph(), reading(1), reading(2, update=30.0))  # a call of 30 s that ended in this second
    assert late[UPDATE].busy == 1.0
    still = figures(graph(), reading(1), reading(1, update=1.0))
    assert (still[UPDATE].per_second, still[UPDATE].busy) == (0.0, 0.0)


def test_counters_that_start_anew_give_no_negative_rate() -> None:
    assert figures(graph(), reading(5, update=4.0), replace(reading(2), seconds=6.0))[UPDATE].busy == 0.0


def of(engine: str, **busy: float) -> tuple[int | None, float, str]:
    found = bottleneck(graph(), figures(graph(), reading(0, engine), reading(1, engine, **busy)), engine)
    return found.node, found.busy, found.advice


def test_the_bottleneck_is_the_largest_stage_of_the_busiest_actors() -> None:
    node, busy, advice = of("ray", sample=1.0, doubled=0.3, update=0.5)  # each worker 50 %, the learner 80 %
    assert node == UPDATE
    assert busy == pytest.approx(0.8)
    assert advice.startswith("Give Learner less to do for an item")


def test_busy_workers_want_more_of_them() -> None:
    node, busy, advice = of("ray", sample=1.8, update=0.3)
    assert node == SAMPLE
    assert busy == pytest.approx(0.9)
    assert advice.startswith("More Worker actors")


def test_what_the_driver_does_wants_to_be_moved() -> None:
    node, _, advice = of("ray", sync=0.9)
    assert node == SYNC
    assert advice == "This runs in the driver. Move it before the gather, or place it on actors of its own."


def test_nobody_who_is_idle_is_a_bottleneck() -> None:
    node, busy, advice = of("ray", sample=0.6, update=0.4)
    assert node is None
    assert busy == pytest.approx(0.4)
    assert "gather_async in place of rounds" in advice


@pytest.mark.parametrize("engine", ["inline", "sim(seed=3)"])
def test_one_process_is_the_bottleneck_of_all_its_actors(engine: str) -> None:
    node, busy, advice = of(engine, sample=0.4, update=0.3, doubled=0.2)
    assert node == UPDATE
    assert busy == pytest.approx(0.5)
    assert "use the Ray engine" in advice
