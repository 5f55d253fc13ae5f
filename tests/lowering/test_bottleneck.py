"""Which node is named as the bottleneck, and what is to be tried, for every kind of it."""

from __future__ import annotations

import time
from typing import Literal

import pytest

from pipeflow.dsl import actors, from_items, gather_rounds
from pipeflow.lowering.bottleneck import Bottleneck
from pipeflow.lowering.engines.ray import Ray
from pipeflow.lowering.stats import GroupStats, NodeStats, Role, RunStats


def node(name: str, busy: float, role: Role = "driver", group: str = "", waiting: float = 0.0) -> NodeStats:
    groups = (group,) if group else ()
    return NodeStats(name, "flows/plan.py:7", 5, 5, busy, waiting, 0, role=role, groups=groups)


def bottleneck(
    *nodes: NodeStats,
    groups: tuple[GroupStats, ...] = (),
    reading: float = 0.0,
    concurrent: bool = True,
    starting: float = 0.0,
) -> Bottleneck:
    """The bottleneck of a run of ten seconds."""
    found = RunStats("ray", nodes, 0, (), 0, groups, 10.0, reading, concurrent, starting).bottleneck
    assert found is not None
    return found


SAMPLE = "Worker.produce(Worker.sample)"
UPDATE = "Learner.stage(Learner.update)"


def sampling_and_learning(sampling: float, learning: float, barrier: bool = False) -> Bottleneck:
    """Of four workers and a learner, which were busy for parts of the time."""
    return bottleneck(
        node(SAMPLE, 40 * sampling, "shard", "Worker"),
        node("gather_rounds()", 0, "barrier", waiting=4)
        if barrier
        else node("gather_async(2)", 0, waiting=4),
        node(UPDATE, 10 * learning, "stage", "Learner"),
        groups=(GroupStats("Worker", 4, 40 * sampling), GroupStats("Learner", 1, 10 * learning)),
    )


def test_busy_workers_want_more_workers_or_environments() -> None:
    found = sampling_and_learning(0.9, 0.3)
    assert (found.node.name, found.place) == (SAMPLE, "Worker × 4")
    assert found.busy_share == pytest.approx(0.9)
    assert found.advice == "more actors in Worker (it has 4), or more environments in each"


def test_a_busy_learner_wants_less_work_or_a_gpu() -> None:
    found = sampling_and_learning(0.3, 0.95)
    assert (found.node.name, found.place) == (UPDATE, "Learner × 1")
    assert found.busy_share == pytest.approx(0.95)
    assert found.advice == "larger minibatches, fewer epochs, a GPU for Learner, or more learners than one"


def test_workers_and_a_learner_that_take_turns_at_a_barrier_could_overlap() -> None:
    found = sampling_and_learning(0.55, 0.4, barrier=True)
    assert found.node.name == SAMPLE
    assert (
        found.advice
        == "gather_async() for gather_rounds() (plan.py:7), where Worker waits while Learner works; "
        "its items may be of older weights"
    )


@pytest.mark.parametrize(("sampling", "learning", "named"), [(0.9, 0.1, SAMPLE), (0.1, 0.9, UPDATE)])
def test_what_is_busy_all_the_time_is_named_whatever_barrier_there_is(
    sampling: float, learning: float, named: str
) -> None:
    found = sampling_and_learning(sampling, learning, barrier=True)
    assert found.node.name == named
    assert "gather_async" not in found.advice


def test_without_a_barrier_nobody_takes_turns() -> None:
    assert sampling_and_learning(0.3, 0.6).advice.startswith("larger minibatches")


def test_where_nobody_is_busy_the_calls_are_too_small_or_too_few() -> None:
    found = sampling_and_learning(0.1, 0.2)
    assert found.node.name == UPDATE
    assert found.advice == (
        "more items in flight, gather_async(n) and max_in_flight(n), or larger items, so that one call does more"
    )


def test_behind_a_barrier_more_in_flight_is_said_to_make_items_of_older_weights() -> None:
    found = sampling_and_learning(0.1, 0.2, barrier=True)
    assert found.node.name == UPDATE
    assert found.advice == (
        "larger items, so that one call does more; or, where items may be of older weights, "
        "more items in flight, gather_async(n) and max_in_flight(n)"
    )


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_run_that_took_longer_to_start_than_to_work_is_too_short_to_judge_by(concurrent: bool) -> None:
    found = bottleneck(
        node(SAMPLE, 4, "shard", "Worker"),
        groups=(GroupStats("Worker", 1, 4),), concurrent=concurrent, starting=4.5,
    )  # fmt: skip
    assert found.busy_share == pytest.approx(0.4)
    assert found.advice == "a longer run, to judge by: 45% of the time went into starting the actors"


def test_a_stage_on_the_driver_that_is_always_busy_belongs_on_an_actor() -> None:
    found = bottleneck(
        node(SAMPLE, 10, "shard", "Worker"), node("normalise", 8.5), groups=(GroupStats("Worker", 4, 10),)
    )
    assert (found.node.name, found.place, found.busy_share) == ("normalise", "the driver", 0.85)
    assert found.advice == (
        "place it on an actor, actors(...).stage(...): on the driver everything waits for it"
    )


def test_a_busy_group_of_a_stage_wants_more_actors() -> None:
    found = bottleneck(node("Parse.stage", 27, "stage", "Parse"), groups=(GroupStats("Parse", 3, 27),))
    assert found.advice == "more actors in Parse (it has 3)"


def test_a_plan_that_waits_for_its_reader_says_so() -> None:
    found = bottleneck(
        node(SAMPLE, 10, "shard", "Worker"), groups=(GroupStats("Worker", 4, 10),), reading=6.0
    )
    assert found.advice == "less work between two items, where whoever reads the run spends 60% of the time"


def test_fused_nodes_share_their_actors_and_the_largest_of_them_is_named() -> None:
    found = bottleneck(
        node(SAMPLE, 4, "shard", "Worker"),
        node("gae", 5, "shard", "Worker"),
        node(UPDATE, 7, "stage", "Learner"),
        groups=(GroupStats("Worker", 1, 9), GroupStats("Learner", 1, 7)),
    )
    assert (found.node.name, found.busy_share) == ("gae", 0.9)


@pytest.mark.parametrize(
    ("busiest", "advice"),
    [
        (
            node(SAMPLE, 7, "shard", "Worker"),
            'engine "ray", where 4 actors work at once, or more environments an actor',
        ),
        (node(UPDATE, 7, "stage", "Worker"), "larger minibatches, fewer epochs, or a GPU for Worker"),
    ],
)
def test_in_one_process_the_share_is_of_the_wall_time(busiest: NodeStats, advice: str) -> None:
    found = bottleneck(busiest, node("print", 1), groups=(GroupStats("Worker", 4, 7),), concurrent=False)
    assert (found.node, found.busy_share, found.advice) == (busiest, 0.7, advice)


def test_in_one_process_a_stage_of_the_driver_is_one_like_another() -> None:
    found = bottleneck(node("normalise", 7), concurrent=False)
    assert found.advice == 'make it cheaper; on engine "ray", place it on an actor'


def test_in_one_process_small_items_are_outweighed_by_passing_them_on() -> None:
    found = bottleneck(node("negate", 2), concurrent=False)
    assert found.advice == (
        "larger items, so that one call does more: most of the time goes into passing them and messages on"
    )


def test_a_run_in_which_nothing_was_busy_has_none() -> None:
    assert RunStats("inline", (node("from_items", 0),), wall_seconds=1).bottleneck is None
    assert (from_items([1]) | abs).run().stats().bottleneck is None


def test_it_prints_as_where_and_what_to_try() -> None:
    assert str(sampling_and_learning(0.9, 0.3)) == (
        "bottleneck: Worker.produce(Worker.sample) (plan.py:7), Worker × 4 busy 90%\n"
        "try: more actors in Worker (it has 4), or more environments in each"
    )


class SlowToStart:
    def __init__(self) -> None:
        time.sleep(0.05)

    def make(self) -> int:
        return 1


def test_the_time_in_which_actors_start_is_counted_apart() -> None:
    first, later = starting("inline")
    assert 0.1 <= first.starting_seconds <= first.wall_seconds
    assert later.since(first).starting_seconds == 0


@pytest.mark.ray
def test_on_ray_it_lasts_until_the_last_actor_has_started(ray_runtime: None) -> None:
    first, later = starting(Ray())
    assert 0.05 <= first.starting_seconds <= first.wall_seconds
    assert later.since(first).starting_seconds == 0


def starting(engine: Literal["inline"] | Ray) -> tuple[RunStats, RunStats]:
    """The figures after the first item, which say that the run is too short to judge by, and after the second."""
    with (actors(SlowToStart, 2).produce(SlowToStart.make) | gather_rounds() | len).run(engine) as run:
        next(run)
        first = run.stats()
        next(run)
        later = run.stats()
    found = first.bottleneck
    assert found is not None
    assert found.advice.startswith("a longer run, to judge by: ")
    return first, later


class Sleeper:
    """Makes items slowly, and takes them slowly."""

    def make(self) -> int:
        time.sleep(0.01)
        return 1

    def take(self, items: list[int]) -> int:
        time.sleep(0.03)
        return len(items)


def pause(number: int) -> int:
    time.sleep(0.04)
    return number


def test_the_slowest_of_a_plan_in_one_process_is_found() -> None:
    makers, takers = actors(Sleeper, 2), actors(Sleeper, 1)
    plan = makers.produce(Sleeper.make) | gather_rounds() | takers.stage(Sleeper.take) | pause
    with plan.run() as run:
        next(run)
        found = run.stats().bottleneck
    assert found is not None
    assert (found.node.name, found.place) == ("pause", "the driver")


@pytest.mark.ray
def test_the_busiest_of_a_plan_on_ray_is_found(ray_runtime: None) -> None:
    takers = actors(Sleeper, 1)
    plan = from_items([[1]] * 20) | takers.stage(Sleeper.take).max_in_flight(4) | abs
    with plan.run(Ray()) as run:
        for _ in run:
            pass
        stats = run.stats()
    assert stats.concurrent
    assert [(group.name, group.actors) for group in stats.groups] == [("Sleeper", 1)]
    assert stats.groups[0].busy_seconds >= 0.6
    found = stats.bottleneck
    assert found is not None
    assert (found.node.name, found.place) == ("Sleeper.stage(Sleeper.take)", "Sleeper × 1")


def test_a_stage_in_the_shards_of_two_groups_counts_in_both() -> None:
    first, second = actors(Sleeper, 2), actors(Sleeper, 1)
    shards = first.produce(Sleeper.make) & second.produce(Sleeper.make)
    with (shards | pause | gather_rounds() | len).run() as run:
        next(run)
        stats = run.stats()
    assert [node.groups for node in stats.nodes] == [
        ("Sleeper",), ("Sleeper#2",), ("Sleeper", "Sleeper#2"), ("Sleeper", "Sleeper#2"), (), (),
    ]  # fmt: skip
    assert [(group.name, group.actors) for group in stats.groups] == [("Sleeper", 2), ("Sleeper#2", 1)]
    assert stats.groups[0].busy_seconds >= 0.1
    assert stats.groups[1].busy_seconds >= 0.05
    assert sum(group.busy_seconds for group in stats.groups) == pytest.approx(
        sum(node.busy_seconds for node in stats.nodes if node.groups)
    )
