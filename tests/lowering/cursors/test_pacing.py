"""What changes when items pass and nothing else: `buffer`, and `throttle` and `every_seconds` by the clock."""

from __future__ import annotations

import time
from itertools import islice

import pytest

from pipeflow.dsl import (
    DeadlockError,
    actors,
    buffer,
    drain,
    every_seconds,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    take,
    throttle,
)
from pipeflow.dsl.pacing import Pace
from pipeflow.lowering.engines.sim import Sim
from pipeflow.testing import Schedule, check_schedule
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Counter, Recorder, Store
from tests.lowering.clock import ClockedEngine


def test_throttle_lets_one_item_pass_in_so_many_seconds_and_drops_none() -> None:
    engine = ClockedEngine()
    run = (from_items([1, 2, 3]) | throttle(1.5)).run(engine)
    assert [(item, engine.now()) for item in run] == [(1, 0.0), (2, 1.5), (3, 3.0)]
    assert engine.slept == [1.5, 1.5], "it waits once for each item rather than looking again and again"


def test_throttle_does_not_wait_for_what_comes_late_enough() -> None:
    engine = ClockedEngine()
    run = (from_items([1, 2, 3]) | throttle(1.0)).run(engine)
    arrived = list[tuple[int, float]]()
    for item in run:
        arrived.append((item, engine.now()))
        engine.tick(0.25 if item == 1 else 4.0)
    assert arrived == [(1, 0.0), (2, 1.0), (3, 5.0)]
    assert engine.slept == [0.75]


def test_throttle_takes_the_next_item_only_when_asked_and_holds_one() -> None:
    """Law 17."""
    read = list[int]()
    run = (from_items(range(9)).tap(read.append) | throttle(1.0)).run(ClockedEngine())
    for delivered, _ in enumerate(islice(run, 4), start=1):
        assert len(read) == delivered
    run.close()


def test_throttle_holds_up_no_other_branch() -> None:
    engine = ClockedEngine()
    plan = (from_items([1, 2]) | throttle(9.0)) & from_items([-1, -2, -3])
    assert list(plan.run(engine)) == [1, -1, -2, -3, 2]
    assert engine.slept == [9.0]


def test_a_throttle_that_nobody_asks_any_more_wakes_nobody() -> None:
    """It holds an item when `take` closes; what goes on then waits for something else, or for ever."""
    engine = ClockedEngine()
    few = ((from_items([1, 2]) | throttle(9.0)) & from_items([-1, -2])) | take(3)
    never = actors(Store, 1).produce(Store.sample) | gather_async()
    run = (few & never).run(engine)
    assert list(islice(run, 3)) == [1, -1, -2]
    with pytest.raises(DeadlockError, match=r"Store\[0\], which had nothing"):
        next(run)
    assert engine.slept == []


def test_throttle_bounds_the_rate_in_real_time() -> None:
    started = time.monotonic()
    assert list((from_items([1, 2, 3]) | throttle(0.02)).run()) == [1, 2, 3]
    assert time.monotonic() - started >= 0.04


def test_every_seconds_drops_what_comes_sooner() -> None:
    engine = ClockedEngine()
    ticking = from_items(range(7)).tap(lambda _: engine.tick(0.5)) | every_seconds(1.25)
    # The items come at 0.5, 1.0, ..., 3.5; the next may pass 1.25 seconds after the last that did.
    assert list(ticking.run(engine)) == [0, 3, 6]
    assert engine.slept == [], "it never waits"


@pytest.mark.parametrize("operator", [every_seconds(3600), throttle(0.001)], ids=["every", "throttle"])
def test_a_finite_stream_ends_though_its_operator_goes_by_the_clock(operator: Pace) -> None:
    """Law 18."""
    paced = from_items([5, 6]) | operator
    assert list(paced.run()) in ([5], [5, 6])
    assert list((from_items(list[int]()) | every_seconds(3600)).run()) == []


def test_a_timed_branch_that_is_drained_keeps_no_union_from_its_end() -> None:
    """Law 13: as a checkpoint every hour beside a training of minutes."""
    recorder = actors(Recorder, 1)
    saves = from_items(range(99)) | every_seconds(3600) | recorder.stage(Recorder.note_number) | drain
    with (saves & (from_shards([[1] * 5]) | gather_sync())).run() as run:
        assert list(run) == [1] * 5
        assert run.ask(recorder, Recorder.notes) == [[0]]


@pytest.mark.parametrize("seed", range(8))
def test_pacing_keeps_the_order_under_every_schedule(seed: int) -> None:
    numbers = actors(Counter, 1, limit=6).produce(Counter.next_number) | gather_async(3)
    assert list((numbers | throttle(0.004) | buffer(2)).run(Sim(seed))) == [1, 2, 3, 4, 5, 6]
    kept = actors(Counter, 1, limit=9).produce(Counter.next_number) | gather_async(3) | every_seconds(0.01)
    found = list(kept.run(Sim(seed)))
    assert found[0] == 1
    assert found == sorted(set(found))


def test_a_buffer_delivers_the_same_items(engine: EngineName) -> None:
    """Law 16: it changes nothing else."""
    numbers = from_shards([[1, 2, 3], [4, 5]]) | gather_sync() | buffer(2)
    assert list((numbers | actors(Arithmetic, 1).stage(Arithmetic.square)).run(engine)) == [1, 16, 4, 25, 9]


def test_a_buffer_runs_ahead_while_its_reader_is_busy_and_no_further_than_it_may() -> None:
    """Law 16: the learner is at work on one item while up to three more are made."""
    assert _most_ahead(buffered=3) == 1 + 3


def test_without_a_buffer_nothing_runs_ahead_of_a_busy_reader() -> None:
    """Law 17."""
    assert _most_ahead(buffered=0) == 1


def _most_ahead(buffered: int) -> int:
    """How many items were read at most beyond those that the reader had finished."""
    read = list[int]()
    finished = list[int]()
    ahead = list[int]()

    class Slow:
        def work(self, number: int) -> int:
            finished.append(number)
            return number

    items = from_items(range(12)).tap(read.append).tap(lambda _: ahead.append(len(read) - len(finished)))
    source = items if not buffered else items | buffer(buffered)
    run = (source | actors(Slow, 1).stage(Slow.work)).run()
    assert list(run) == list(range(12))
    return max(ahead)


def test_a_buffer_is_not_filled_before_the_run_is_asked() -> None:
    """Law 17."""
    counter = actors(Counter, 1)
    with (counter.produce(Counter.next_number) | gather_async() | buffer(4)).run() as run:
        assert run.ask(counter, Counter.started) == [0]
        assert next(run) == 1


def test_a_buffer_reports_what_it_holds() -> None:
    plan = from_items(range(9)) | buffer(3) | actors(Arithmetic, 1).stage(Arithmetic.square)
    with plan.run() as run:
        next(run)
        assert run.stats()["buffer(3)"].queue == 3


def test_taking_through_a_buffer_leaves_at_most_its_size_behind() -> None:
    """Law 17: for a `take` the stream before it is told to start nothing more."""
    counter = actors(Counter, 1)
    few = counter.produce(Counter.next_number) | gather_async() | buffer(2) | take(3)
    with (few & from_items([-1] * 30)).run() as run:
        assert sorted(run) == [-1] * 30 + [1, 2, 3]
        assert run.ask(counter, Counter.started)[0] <= 3 + 2 + 1


@pytest.mark.parametrize("seed", range(8))
def test_a_buffer_does_not_ask_what_told_its_reader_that_it_has_ended(seed: int) -> None:
    """Law 18: a branch that is stopped leaves its fork, and what the other end then reads is not for it."""
    left, right = (from_shards([[1], [2]]) | gather_async(1)).fork(2, buffer=1)
    first = ((left | buffer(1) | drain) & from_items([3])).map(int)
    plan = first & (right | drain)
    check_schedule(plan, Schedule(seed))


@pytest.mark.parametrize("seed", range(8))
def test_a_buffer_lets_a_source_that_is_not_ready_wait(seed: int) -> None:
    """Law 8."""
    store = actors(Store, 1, warm=2)
    filled = from_items([5, 6]) | store.stage(Store.add) | drain
    samples = store.produce(Store.sample) | gather_async() | buffer(2) | take(2)
    assert list((filled & samples).run(Sim(seed))) == [5, 6]
