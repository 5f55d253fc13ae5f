"""Streams where a truth value is asked for, likely slips for ``&``. pyright has no such check."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import ParallelStream, Stream, gather_sync
from tests.typing.domain import RolloutWorker, Trajectories, workers


def sharded() -> ParallelStream[Trajectories, RolloutWorker]:
    return workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return sharded() | gather_sync()


def if_a_stream() -> None:
    stream = sampled()
    if stream:  # E: truthy-bool: "stream" has type "Stream[Trajectories]" which does not implement __bool__ or __len__ so it could always be true in boolean context  # P: none
        # R: a stream has no truth value; join streams with &, not with 'and'
        pass


def if_shards() -> None:
    rollouts = sharded()
    if rollouts:  # E: truthy-bool: "rollouts" has type "ParallelStream[Trajectories, RolloutWorker]" which does not implement __bool__ or __len__  # P: none
        # R: a stream has no truth value
        pass


def if_a_call() -> None:
    if sampled():  # E: truthy-bool: sampled" returns "Stream[Trajectories]" which does not implement __bool__ or __len__  # P: none
        # R: a stream has no truth value
        pass


def not_a_stream() -> None:
    stream = sampled()
    not stream  # E: truthy-bool: "stream" has type "Stream[Trajectories]"  # P: none
    # R: a stream has no truth value


def a_stream_and_a_stream() -> None:
    left, right = sampled(), sampled()
    left and right  # E: truthy-bool: "left" has type "Stream[Trajectories]"  # P: none
    # R: a stream has no truth value; join streams with &, not with 'and'


def a_choice() -> None:
    stream = sampled()
    1 if stream else 2  # E: truthy-bool: "stream" has type "Stream[Trajectories]"  # P: none
    # R: a stream has no truth value
