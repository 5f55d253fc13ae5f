"""Whole plans, drawn at random, under drawn schedules: every law on every trace, and only admitted outcomes.

The examples are the same in every run; ``pytest --hypothesis-seed=N`` looks at others.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from pipeflow.dsl import (
    ActorDiedError,
    RunError,
    StageError,
    actors,
    drain,
    flat_map,
    from_items,
    from_shards,
    gather_sync,
    sync_weights,
    take,
)
from pipeflow.semantics.events import Trace
from pipeflow.semantics.laws import check, law_22_resumed, law_23_same
from pipeflow.semantics.reference import Outcome, TooManyWays, admits, every_outcome
from pipeflow.testing import Schedule, Simulated, check_schedule, simulate
from pipeflow.testing.parts import Learner, Worker, both, double, fail_on_three
from pipeflow.testing.schedules import finished
from pipeflow.testing.strategies import WrittenPlan, plans, schedules

# No deadline: a plan is run a few times, and the machine may be busy. A plan is large, as hypothesis sees it.
searched = settings(
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def outcome_of(run: Simulated) -> Outcome:
    match run.error:
        case None:
            return Outcome(run.items)
        case StageError(stage=stage):
            return Outcome(run.items, f"StageError: {stage}")
        case error:
            return Outcome(run.items, type(error).__name__)


def assert_admitted(written: WrittenPlan, outcome: Outcome) -> None:
    try:
        assert admits(written.build(), outcome, limit=2_000), f"the laws do not admit {outcome}"
    except TooManyWays:
        event("not searched to the end")  # `--hypothesis-show-statistics` shows how many


@settings(searched, max_examples=400)
@given(plans(), schedules())
def test_what_a_run_delivers_is_admitted_by_the_laws(written: WrittenPlan, schedule: Schedule) -> None:
    outcome = outcome_of(simulate(written.build(), schedule))
    event(f"{outcome.end}, {min(len(outcome.items), 4)} items or more")
    assert_admitted(written, outcome)


@settings(searched, max_examples=150)
@given(plans(faults=True), schedules())
def test_how_a_run_fails_is_admitted_by_the_laws(written: WrittenPlan, schedule: Schedule) -> None:
    assert_admitted(written, outcome_of(simulate(written.build(), schedule)))


@settings(searched, max_examples=400)
@given(plans(faults=True), schedules(), st.none() | st.integers(0, 4))
def test_every_trace_keeps_every_law(written: WrittenPlan, schedule: Schedule, items: int | None) -> None:
    check_schedule(written.build(), schedule, items=items)


@settings(searched, max_examples=400)
@given(plans(restarts=2), schedules(max_crashes=3), st.none() | st.integers(0, 4))
def test_every_trace_keeps_every_law_though_actors_die(
    written: WrittenPlan, schedule: Schedule, items: int | None
) -> None:
    run = check_schedule(written.build(), schedule, items=items)
    event(f"died: {isinstance(run.error, ActorDiedError)}")


@settings(searched, max_examples=150)
@given(plans(faults=True), st.none() | st.integers(0, 4))
def test_every_trace_of_a_run_in_this_process_keeps_every_law(
    written: WrittenPlan, items: int | None
) -> None:
    assert check(finished(written.build().run(record=True), items=items).trace) == []


@settings(searched, max_examples=150)
@given(plans(), schedules())
def test_a_synchronous_plan_delivers_the_same_on_every_engine(
    written: WrittenPlan, schedule: Schedule
) -> None:
    plan = written.build()
    inline, simulated = finished(plan.run(record=True)), simulate(plan, schedule)
    assert law_23_same(inline.trace, simulated.trace) == []
    assert law_23_same(simulate(plan, Schedule(schedule.seed + 1)).trace, simulated.trace) == []


@settings(searched, max_examples=150)
@given(plans(restarts=1), schedules(max_crashes=2), st.integers(0, 3))
def test_a_resumed_run_delivers_what_the_uninterrupted_one_does(
    written: WrittenPlan, schedule: Schedule, items: int
) -> None:
    plan = written.build()
    run = plan.run(schedule.engine(), record=True)
    with run:
        try:
            taken = list(itertools.islice(run, items))
            checkpoint = run.checkpoint()
        except RunError:
            return
        before = Trace(run.trace.plan, list(run.trace.events))
        whole, resumed = finished(run), finished(plan.run(schedule.engine(), record=True, resume=checkpoint))
        assert outcome_of(resumed) == outcome_of(whole)
        assert resumed.trace.events[: len(before)] == before.events
        assert law_22_resumed(before, resumed.trace, whole=run.trace) == []
    event(f"resumed after {len(taken)} items")


@settings(searched, max_examples=100)
@given(plans(faults=True, restarts=1), schedules(max_crashes=2))
def test_a_seed_replays_a_run(written: WrittenPlan, schedule: Schedule) -> None:
    first, again = simulate(written.build(), schedule), simulate(written.build(), schedule)
    assert (first.items, outcome_of(first)) == (again.items, outcome_of(again))
    assert [type(event) for event in first.trace] == [type(event) for event in again.trace]


def test_a_drawn_plan_prints_as_the_program_that_makes_it() -> None:
    written = WrittenPlan("from pipeflow import *\nplan = from_items([1, 2])\n")
    assert repr(written).endswith(written.code)
    assert list(written.build().run()) == [1, 2]


@pytest.mark.parametrize(
    ("outcome", "admitted"), [(Outcome((1, 2)), True), (Outcome((2, 1)), False), (Outcome((1,)), False)]
)
def test_the_comparison_with_the_reference_can_fail(outcome: Outcome, admitted: bool) -> None:
    written = WrittenPlan("from pipeflow import *\nplan = from_items([1, 2])\n")
    if admitted:
        assert_admitted(written, outcome)
    else:
        with pytest.raises(AssertionError, match="the laws do not admit"):
            assert_admitted(written, outcome)


# What the search above found, each as the small plan that it shrank to.


def test_an_outlet_that_is_not_wanted_any_more_waits_for_no_other() -> None:
    left, right = from_items([10]).fork(2, buffer=1)
    inner_left, inner_right = (left | double).fork(2, buffer=1)
    inner = ((inner_left | double | drain) & (right | double)).round_robin(1, 2)
    plan = (inner & inner_right).round_robin(2, 1)
    assert list(plan.run()) == [20, 20]
    assert every_outcome(plan) == [Outcome((20, 20))]


def test_in_a_shard_no_output_is_made_that_nobody_asks_for() -> None:
    on_driver = from_items([12]) | flat_map(both) | fail_on_three | take(1)
    in_shard = from_shards([[12]]) | flat_map(both) | fail_on_three | take(1) | gather_sync()
    assert list(on_driver.run()) == list(in_shard.run()) == [12]


def test_what_an_output_sends_takes_effect_before_the_next_output_of_the_same_input() -> None:
    workers, learner = actors(Worker, 1, 2, 0), actors(Learner, 1)
    updated = from_items([1]) | flat_map(both) | learner.stage(Learner.update)
    sampled = workers.produce(Worker.sample) | gather_sync()
    plan = ((updated | sync_weights(learner, workers)) & sampled).round_robin()
    assert list(plan.run()) == [1, 10_001, 1_000_002, 20_002]


def test_a_run_that_is_closed_gives_no_checkpoint() -> None:
    run = from_items([1]).run()
    assert list(run) == [1]
    with pytest.raises(RuntimeError, match="the run is closed"):
        run.checkpoint()
