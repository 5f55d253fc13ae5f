"""`check_laws` and its parts: what they find, what they say, and that the algorithms keep what they promise."""

from __future__ import annotations

import pytest

from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.dsl import (
    ActorDiedError,
    DeadlockError,
    StageError,
    Stream,
    actors,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    max_lag,
    sync_weights,
)
from pipeflow.lowering.cursors.gathers import SyncGatherCursor
from pipeflow.lowering.engines.sim import Sim
from pipeflow.lowering.items import Item, Signal
from pipeflow.semantics.events import Finished, Trace
from pipeflow.testing import (
    LawViolation,
    Schedule,
    check_laws,
    check_schedule,
    policy_lag_at_most,
    simulate,
)
from pipeflow.testing.parts import Learner, Worker, fail_on_three
from tests.lowering.actors import Arithmetic


def two_workers(num_async: int | None = None) -> Stream[int]:
    workers, learner = actors(Worker, 2, 4, 0).restarts(2), actors(Learner, 1).restarts(2)
    gather = gather_sync() if num_async is None else gather_async(num_async)
    sampled = workers.produce(Worker.sample) | gather
    return sampled | learner.stage(Learner.update) | sync_weights(learner, workers, every=2)


def test_a_plan_keeps_every_law_under_every_schedule_tried() -> None:
    check_laws(two_workers(), schedules=50, invariants=[policy_lag_at_most(0)])
    check_laws(two_workers(2), schedules=50)
    check_laws(two_workers(2), schedules=50, crashes=2)


def test_actors_of_a_broadcast_stay_in_step_though_some_die() -> None:
    stages = actors(Arithmetic, 2).restarts(2)
    plan = from_items(range(6)) | stages.broadcast() | stages.stage(Arithmetic.square) | gather_rounds()
    check_laws(plan, schedules=50, crashes=2)
    for seed in range(50):
        rounds = simulate(plan, Schedule(seed, crashes=2)).items
        assert all(len(set(made)) == 1 for made in rounds if isinstance(made, list))


def test_a_violation_says_what_where_and_how_to_replay_it() -> None:
    with pytest.raises(LawViolation) as caught:
        check_laws(two_workers(1), schedules=50, invariants=[policy_lag_at_most(0)], seed=3)
    violation = caught.value
    message = str(violation)
    assert violation.broken == "policy_lag_at_most(0)"
    assert message.startswith(
        "invariant policy_lag_at_most(0): the policy lag is 1 where at most 0 is allowed"
    )
    assert "gather_async(1)" in message
    assert f"run = plan.run(Sim(seed={violation.schedule.seed}), record=True)" in message
    again = two_workers(1).run(Sim(seed=violation.schedule.seed), record=True)
    assert list(again)
    assert policy_lag_at_most(0)(again.trace) is not None


def test_behind_a_max_lag_what_it_lets_pass_is_judged_and_not_what_it_drops() -> None:
    workers, learner = actors(Worker, 2, 4, 0), actors(Learner, 1)
    bounded = workers.produce(Worker.sample) | gather_async(2) | max_lag(1)
    plan = bounded | learner.stage(Learner.update) | sync_weights(learner, workers)
    check_laws(plan, schedules=20, invariants=[policy_lag_at_most(1)])
    with pytest.raises(LawViolation, match=r"item \d+ of max_lag\(1\)"):
        check_laws(plan, schedules=20, invariants=[policy_lag_at_most(0)])


def test_a_broken_executor_is_caught_with_the_law_that_it_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SyncGatherCursor._poll

    def early(self: SyncGatherCursor) -> Item | Signal:
        found = honest(self)
        for shard in self._shards:
            if isinstance(found, Item) and not shard.calls and not shard.ended:
                shard.ask()  # the next round, before the consumer asked for it
        return found

    monkeypatch.setattr(SyncGatherCursor, "_poll", early)
    plan = from_shards([range(4), range(10, 14)]) | gather_sync()
    with pytest.raises(LawViolation) as caught:
        check_laws(plan, schedules=20, laws=[6])
    assert caught.value.broken == "law 6"
    assert str(caught.value).startswith("Barrier: law 6, event ")
    check_laws(plan, schedules=20, laws=[2])


def test_an_invariant_is_any_function_of_the_trace() -> None:
    def few_calls(trace: Trace) -> str | None:
        calls = sum(isinstance(event, Finished) for event in trace)
        return f"{calls} calls" if calls > 10 else None

    plan = from_shards([[1, 2]]) | gather_sync()
    check_laws(plan, schedules=5, invariants=[few_calls])
    with pytest.raises(LawViolation, match=r"invariant few_calls: \d+ calls"):
        check_laws(two_workers(), schedules=5, invariants=[few_calls])


def test_an_error_in_a_stage_comes_with_its_schedule() -> None:
    with pytest.raises(StageError) as caught:
        check_laws(from_items(range(5)) | fail_on_three, schedules=5, seed=7)
    assert any("Sim(seed=7)" in note for note in caught.value.__notes__)


def test_a_deadlock_comes_with_its_schedule() -> None:
    left, right = from_items(range(5)).fork(2, buffer=1)
    with pytest.raises(DeadlockError) as caught:
        check_laws((left & right).round_robin(3, 1), schedules=5)
    assert any("Sim(seed=0)" in note for note in caught.value.__notes__)


def test_actors_that_may_not_be_restarted_may_die_where_crashes_are_asked_for() -> None:
    plan = from_shards([range(30), range(30)]) | gather_async(2)
    errors = [check_schedule(plan, Schedule(seed, crashes=1)).error for seed in range(20)]
    assert any(isinstance(error, ActorDiedError) for error in errors)
    check_laws(plan, schedules=20, crashes=1)


def test_an_endless_plan_is_closed_after_the_items_that_are_asked_for() -> None:
    plan = actors(Worker, 2, -1, 0).produce(Worker.sample) | gather_async(2)
    run = check_schedule(plan, Schedule(1), items=7)
    assert len(run.items) == 7
    assert run.error is None


def test_a_schedule_is_a_value_and_its_runs_are_the_same() -> None:
    schedule = Schedule(seed=5, crashes=1)
    assert schedule.code == "Sim(seed=5, crashes=1)"
    assert simulate(two_workers(2), schedule).items == simulate(two_workers(2), schedule).items
    assert len({simulate(two_workers(2), Schedule(seed)).items for seed in range(20)}) > 1


def test_ppo_is_on_policy_under_every_schedule() -> None:
    plan = ppo(PPOConfig(num_envs=1, fragment_length=8, epochs=1, minibatch_size=8, hidden=(4,)))
    check_laws(plan, schedules=5, items=3, invariants=[policy_lag_at_most(0)])
