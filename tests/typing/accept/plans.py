"""Whole plans, in the shapes of well-known algorithms, over the small actors of this package's domain."""

from __future__ import annotations

from typing import assert_type

from pipeflow import (
    Merged,
    Stream,
    batch,
    buffer,
    concat,
    drain,
    every,
    expand,
    flatten,
    gather_async,
    gather_rounds,
    gather_sync,
    reply,
    reply_weights,
    stage,
    sync_weights,
    take,
    update_target,
)
from tests.typing.domain import (
    Advantages,
    Aggregator,
    DQNLearner,
    EvaluationWorker,
    Gradients,
    NStep,
    PPOLearner,
    Priorities,
    Replay,
    Report,
    RolloutWorker,
    TDReport,
    Trajectories,
    Transitions,
    Weights,
    aggregators,
    count,
    dqn_learner,
    evaluators,
    gae,
    is_report,
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


def a3c_by_reference() -> Stream[Report]:
    """The weights go to the source without passing through the driver."""
    plan = (
        workers.produce(RolloutWorker.sample)
        | gae(0.99, 1.0)
        | workers.stage(RolloutWorker.gradients)
        | gather_async().with_source()
        | learner.stage(PPOLearner.apply)
        | reply_weights(learner)
    )
    return assert_type(plan, Stream[Report])


def dd_ppo() -> Stream[Report]:
    """Gradients are averaged among the workers, which keep equal policies; the driver holds none of the data."""
    plan = (
        workers.produce(RolloutWorker.sample)
        | gae(0.99, 0.95)
        | workers.stage(RolloutWorker.gradients)
        | gather_rounds()
        | workers.broadcast()
        | Gradients.mean
        | workers.stage(RolloutWorker.apply)
        | gather_sync()
    )
    return assert_type(plan, Stream[Report])


def impala_with_aggregation() -> Stream[Report]:
    plan = (
        workers.produce(RolloutWorker.sample)
        | gather_async(2)
        | batch(4)
        | aggregators.stage(Aggregator.concatenate).max_in_flight(4)
        | buffer(2)
        | learner.stage(PPOLearner.update_vtrace)
        | sync_weights(learner, workers)
    )
    return assert_type(plan, Stream[Report])


def aggregation_with_weights_to_the_sources() -> Stream[Report]:
    """A batch of items from several workers answers each of them."""
    plan = (
        workers.produce(RolloutWorker.sample)
        | gather_async(2).with_source()
        | batch(2)
        | aggregators.stage(Aggregator.concatenate).max_in_flight(2)
        | learner.stage(PPOLearner.update_vtrace)
        | reply_weights(learner, every=2)
    )
    return assert_type(plan, Stream[Report])


def maml_inner_loop() -> Stream[Report]:
    plan = (
        workers.produce(RolloutWorker.sample)
        | workers.stage(RolloutWorker.adapt).repeat(2)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
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


def ape_x_with_targets() -> Merged[TDReport]:
    def priorities(report: TDReport) -> Priorities:
        return report.priorities

    store = (
        workers.produce(RolloutWorker.sample)
        | transitions
        | gather_async(2).with_source()
        | replay.stage(Replay.add)
        | reply_weights(dqn_learner, every=4)
        | drain
    )
    train = (
        replay.produce(Replay.sample)
        | gather_async(4).with_source()
        | dqn_learner.stage(DQNLearner.update).max_in_flight(2)
        | reply(Replay.update_priorities, priorities)
        | update_target(dqn_learner, every=2)
    )
    return assert_type(store & train, Merged[TDReport])


def a_ratio_of_steps() -> Stream[Transitions]:
    """Two steps replayed for each one sampled."""
    sampled = workers.produce(RolloutWorker.sample) | transitions | gather_sync() | drain
    replayed = evaluators.produce(EvaluationWorker.sample) | transitions | gather_sync()
    return assert_type((sampled & replayed).by_steps(1, 2), Stream[Transitions])


def two_kinds_of_reports_part_by_type() -> Stream[Weights | TDReport]:
    def weights(report: Report) -> Weights:
        return report.weights

    def trained(report: Report | TDReport) -> TDReport:
        return report if isinstance(report, TDReport) else TDReport(report.loss, Priorities(()))

    ppo_reports, others = (ppo() & dqn()).partition(is_report, buffer=8)
    assert_type(ppo_reports, Stream[Report])
    assert_type(others, Stream[Report | TDReport])
    return assert_type((ppo_reports | weights) & (others | trained), Merged[Weights | TDReport])


def training_beside_evaluation() -> Stream[tuple[Report, int]]:
    evaluated = evaluators.produce(EvaluationWorker.sample) | gather_sync() | count
    return assert_type(ppo().zip(evaluated), Stream[tuple[Report, int]])
