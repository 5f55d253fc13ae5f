"""Messages to actors: weights to all or to the source, replies, targets, and the protocols of senders and receivers."""

from __future__ import annotations

from typing import assert_type

from pipeflow import (
    HasTarget,
    HasWeights,
    Stream,
    TakesWeights,
    batch,
    concat,
    gather_async,
    gather_sync,
    reply,
    reply_weights,
    sync_weights,
    take,
    update_target,
)
from tests.typing.domain import (
    DQNLearner,
    EvaluationWorker,
    Experience,
    PPOLearner,
    Report,
    RolloutWorker,
    Trajectories,
    Weights,
    dqn_learner,
    evaluators,
    gae,
    learner,
    workers,
)

rollouts = workers.produce(RolloutWorker.sample)


def sync_weights_keeps_the_type() -> Stream[Report]:
    updates = rollouts | gae() | gather_sync() | learner.stage(PPOLearner.update)
    return assert_type(updates | sync_weights(learner, workers), Stream[Report])


def sync_weights_works_on_any_item() -> Stream[Trajectories]:
    sampled = rollouts | gather_async(2) | sync_weights(dqn_learner, workers, every=4)
    return assert_type(sampled, Stream[Trajectories])


def sync_weights_takes_a_subclass_of_a_worker() -> Stream[Trajectories]:
    return (rollouts | gather_sync()) | sync_weights(learner, evaluators)


def reply_passes_the_plain_item_on() -> Stream[Report]:
    updates = rollouts | gae() | gather_async().with_source() | learner.stage(PPOLearner.update)
    return assert_type(
        updates.reply(RolloutWorker.set_weights, lambda report: report.weights), Stream[Report]
    )


def reply_takes_a_named_function() -> Stream[Trajectories]:
    def newest(batch: Experience) -> Weights:
        return Weights(batch.version + 1)

    sourced = rollouts | gather_sync().with_source()
    return assert_type(sourced.reply(RolloutWorker.set_weights, newest), Stream[Trajectories])


def gates_keep_the_source_for_a_reply() -> Stream[Trajectories]:
    sourced = rollouts | gather_async().with_source() | take(3)
    return assert_type(
        sourced.reply(RolloutWorker.set_weights, lambda batch: Weights(1)), Stream[Trajectories]
    )


def reply_as_an_operator_passes_the_plain_item_on() -> Stream[Report]:
    def newest(report: Report) -> Weights:
        return report.weights

    updates = rollouts | gae() | gather_async().with_source() | learner.stage(PPOLearner.update)
    return assert_type(updates | reply(RolloutWorker.set_weights, newest), Stream[Report])


def reply_may_send_the_item_itself() -> Stream[Weights]:
    def newest(batch: Trajectories) -> Weights:
        return Weights(batch.version + 1)

    made = rollouts | newest | gather_sync().with_source() | reply(RolloutWorker.set_weights)
    return assert_type(made, Stream[Weights])


def reply_does_not_widen_the_type() -> Stream[Trajectories]:
    def newest(batch: Experience) -> Weights:
        return Weights(batch.version + 1)

    sourced = rollouts | gather_sync().with_source()
    return assert_type(sourced | reply(RolloutWorker.set_weights, newest), Stream[Trajectories])


def reply_takes_a_method_of_a_base_class() -> Stream[Trajectories]:
    def newest(batch: Trajectories) -> Weights:
        return Weights(batch.version + 1)

    sourced = evaluators.produce(EvaluationWorker.sample) | gather_sync().with_source()
    return assert_type(sourced | reply(RolloutWorker.set_weights, newest), Stream[Trajectories])


def a_reply_reaches_all_that_a_batch_came_from() -> Stream[list[Trajectories]]:
    sourced = rollouts | gather_async().with_source() | batch(2)
    answered = sourced.reply(RolloutWorker.set_weights, lambda items: Weights(items[0].version))
    return assert_type(answered, Stream[list[Trajectories]])


def reply_weights_passes_the_plain_item_on() -> Stream[Report]:
    updates = rollouts | gae() | gather_async().with_source() | learner.stage(PPOLearner.update)
    return assert_type(updates | reply_weights(learner), Stream[Report])


def reply_weights_of_what_was_joined() -> Stream[Report]:
    joined = rollouts | gae() | gather_async().with_source() | concat(16) | learner.stage(PPOLearner.update)
    return assert_type(joined | reply_weights(learner, every=2), Stream[Report])


def update_target_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(rollouts | gather_sync() | update_target(dqn_learner, every=2), Stream[Trajectories])


def a_learner_has_a_target() -> HasTarget:
    return DQNLearner(1e-3)


def a_learner_has_weights() -> HasWeights[Weights]:
    return PPOLearner(1e-3)


def a_worker_takes_weights() -> TakesWeights[Weights]:
    return RolloutWorker(7)
