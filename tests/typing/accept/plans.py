"""Whole plans, in the shapes of well-known algorithms, over the small actors of this package's domain."""

from __future__ import annotations

from typing import assert_type

from pipeflow import (
    Merged,
    Stream,
    batch,
    concat,
    drain,
    every,
    expand,
    flatten,
    gather_async,
    gather_rounds,
    gather_sync,
    stage,
    sync_weights,
    take,
)
from tests.typing.domain import (
    Advantages,
    DQNLearner,
    EvaluationWorker,
    NStep,
    PPOLearner,
    Replay,
    Report,
    RolloutWorker,
    TDReport,
    Trajectories,
    count,
    dqn_learner,
    evaluators,
    gae,
    learner,
    replay,
    standardise,
    transitions,
    workers,
)


def ppo() -> Stream[Report]:
    plan = (
        workers.produce(RolloutWorker.sample)
        | gae(0.99, 0.95)
        | gather_sync()
        | concat(16)
        | standardise
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
    )
    return assert_type(plan, Stream[Report])


def a2c_in_rounds() -> Stream[Report]:
    @stage
    def joined(items: list[Advantages]) -> Advantages:
        return Advantages.concatenate(items)

    plan = (
        workers.produce(RolloutWorker.sample)
        | gae(0.99, 1.0)
        | gather_rounds()
        | joined
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
    )
    return assert_type(plan, Stream[Report])


def a3c() -> Stream[Report]:
    plan = (
        workers.produce(RolloutWorker.sample)
        | gae(0.99, 1.0)
        | workers.stage(RolloutWorker.gradients)
        | gather_async().with_source()
        | learner.stage(PPOLearner.apply)
    ).reply(RolloutWorker.set_weights, lambda report: report.weights)
    return assert_type(plan, Stream[Report])


def impala() -> Stream[Report]:
    plan = (
        workers.produce(RolloutWorker.sample)
        | gather_async(2)
        | concat(16)
        | learner.stage(PPOLearner.update_vtrace).max_in_flight(4)
        | sync_weights(learner, workers, every=4)
    )
    return assert_type(plan, Stream[Report])


def dqn() -> Stream[TDReport]:
    store = (
        workers.produce(RolloutWorker.sample)
        | expand(NStep)
        | gather_async()
        | replay.stage(Replay.add)
        | drain
    )
    train = (
        replay.produce(Replay.sample)
        | gather_async()
        | dqn_learner.stage(DQNLearner.update)
        | sync_weights(dqn_learner, workers, every=2)
    )
    return assert_type((store & train).round_robin(1, 1), Stream[TDReport])


def ape_x() -> Merged[TDReport]:
    store = (
        workers.produce(RolloutWorker.sample)
        | transitions
        | gather_async(2)
        | replay.stage(Replay.add)
        | sync_weights(dqn_learner, workers, every=4)
        | drain
    )
    train = (
        replay.produce(Replay.sample)
        | gather_async(4).with_source()
        | dqn_learner.stage(DQNLearner.update).max_in_flight(2)
    ).reply(Replay.update_priorities, lambda report: report.priorities)
    return assert_type(store & train, Merged[TDReport])


def two_trainers_in_one_environment() -> Merged[Report | TDReport]:
    left, right = (workers.produce(RolloutWorker.sample) | gather_sync()).fork(2, buffer=8)
    on_policy = left | gae(0.99, 0.95) | concat(16) | learner.stage(PPOLearner.update)
    store = right | expand(NStep) | replay.stage(Replay.add) | drain
    off_policy = replay.produce(Replay.sample) | gather_async() | dqn_learner.stage(DQNLearner.update)
    return assert_type(on_policy & (store & off_policy).round_robin(1, 1), Merged[Report | TDReport])


def training_and_evaluation() -> Merged[Report | int]:
    training = (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_sync()
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
        | sync_weights(learner, evaluators, every=4)
    )
    evaluation = evaluators.produce(EvaluationWorker.sample) | gather_sync() | every(2) | count
    return assert_type(training & evaluation, Merged[Report | int])


def minibatches_and_a_limit() -> Stream[Trajectories]:
    plan = workers.produce(RolloutWorker.sample) | batch(2) | gather_async() | flatten() | take(3)
    return assert_type(plan, Stream[Trajectories])
