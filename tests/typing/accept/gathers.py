"""Sequencing: `gather_sync`, `gather_async`, `gather_rounds`, and the sources that they can deliver."""

from __future__ import annotations

from typing import assert_type

from pipeflow import (
    Gather,
    Source,
    Sourced,
    Stream,
    batch,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    max_lag,
    take,
)
from pipeflow.dsl.sources import Shard
from tests.typing.domain import RolloutWorker, Trajectories, workers

rollouts = workers.produce(RolloutWorker.sample)


def gather_sync_delivers_items() -> Stream[Trajectories]:
    return assert_type(rollouts | gather_sync(), Stream[Trajectories])


def gather_async_delivers_items() -> Stream[Trajectories]:
    return assert_type(rollouts | gather_async(2), Stream[Trajectories])


def gather_rounds_delivers_lists() -> Stream[list[Trajectories]]:
    return assert_type(rollouts | gather_rounds(), Stream[list[Trajectories]])


def gathers_take_what_a_stage_made() -> Stream[list[int]]:
    return assert_type(from_shards([[1, 2], [3, 4]]) | batch(2) | gather_async(), Stream[list[int]])


def with_source_tells_the_class_of_the_actor() -> Stream[Sourced[Trajectories, RolloutWorker]]:
    sourced = rollouts | gather_async(2).with_source()
    return assert_type(sourced, Stream[Sourced[Trajectories, RolloutWorker]])


def with_source_of_a_synchronous_gather() -> Stream[Sourced[int, Shard[int]]]:
    return assert_type(
        from_shards([[1], [2]]) | gather_sync().with_source(), Stream[Sourced[int, Shard[int]]]
    )


def a_sourced_item_has_both_parts() -> Stream[tuple[int, Source[RolloutWorker]]]:
    sourced = rollouts | gather_sync().with_source() | take(2)
    return assert_type(
        sourced.map(lambda pair: (pair.item.steps, pair.source)), Stream[tuple[int, Source[RolloutWorker]]]
    )


def a_sourced_item_may_have_several_sources() -> Stream[tuple[Source[RolloutWorker], ...]]:
    sourced = rollouts | gather_sync().with_source() | batch(2)
    return assert_type(sourced.map(lambda pair: pair.sources), Stream[tuple[Source[RolloutWorker], ...]])


def max_lag_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(rollouts | gather_async(2) | max_lag(3, wait=True), Stream[Trajectories])


def a_gather_has_no_type_of_items() -> Gather:
    return assert_type(gather_sync().named("barrier"), Gather)
