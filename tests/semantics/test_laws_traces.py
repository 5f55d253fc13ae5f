"""The laws as a whole: the beginning of a lawful trace keeps them, and an event that is missing breaks one."""

from __future__ import annotations

from typing import Any

import pytest

from pipeflow.dsl import (
    Stream,
    actors,
    batch,
    drain,
    every,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    max_lag,
    sync_weights,
    take,
)
from pipeflow.lowering.engines.sim import Sim
from pipeflow.semantics.events import (
    Called,
    Closed,
    Delivered,
    Dropped,
    Event,
    Raised,
    Shared,
    Spawned,
    Stopped,
    Trace,
)
from pipeflow.semantics.laws import LAWS, check
from tests.lowering.actors import Learner, Recorder, Worker
from tests.semantics.mutants import trace_of


def everything(restarts: int = 0) -> Stream[Any]:
    """A plan with most of the operators."""
    workers = actors(Worker, 2).restarts(restarts)
    learner, recorder = actors(Learner, 1).restarts(restarts), actors(Recorder, 1).restarts(restarts)
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


@pytest.mark.parametrize("crashes", [0, 2])
def test_no_law_is_broken_in_the_beginning_of_a_lawful_trace(crashes: int) -> None:
    trace = trace_of(everything(restarts=3), Sim(seed=4, crashes=crashes))
    for end in [*range(0, len(trace), 11), len(trace)]:
        assert check(Trace(trace.plan, trace.events[:end])) == []


@pytest.mark.parametrize(
    "kind", [Spawned, Called, Delivered, Dropped, Shared, Stopped], ids=lambda kind: kind.__name__
)
def test_an_event_that_is_missing_is_noticed(kind: type[Event]) -> None:
    """Whatever is taken out of the trace of a whole run, some law says that it should be there."""
    trace = trace_of(everything(), Sim(seed=2))
    events = [index for index, event in enumerate(trace) if isinstance(event, kind)]
    assert events
    for index in events:
        assert check(Trace(trace.plan, trace.events[:index] + trace.events[index + 1 :])), trace.events[index]


@pytest.mark.parametrize("kind", [Called, Delivered, Dropped, Shared, Closed], ids=lambda kind: kind.__name__)
def test_an_event_that_comes_twice_is_noticed(kind: type[Event]) -> None:
    trace = trace_of(everything(), Sim(seed=2))
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
