"""What to write instead: for each error of docs/type_errors.md the plan that was meant, under the name of the mistake.

The mistakes themselves are in `reject`.
"""

from __future__ import annotations

from pipeflow import Actors, Stream, actors, drain, gather_sync, sync_weights
from tests.typing.domain import (
    Advantages,
    PPOLearner,
    Replay,
    Report,
    RolloutWorker,
    Trajectories,
    gae,
    learner,
    replay,
    transitions,
    workers,
)

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


def gae_forgotten() -> Stream[Report]:
    return sampled() | gae() | learner.stage(PPOLearner.update)


def stage_with_a_method_of_another_class() -> Stream[Report]:
    return sampled() | gae() | learner.stage(PPOLearner.update)


def an_argument_of_another_type() -> Actors[RolloutWorker]:
    return actors(RolloutWorker, 2, 7)


def a_stage_of_other_actors_without_a_gather() -> Stream[Report]:
    return rollouts | gae() | gather_sync() | learner.stage(PPOLearner.update)


def gather_sync_uncalled() -> Stream[Trajectories]:
    return rollouts | gather_sync()


def a_union_where_one_branch_is_learnt_from() -> Stream[Report]:
    return ((sampled() | gae()) & (sampled() | gae())) | learner.stage(PPOLearner.update)


def weights_of_what_has_none() -> Stream[Report]:
    updates = sampled() | gae() | learner.stage(PPOLearner.update)
    return updates | sync_weights(learner, workers)


def a_branch_that_was_not_drained() -> Stream[Report]:
    stored = sampled() | transitions | replay.stage(Replay.add) | drain
    updates = sampled() | gae() | learner.stage(PPOLearner.update)
    return stored & updates


def of_two_parameters() -> Stream[int]:
    return sampled().map(lambda batch: batch.steps)


def producing_forgotten() -> Stream[Advantages]:
    return workers.produce(RolloutWorker.sample) | gae() | gather_sync()
