"""What is said about weights that come too late or never, and what is not: right plans that are close to these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeflow import (
    Stream,
    actors,
    batch,
    drain,
    gather_async,
    gather_rounds,
    gather_sync,
    reply_weights,
    sync_weights,
    take,
)
from pipeflow.dsl.lint import lint
from pipeflow.testing import Schedule, policy_lag_at_most, simulate
from tests.typing.domain import (
    Advantages,
    DQNLearner,
    PPOLearner,
    Replay,
    Report,
    RolloutWorker,
    Trajectories,
    Transitions,
    dqn_learner,
    evaluators,
    gae,
    learner,
    replay,
    transitions,
    workers,
)

# `Any`: plans of items of any type.
Plan = Stream[Any]


class Recorder:
    """Makes items, and acts with no weights."""

    def sample(self) -> Transitions:
        return Transitions(8)


class RatingLearner(DQNLearner):
    """Also says how much there is to learn from an item, before it is stored."""

    def rate(self, batch: Transitions) -> Transitions:
        return batch


def advantages_of(report: Report) -> Advantages:
    return Advantages(8, report.weights.version)


def trajectories_of(made: Advantages) -> Trajectories:
    return Trajectories(made.steps, made.version)


def joined_rounds() -> Stream[Advantages]:
    return workers.produce(RolloutWorker.sample) | gae() | gather_rounds() | Advantages.concatenate


# Right plans


def weights_before_one_update_and_behind_another() -> Plan:
    update = joined_rounds() | learner.stage(PPOLearner.update)
    sent = update | sync_weights(learner, workers)
    return sent.map(advantages_of) | learner.stage(PPOLearner.update)


def weights_before_the_update_and_again_behind_it() -> Plan:
    early = joined_rounds() | sync_weights(learner, workers)
    return early | learner.stage(PPOLearner.update) | sync_weights(learner, workers)


def weights_from_where_items_are_stored() -> Plan:
    store = workers.produce(RolloutWorker.sample) | transitions | gather_sync()
    stored = store | sync_weights(dqn_learner, workers) | replay.stage(Replay.add) | drain
    learn = replay.produce(Replay.sample) | gather_async() | dqn_learner.stage(DQNLearner.update)
    return (stored & learn).round_robin()


def weights_in_a_branch_that_is_drained_before_the_update() -> Plan:
    store = workers.produce(RolloutWorker.sample) | transitions | gather_sync() | replay.send(Replay.add)
    stored = store | sync_weights(dqn_learner, workers) | drain
    sampled = replay.produce(Replay.sample) | gather_async()
    return (stored & sampled).round_robin() | dqn_learner.stage(DQNLearner.update)


def weights_before_a_stage_of_a_learner_that_trains_elsewhere() -> Plan:
    made = workers.produce(RolloutWorker.sample) | transitions | gather_sync()
    rating = actors(RatingLearner, 1, 1e-3)
    rated = made | sync_weights(rating, workers) | rating.stage(RatingLearner.rate)
    learn = replay.produce(Replay.sample) | gather_async() | rating.stage(RatingLearner.update)
    return (rated | replay.stage(Replay.add) | drain) & learn


def weights_at_one_end_of_a_fork_and_the_update_at_the_other() -> Plan:
    left, right = joined_rounds().fork(2, buffer=1)
    sent = right | sync_weights(learner, workers) | drain
    return ((left | learner.stage(PPOLearner.update)) & sent).round_robin()


def stored_by_workers_that_have_no_weights() -> Plan:
    store = actors(Recorder, 2).produce(Recorder.sample) | gather_sync() | replay.stage(Replay.add)
    learn = replay.produce(Replay.sample) | gather_async() | dqn_learner.stage(DQNLearner.update)
    return (store | drain) & learn


def stored_and_never_learnt_from() -> Plan:
    store = workers.produce(RolloutWorker.sample) | transitions | gather_sync() | replay.stage(Replay.add)
    return (store | drain) & (replay.produce(Replay.sample) | gather_async())


def stored_in_another_store_than_is_learnt_from() -> Plan:
    store = workers.produce(RolloutWorker.sample) | transitions | gather_sync() | replay.stage(Replay.add)
    others = actors(Recorder, 1).produce(Recorder.sample) | gather_async()
    return (store | drain) & (others | dqn_learner.stage(DQNLearner.update))


@pytest.mark.parametrize(
    "build",
    [
        weights_before_one_update_and_behind_another,
        weights_before_the_update_and_again_behind_it,
        weights_from_where_items_are_stored,
        weights_in_a_branch_that_is_drained_before_the_update,
        weights_before_a_stage_of_a_learner_that_trains_elsewhere,
        weights_at_one_end_of_a_fork_and_the_update_at_the_other,
        stored_by_workers_that_have_no_weights,
        stored_and_never_learnt_from,
        stored_in_another_store_than_is_learnt_from,
    ],
)
def test_nothing_is_said_about_weights_that_come_in_time(build: Callable[[], Plan]) -> None:
    assert lint(build()) == []


# Weights that come too late, or never


def sent_before_it_is_batched() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_sync() | sync_weights(learner, workers)
    return made | batch(2) | Advantages.concatenate | learner.stage(PPOLearner.update)


def replied_before_the_update() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_async(2).with_source()
    return made | reply_weights(learner) | learner.stage(PPOLearner.update)


def sent_before_a_learner_that_is_sent_the_items() -> Plan:
    made = joined_rounds() | sync_weights(learner, workers)
    return made | learner.send(PPOLearner.update)


def sent_before_the_update_of_one_end() -> Plan:
    left, right = (joined_rounds() | sync_weights(learner, workers)).fork(2, buffer=1)
    return (left | learner.stage(PPOLearner.update)) & right


def sent_twice_before_the_update() -> Plan:
    made = joined_rounds() | sync_weights(learner, workers)
    again = made | sync_weights(learner, workers)
    return again | learner.stage(PPOLearner.update)


def evaluated_before_the_update() -> Plan:
    made = joined_rounds() | sync_weights(learner, evaluators)
    update = made | learner.stage(PPOLearner.update) | sync_weights(learner, workers)
    return update & (evaluators.produce(RolloutWorker.sample) | gather_async())


@pytest.mark.parametrize(
    ("build", "times"),
    [
        (sent_before_it_is_batched, 1),
        (replied_before_the_update, 1),
        (sent_before_a_learner_that_is_sent_the_items, 1),
        (sent_before_the_update_of_one_end, 1),
        (sent_twice_before_the_update, 2),
        (evaluated_before_the_update, 1),
    ],
)
def test_weights_that_are_sent_before_the_update_are_said(build: Callable[[], Plan], times: int) -> None:
    assert [finding.code for finding in lint(build())] == ["PF206"] * times


def test_the_last_of_the_learners_stages_is_named_since_any_of_them_may_train() -> None:
    early = joined_rounds() | sync_weights(learner, workers)
    plan = early.map(trajectories_of) | learner.stage(PPOLearner.update_vtrace)
    (finding,) = lint(plan.map(advantages_of) | learner.stage(PPOLearner.update))
    assert "before PPOLearner.stage(PPOLearner.update) (" in finding.message


@pytest.mark.parametrize(("early", "acted_with"), [(False, [0, 1, 2, 3]), (True, [0, 0, 1, 2])])
def test_no_more_weights_are_sent_meanwhile_so_the_lag_is_0_however_old_they_are(
    early: bool, acted_with: list[int]
) -> None:
    learnt: list[int] = []

    def note(item: Advantages) -> None:
        learnt.append(item.version)

    made, update = joined_rounds().tap(note), learner.stage(PPOLearner.update)
    sync = sync_weights(learner, workers)
    plan = made | sync | update if early else made | update | sync
    assert [finding.code for finding in lint(plan, on_policy=True)] == ["PF206"] * early
    assert policy_lag_at_most(0)(simulate(plan | take(4), Schedule(0)).trace) is None
    assert learnt == acted_with


def sent_to_a_store() -> Plan:
    store = workers.produce(RolloutWorker.sample) | transitions | gather_sync() | replay.send(Replay.add)
    learn = replay.produce(Replay.sample) | gather_async() | dqn_learner.stage(DQNLearner.update)
    return (store | drain) & learn


def scattered_to_stores() -> Plan:
    made = workers.produce(RolloutWorker.sample) | transitions | gather_sync()
    store = made | replay.scatter() | replay.stage(Replay.add) | gather_sync()
    learn = replay.produce(Replay.sample) | gather_async() | dqn_learner.stage(DQNLearner.update)
    return (store | drain) & learn


def stored_again() -> Plan:
    near, far = replay.named("near"), replay.named("far")
    store = workers.produce(RolloutWorker.sample) | transitions | gather_sync() | near.stage(Replay.add)
    on = near.produce(Replay.sample) | gather_async() | far.stage(Replay.add)
    learn = far.produce(Replay.sample) | gather_async() | dqn_learner.stage(DQNLearner.update)
    return (store | drain) & (on | drain) & learn


def a_buffer_that_is_told_priorities() -> Plan:
    store = workers.produce(RolloutWorker.sample) | transitions | gather_sync() | replay.stage(Replay.add)
    sampled = replay.produce(Replay.sample) | gather_async().with_source()
    learn = sampled | dqn_learner.stage(DQNLearner.update)
    return (store | drain) & learn.reply(Replay.update_priorities, lambda report: report.priorities)


@pytest.mark.parametrize(
    ("build", "stores"),
    [
        (sent_to_a_store, "Replay"),
        (scattered_to_stores, "Replay"),
        (stored_again, "near, far"),
        (a_buffer_that_is_told_priorities, "Replay"),
    ],
)
def test_workers_that_are_learnt_from_by_way_of_stores_and_get_no_weights_are_said(
    build: Callable[[], Plan], stores: str
) -> None:
    (finding,) = lint(build())
    assert finding.code == "PF204"
    assert f"DQNLearner, which learns from its items by way of {stores}, and acts" in finding.message


def test_a_learner_that_is_sent_the_items_learns_from_them() -> None:
    (finding,) = lint(joined_rounds() | learner.send(PPOLearner.update))
    assert finding.code == "PF204"
    assert "its items, and acts with its first ones for ever" in finding.message
