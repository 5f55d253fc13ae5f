"""The laws as a whole: the beginning of a lawful trace keeps them, and an event that is missing breaks one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeflow.dsl import (
    Sourced,
    Stream,
    actors,
    batch,
    buffer,
    concat,
    drain,
    every,
    every_seconds,
    from_items,
    from_shards,
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
from pipeflow.lowering.engines.sim import Sim
from pipeflow.semantics.events import (
    Called,
    Closed,
    Counted,
    Delivered,
    Dropped,
    Event,
    Raised,
    Shared,
    Spawned,
    Stopped,
    Timed,
    Trace,
)
from pipeflow.semantics.laws import LAWS, check
from pipeflow.testing import parts
from tests.lowering.actors import Learner, Recorder, Worker
from tests.semantics.mutants import trace_of

Plan = Callable[[], Stream[Any]]


def everything() -> Stream[Any]:
    """A plan with gathers, stages, gates, messages and unions."""
    workers = actors(Worker, 2).restarts(3)
    learner, recorder = actors(Learner, 1).restarts(3), actors(Recorder, 1).restarts(3)
    left, right = (workers.produce(Worker.sample) | gather_async(2) | max_lag(3)).fork(2, buffer=3)
    low, high = (from_items(range(9)) | batch(2)).partition(starts_low, buffer=4)
    return (
        (left | learner.stage(Learner.update) | sync_weights(learner, workers) | take(5))
        & (right | every(2) | recorder.stage(Recorder.note).max_in_flight(2) | drain)
        & low.map(len, here=True)
        & (high | recorder.send(Recorder.note))
        & (from_shards([[1, 2, 3], [4]]) | gather_sync()).filter(lambda number: number > 1)
    )


def starts_low(numbers: list[int]) -> bool:
    return numbers[0] % 4 == 0


def of_operators() -> Stream[Any]:
    """A plan with the operators that pair, scatter, pace, buffer, answer and count steps."""
    workers, learner = actors(parts.Worker, 2, 3, 10).restarts(3), actors(parts.Learner, 1).restarts(3)
    sourced: Stream[Sourced[parts.Counted, parts.Worker]] = (
        workers.produce(parts.Worker.sample).map(parts.Counted) | gather_async(2).with_source()
    )
    answered = sourced | concat(3) | learner.stage(parts.Learner.update) | reply_weights(learner)
    scattered = from_items(range(2)) | workers.scatter() | workers.stage(parts.Worker.grade) | gather_sync()
    reduced = from_items(range(1)) | workers.broadcast() | workers.stage(parts.Worker.grade) | gather_rounds()
    counted, drained = (from_items(range(start, start + 5)).map(parts.Counted) for start in (0, 10))
    return (
        (answered.zip((scattered & reduced) | buffer(2)) | update_target(learner))
        & (counted & (drained | drain)).by_steps(1, 2)
        & (from_shards([range(9)]) | gather_async() | every_seconds(0.01))
        & (from_items(range(2)) | throttle(0.01))
    )


@pytest.mark.parametrize("make", [everything, of_operators])
@pytest.mark.parametrize("crashes", [0, 2])
def test_no_law_is_broken_in_the_beginning_of_a_lawful_trace(make: Plan, crashes: int) -> None:
    trace = trace_of(make(), Sim(seed=4, crashes=crashes))
    for end in [*range(0, len(trace), 11), len(trace)]:
        assert check(Trace(trace.plan, trace.events[:end])) == []


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        *((everything, kind) for kind in (Spawned, Called, Delivered, Dropped, Shared, Stopped)),
        *((of_operators, kind) for kind in (Called, Delivered, Dropped, Shared, Counted, Timed)),
    ],
)
def test_an_event_that_is_missing_is_noticed(make: Plan, kind: type[Event]) -> None:
    """Whatever is taken out of the trace of a whole run, some law says that it should be there."""
    trace = trace_of(make(), Sim(seed=2))
    events = [index for index, event in enumerate(trace) if isinstance(event, kind)]
    assert events
    for index in events:
        assert check(Trace(trace.plan, trace.events[:index] + trace.events[index + 1 :])), trace.events[index]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        *((everything, kind) for kind in (Called, Delivered, Dropped, Shared, Closed)),
        *((of_operators, kind) for kind in (Called, Delivered, Dropped, Shared, Counted, Timed)),
    ],
)
def test_an_event_that_comes_twice_is_noticed(make: Plan, kind: type[Event]) -> None:
    trace = trace_of(make(), Sim(seed=2))
    for index, event in enumerate(trace):
        if isinstance(event, kind):
            assert check(Trace(trace.plan, trace.events[: index + 1] + trace.events[index:])), event


def test_violations_come_in_the_order_of_the_events() -> None:
    trace = trace_of(everything(), Sim(seed=2))
    found = check(Trace(trace.plan, [event for event in trace if not isinstance(event, Delivered)]))
    assert [broken.event_index for broken in found] == sorted(broken.event_index for broken in found)
    assert len({broken.law for broken in found}) > 5


def test_only_the_laws_that_are_asked_for_are_checked() -> None:
    trace = trace_of(from_items([1, 2]) | abs, Sim())
    late = Trace(trace.plan, [*trace.events, Raised("ValueError", "late"), *trace.events[:1]])
    assert {broken.law for broken in check(late)} > {20}
    assert {broken.law for broken in check(late, [20])} == {20}
    with pytest.raises(ValueError, match=r"there are no laws \[27\]; they are numbered from 1 to 26"):
        check(trace, [20, 27])


def test_laws_are_numbered_from_1_to_26_and_state_what_they_check() -> None:
    assert [law.number for law in LAWS] == list(range(1, 27))
    assert all(law.check.__name__ == f"law_{law.number}" for law in LAWS)
    assert all(law.statement.endswith(".") and ">>>" not in law.statement for law in LAWS)
