"""Mistakes that mypy does not see, and where they are caught instead."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import (
    Stream,
    actors,
    batch,
    drain,
    from_items,
    gather_async,
    gather_sync,
    max_lag,
    select_shards,
    take,
)
from tests.typing.domain import RolloutWorker, Trajectories, count, gae, workers


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


def a_function_after_drain() -> None:
    sampled() | drain | count  # E: none
    # R: count would never get an item, since drain .. is drained; put it before the drain


def an_operator_after_drain() -> None:
    sampled() | drain | batch(2)  # E: none
    # R: batch(2) would never get an item, since drain .. is drained; put it before the drain


def a_coroutine_function() -> None:
    async def later(batch: Trajectories) -> int:
        return batch.steps

    sampled() | later  # E: none
    # R: later is a coroutine function; a stage is a plain function


def a_class_whose_constructor_fits() -> None:
    sampled() | str  # E: none
    # R: the class str stands on the right of | .. write .map(str)


def a_class_at_the_end() -> None:
    sampled() | RolloutWorker  # E: none
    # R: the class RolloutWorker stands on the right of | .. write .map(RolloutWorker)


def a_stream_used_twice() -> None:
    stream = from_items([1, 2])
    ((stream | repr) & stream).explain()  # E: none
    # R: from_items .. is used twice, by repr .. and by & .. share its items with .fork


def a_stage_of_another_group_of_the_same_class() -> None:
    others = actors(RolloutWorker, 3, 1)
    workers.produce(RolloutWorker.sample) | gae() | others.stage(RolloutWorker.gradients)  # E: none
    # R: RolloutWorker


def a_count_that_is_negative() -> None:
    take(-1)  # E: none
    # R: none, a ValueError: take(count) must be at least 0, got -1


def a_lag_of_what_is_not_asynchronous() -> None:
    sampled() | max_lag(3)  # E: none
    # R: max_lag(3) knows the lag of what comes right from a gather_async, but gather_sync() .. stands before it


def the_steps_of_a_drained_branch_that_has_none() -> None:
    ((sampled() | count | drain) & sampled()).by_steps(1, 1)  # E: none
    # R: by_steps counts the steps of items, but count .. delivers int, which has none


def scattered_items_as_they_come() -> None:
    sampled() | workers.scatter() | gae() | gather_async()  # E: none
    # R: gather_async(1) would part the shards of RolloutWorker.scatter() .. gather them in rounds


def scattered_items_of_which_some_are_dropped() -> None:
    sampled() | workers.scatter() | take(1) | gather_sync()  # E: none
    # R: take(1) .. may give no output for an item of RolloutWorker.scatter() .. put it behind the gather


def shards_that_are_not_there() -> None:
    workers.produce(RolloutWorker.sample) | select_shards(2)  # E: none
    # R: select_shards(2): RolloutWorker.produce(RolloutWorker.sample) .. has shards 0 to 1
