"""Messages to actors: `sync_weights`, `.reply`, and the protocols of those who send and receive weights."""

from __future__ import annotations

from typing import assert_type

from pipeflow import HasWeights, Stream, TakesWeights, gather_async, gather_sync, sync_weights, take
from tests.typing.domain import (
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


def a_learner_has_weights() -> HasWeights[Weights]:
    return PPOLearner(1e-3)


def a_worker_takes_weights() -> TakesWeights[Weights]:
    return RolloutWorker(7)
