"""Plans with one fault each, for `pipeflow check` to find.

A function's docstring is the code of the finding; what is printed about it stands in docs/check.md. Those from
PF301 on are only wrong where `--on-policy` claims otherwise.
"""

from __future__ import annotations

import itertools
from typing import Never

from pipeflow import (
    Stream,
    actors,
    batch,
    drain,
    every,
    from_items,
    gather_async,
    gather_rounds,
    gather_sync,
    max_lag,
    sync_weights,
    take,
)
from tests.typing.domain import (
    Advantages,
    DQNLearner,
    EvaluationWorker,
    PPOLearner,
    Replay,
    Report,
    RolloutWorker,
    TDReport,
    Trajectories,
    Transitions,
    gae,
    long_enough,
    transitions,
)


class Recordings:
    """Gives back what was recorded long ago."""

    def sample(self) -> Trajectories:
        return Trajectories(8)


workers = actors(RolloutWorker, 2, 7)
evaluators = actors(EvaluationWorker, 1, 7)
learner = actors(PPOLearner, 1, 3e-4)
dqn_learner = actors(DQNLearner, 1, 1e-3)
replay = actors(Replay, 2, 100)


def used_twice() -> Stream[int]:
    """PF100"""
    numbers = from_items([1, 2, 3])
    return numbers & numbers.map(abs)


def an_end_that_feeds_nothing() -> Stream[int]:
    """PF101"""
    kept, _ = from_items([1, 2, 3]).fork(2, buffer=8)
    return kept


def nothing_passes() -> Stream[int]:
    """PF102"""
    return from_items([1, 2, 3]) | take(0)


def every_branch_drained() -> Stream[Never]:
    """PF103"""
    stored = from_items([1, 2, 3]).map(print) | drain
    return (stored & (from_items([4, 5]).map(print) | drain)).round_robin()


def never_reached() -> Stream[int]:
    """PF104"""
    return (from_items(itertools.count()) & from_items([1, 2, 3])).prioritised()


def never_filled() -> Stream[Transitions]:
    """PF105"""
    return replay.produce(Replay.sample) | gather_async()


def a_branch_left_out() -> Stream[Trajectories]:
    """PF106"""
    _evaluation = evaluators.produce(EvaluationWorker.sample) | gather_sync()
    return workers.produce(RolloutWorker.sample) | gather_sync()


def actors_left_out() -> Stream[Trajectories]:
    """PF107"""
    _store = actors(Replay, 2, 100)
    return workers.produce(RolloutWorker.sample) | gather_sync()


def an_end_without_effect() -> Stream[int]:
    """PF108"""
    kept, seen = from_items([1, 2, 3]).fork(2, buffer=8)
    return kept & (seen | batch(2) | drain)


def one_end_faster() -> Stream[tuple[int, int]]:
    """PF111"""
    left, right = from_items(range(100)).fork(2, buffer=8)
    return left.zip(right | every(2))


def a_short_buffer() -> Stream[int]:
    """PF112"""
    left, right = from_items(range(100)).fork(2, buffer=4)
    return (left & right).round_robin(8, 8)


def a_partition_in_turns() -> Stream[Trajectories]:
    """PF113"""
    sampled = workers.produce(RolloutWorker.sample) | gather_sync()
    long, short = sampled.partition(long_enough, buffer=8)
    return (long & short).round_robin()


def another_variant() -> Stream[Report]:
    """PF201"""
    return (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers.restarts(3))
    )


def weights_for_nobody() -> Stream[Report]:
    """PF202"""
    return (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
        | sync_weights(learner, evaluators)
    )


def weights_that_never_change() -> Stream[Trajectories]:
    """PF203"""
    return workers.produce(RolloutWorker.sample) | gather_async() | sync_weights(learner, workers)


def never_updated() -> Stream[Report]:
    """PF204"""
    return (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
    )


def stored_and_never_updated() -> Stream[TDReport]:
    """PF204"""
    store = workers.produce(RolloutWorker.sample) | transitions | gather_sync() | replay.stage(Replay.add)
    learn = replay.produce(Replay.sample) | gather_async() | dqn_learner.stage(DQNLearner.update)
    return (store | drain) & learn


def lag_that_nothing_counts() -> Stream[Trajectories]:
    """PF205"""
    return workers.produce(RolloutWorker.sample) | gather_async() | max_lag(1)


def sent_before_the_update() -> Stream[Report]:
    """PF206"""
    return (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | sync_weights(learner, workers)
        | learner.stage(PPOLearner.update)
    )


def as_they_come() -> Stream[Report]:
    """PF301"""
    return (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_async()
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
    )


def an_update_an_item() -> Stream[Report]:
    """PF302"""
    return (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_sync()
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
    )


def a_round_ahead() -> Stream[Report]:
    """PF303"""
    return (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update).max_in_flight(2)
        | sync_weights(learner, workers)
    )


def every_other_update() -> Stream[Report]:
    """PF304"""
    return (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers, every=2)
    )


def sent_by_the_clock() -> Stream[Report | int]:
    """PF305"""
    updates = (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
    )
    return updates & (from_items(itertools.count()) | sync_weights(learner, workers))


def learnt_from_recordings() -> Stream[Report]:
    """PF306"""
    fresh = workers.produce(RolloutWorker.sample) | gather_rounds() | Trajectories.concatenate
    recorded = actors(Recordings, 1).produce(Recordings.sample) | gather_sync()
    return (
        (fresh & recorded).round_robin()
        | gae()
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
    )
