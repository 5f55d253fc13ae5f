"""What is said about plans before they run, and what is not: right plans that are close to wrong ones.

The plans that each rule is broken by are in `tests.cli.planted`, where `pipeflow check` finds them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from pipeflow import (
    RunError,
    Stream,
    actors,
    batch,
    concat,
    drain,
    every,
    flatten,
    from_items,
    gather_async,
    gather_rounds,
    gather_sync,
    max_lag,
    reply_weights,
    sync_weights,
    take,
    throttle,
    update_target,
)
from pipeflow.dsl import nodes
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.findings import REFUSED, refused
from pipeflow.dsl.lint import RULES, lint
from pipeflow.dsl.sites import Site
from pipeflow.dsl.structure_rules import Part, left_out
from pipeflow.dsl.trees import walk
from pipeflow.testing import Schedule, policy_lag_at_most, simulate
from pipeflow.testing.strategies import WrittenPlan, plans
from tests.typing.domain import (
    Advantages,
    DQNLearner,
    PPOLearner,
    Replay,
    RolloutWorker,
    Trajectories,
    dqn_learner,
    evaluators,
    gae,
    learner,
    long_enough,
    replay,
    transitions,
    workers,
)

# `Any`: plans of items of any type.
Plan = Stream[Any]


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


def rounds() -> Stream[list[Advantages]]:
    return workers.produce(RolloutWorker.sample) | gae() | gather_rounds()


# Right plans


def two_ends_in_step() -> Plan:
    left, right = from_items(range(9)).fork(2, buffer=2)
    return (left | every(2)).zip(right | batch(2))


def two_ends_in_turns_within_the_buffer() -> Plan:
    left, right = from_items(range(9)).fork(2, buffer=3)
    return (left & right).round_robin(3, 3)


def both_ends_drop_the_same() -> Plan:
    left, right = sampled().fork(2, buffer=1)
    return left.filter(long_enough).zip(right.filter(long_enough))


def sides_of_a_partition_as_they_come() -> Plan:
    long, short = sampled().partition(long_enough, buffer=4)
    return long & short


def an_end_that_is_drained_for_its_effect() -> Plan:
    kept, seen = from_items(range(9)).fork(2, buffer=4)
    return kept & (seen.tap(print) | batch(2) | drain)


def an_end_that_slows_the_other_down() -> Plan:
    kept, clock = from_items(range(9)).fork(2, buffer=4)
    return kept & (clock | throttle(0.1) | drain)


def what_ends_comes_first() -> Plan:
    return (from_items([1, 2]) & from_items(itertools.count())).prioritised()


def what_may_have_to_wait_comes_first() -> Plan:
    return (sampled() & from_items(itertools.repeat(1))).prioritised()


def repeated_so_often_comes_first() -> Plan:
    return (from_items(itertools.repeat(1, 5)) & from_items([2])).prioritised()


def store_and_replay() -> Plan:
    store = workers.produce(RolloutWorker.sample) | transitions | gather_sync() | replay.stage(Replay.add)
    learn = replay.produce(Replay.sample) | gather_async() | dqn_learner.stage(DQNLearner.update)
    sent = learn | sync_weights(dqn_learner, workers, every=8) | update_target(dqn_learner, every=64)
    return (store | drain) & sent


def weights_to_the_worker_that_sent() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_async(2).with_source()
    return made | learner.stage(PPOLearner.update) | reply_weights(learner)


def a_limit_of_lag_with_weights() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_async(2) | max_lag(2)
    return made | learner.stage(PPOLearner.update) | sync_weights(learner, workers)


def one_variant_throughout() -> Plan:
    sturdy = workers.restarts(3).on_error("restart")
    made = sturdy.produce(RolloutWorker.sample) | gae() | gather_async() | learner.stage(PPOLearner.update)
    return made | sync_weights(learner, sturdy)


def workers_that_are_learnt_from_and_evaluated() -> Plan:
    update = rounds() | Advantages.concatenate | learner.stage(PPOLearner.update)
    evaluation = evaluators.produce(RolloutWorker.sample) | gather_async()
    return (
        update | sync_weights(learner, workers) | sync_weights(learner, evaluators, every=10)
    ) & evaluation


@pytest.mark.parametrize(
    "build",
    [
        two_ends_in_step,
        two_ends_in_turns_within_the_buffer,
        both_ends_drop_the_same,
        sides_of_a_partition_as_they_come,
        an_end_that_is_drained_for_its_effect,
        an_end_that_slows_the_other_down,
        what_ends_comes_first,
        what_may_have_to_wait_comes_first,
        repeated_so_often_comes_first,
        store_and_replay,
        weights_to_the_worker_that_sent,
        a_limit_of_lag_with_weights,
        one_variant_throughout,
        workers_that_are_learnt_from_and_evaluated,
    ],
)
def test_nothing_is_said_about_a_right_plan(build: Callable[[], Plan]) -> None:
    assert lint(build()) == []


# Plans that claim to be on-policy


def everything_of_a_round_at_once() -> Plan:
    update = rounds() | Advantages.concatenate | learner.stage(PPOLearner.update)
    return update | sync_weights(learner, workers)


def a_round_counted_by_hand() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_sync() | batch(2)
    return made | Advantages.concatenate | learner.stage(PPOLearner.update) | sync_weights(learner, workers)


def two_rounds_an_update() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_sync() | batch(4)
    return made | Advantages.concatenate | learner.stage(PPOLearner.update) | sync_weights(learner, workers)


def one_item_of_a_round() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_sync() | every(2)
    return made | learner.stage(PPOLearner.update) | sync_weights(learner, workers)


def a_single_worker() -> Plan:
    worker = actors(RolloutWorker, 1, 7)
    made = worker.produce(RolloutWorker.sample) | gae() | gather_sync() | concat(32)
    return made | learner.stage(PPOLearner.update) | sync_weights(learner, worker)


def something_else_after_each_round() -> Plan:
    update = rounds() | Advantages.concatenate | learner.stage(PPOLearner.update)
    return (update & from_items(range(5))).round_robin() | sync_weights(learner, workers)


def something_else_that_is_drained() -> Plan:
    update = rounds() | Advantages.concatenate | learner.stage(PPOLearner.update)
    return (update & (from_items(range(5)) | drain)) | sync_weights(learner, workers)


def several_others_that_are_drained() -> Plan:
    update = rounds() | Advantages.concatenate | learner.stage(PPOLearner.update)
    others = ((from_items(range(5)) | drain) & (from_items(range(3)) | drain)).round_robin()
    return (update & others) | sync_weights(learner, workers)


@pytest.mark.parametrize(
    "build",
    [
        something_else_after_each_round,
        something_else_that_is_drained,
        several_others_that_are_drained,
        everything_of_a_round_at_once,
        a_round_counted_by_hand,
        two_rounds_an_update,
        one_item_of_a_round,
        a_single_worker,
    ],
)
def test_nothing_is_said_about_an_on_policy_plan(build: Callable[[], Plan]) -> None:
    assert lint(build(), on_policy=True) == []
    for seed in range(3):
        assert policy_lag_at_most(0)(simulate(build() | take(5), Schedule(seed)).trace) is None


def a_part_of_a_round() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_sync() | batch(3)
    return made | Advantages.concatenate | learner.stage(PPOLearner.update) | sync_weights(learner, workers)


def joined_by_steps() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_sync() | concat(8)
    return made | learner.stage(PPOLearner.update) | sync_weights(learner, workers)


def pieces_of_a_round() -> Plan:
    update = rounds() | flatten() | learner.stage(PPOLearner.update)
    return update | sync_weights(learner, workers)


def something_else_within_a_round() -> Plan:
    update = rounds() | Advantages.concatenate | learner.stage(PPOLearner.update)
    return (update & from_items(range(5))) | sync_weights(learner, workers)


def something_else_between_the_items_of_a_round() -> Plan:
    made = workers.produce(RolloutWorker.sample) | gae() | gather_sync()
    update = made | learner.stage(PPOLearner.update)
    return (update & from_items(range(5))).round_robin() | sync_weights(learner, workers)


@pytest.mark.parametrize(
    ("build", "codes"),
    [
        (a_part_of_a_round, ["PF302"]),
        (joined_by_steps, ["PF302"]),
        (pieces_of_a_round, ["PF302"]),
        (something_else_within_a_round, ["PF302"]),
        (something_else_between_the_items_of_a_round, ["PF302", "PF302"]),
    ],
)
def test_what_may_break_a_round_is_said(build: Callable[[], Plan], codes: list[str]) -> None:
    assert [finding.code for finding in lint(build(), on_policy=True)] == codes


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(plans())
def test_a_plan_of_which_nothing_is_said_is_on_policy(written: WrittenPlan) -> None:
    plan = written.build()
    sends = any(isinstance(node, nodes.SyncWeights | nodes.ReplyWeights) for node in walk(plan.node))
    if not sends or any(finding.code >= "PF300" for finding in lint(plan, on_policy=True)):
        return
    for seed in range(3):
        with contextlib.suppress(RunError):  # some deadlock, whatever their policy
            trace = simulate(written.build(), Schedule(seed)).trace
            assert policy_lag_at_most(0)(trace) is None


# The whole


def test_codes_are_told_apart_and_in_order() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert REFUSED in RULES


@settings(max_examples=50, deadline=None)
@given(plans())
def test_whatever_is_said_has_a_code_and_a_line_of_the_plan(written: WrittenPlan) -> None:
    codes = {rule.code for rule in RULES}
    for finding in lint(written.build(), on_policy=True):
        assert finding.code in codes
        assert finding.site.file == "<plan>"
        assert "\n" not in finding.message


def test_a_plan_that_a_run_would_refuse_is_said_alone() -> None:
    hopeful = workers.on_error("restart")
    (finding,) = lint(hopeful.produce(RolloutWorker.sample) | gather_sync() | take(0))
    assert finding.code == "PF100"
    assert finding.message.endswith('on_error("restart") needs restarts; add .restarts(n)')


@pytest.mark.parametrize(
    ("message", "line", "rest"),
    [
        ("/src/plans.py:12: gae takes Trajectories", 12, "gae takes Trajectories"),
        ("from_items (/src/plans.py:7) is used twice", 7, "from_items (/src/plans.py:7) is used twice"),
        ("no line is named", 1, "no line is named"),
    ],
)
def test_a_refusal_stands_at_the_line_that_it_names(message: str, line: int, rest: str) -> None:
    finding = refused(PlanError(message), Site("/src/plans.py", 1))
    assert (finding.code, finding.message, finding.site) == ("PF100", rest, Site("/src/plans.py", line))


# What was left out


def test_one_end_stands_for_its_fork_and_variants_for_their_actors() -> None:
    left, right = from_items([1]).fork(2, buffer=1)
    plan = left & right
    store = actors(Replay, 2, 100)
    used = store.named("store").produce(Replay.sample) | gather_async()
    parts = [Part("left", left), Part("store", store), Part("plan", plan)]
    assert list(left_out(parts, [plan.node, used.node])) == []


def test_a_stream_and_actors_that_no_plan_has_are_left_out() -> None:
    other = from_items([2])
    store = actors(Replay, 2, 100)
    found = list(left_out([Part("other", other), Part("store", store)], [from_items([1]).node]))
    assert [finding.code for finding in found] == ["PF106", "PF107"]
