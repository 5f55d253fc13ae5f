"""Sources: `from_items`, `from_shards` and `Actors.produce`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

from pipeflow import ParallelStream, Stream, from_items, from_shards
from pipeflow.dsl.sources import Shard
from tests.typing.domain import (
    EvaluationWorker,
    Replay,
    RolloutWorker,
    Trajectories,
    Transitions,
    evaluators,
    replay,
    workers,
)


def from_items_has_the_type_of_the_items() -> Stream[int]:
    return assert_type(from_items([1, 2, 3]), Stream[int])


def from_items_takes_any_iterable() -> Stream[str]:
    def letters() -> Iterator[str]:
        yield from "abc"

    return assert_type(from_items(letters()), Stream[str])


def from_items_of_two_types_is_a_stream_of_their_union() -> Stream[int | str]:
    mixed: list[int | str] = [1, "two"]
    return assert_type(from_items(mixed), Stream[int | str])


def from_shards_is_parallel_in_actors_of_its_own() -> ParallelStream[int, Shard[int]]:
    return assert_type(from_shards([[1, 2], [3]]), ParallelStream[int, Shard[int]])


def from_shards_takes_any_iterable_of_iterables() -> ParallelStream[int, Shard[int]]:
    return assert_type(from_shards(range(n) for n in (2, 3)), ParallelStream[int, Shard[int]])


def produce_knows_the_items_and_the_class_of_the_actors() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(workers.produce(RolloutWorker.sample), ParallelStream[Trajectories, RolloutWorker])


def produce_strips_not_ready_and_ended() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(workers.produce(RolloutWorker.sample_one), ParallelStream[Trajectories, RolloutWorker])


def produce_strips_not_ready_alone() -> None:
    # Not returned, since nothing would fill this buffer in a run.
    assert_type(replay.produce(Replay.sample), ParallelStream[Transitions, Replay])


def produce_takes_a_method_of_a_base_class() -> ParallelStream[Trajectories, EvaluationWorker]:
    return assert_type(
        evaluators.produce(RolloutWorker.sample_one), ParallelStream[Trajectories, EvaluationWorker]
    )


def produce_takes_a_lambda() -> ParallelStream[int, RolloutWorker]:
    return assert_type(workers.produce(lambda worker: worker.seed), ParallelStream[int, RolloutWorker])


def the_class_of_the_actors_may_be_left_out() -> ParallelStream[Trajectories]:
    return workers.produce(RolloutWorker.sample)
