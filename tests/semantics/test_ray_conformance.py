"""Ray keeps the laws, and shows nothing that the simulation cannot show (law 23)."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from pipeflow.dsl import (
    Sourced,
    Stream,
    actors,
    batch,
    buffer,
    drain,
    flatten,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    max_lag,
    sync_weights,
)
from pipeflow.semantics.events import Finished, Lost, Spawned, Trace
from pipeflow.semantics.laws import check
from pipeflow.testing.parts import Counted, Store, as_weights, double, is_even, total
from pipeflow.testing.replaying import NotReproducible, replayed
from tests.semantics.delayed import MortalWorker, SlowLearner, SlowWorker

pytestmark = pytest.mark.ray

DRIVER = os.getpid()
Plan = Callable[[], Stream[int]]


def rounds() -> Stream[int]:
    workers, learner = actors(SlowWorker, 2, 3, 10, DRIVER), actors(SlowLearner, 1, DRIVER)
    return (
        workers.produce(SlowWorker.sample)
        | gather_rounds()
        | total
        | learner.stage(SlowLearner.update)
        | sync_weights(learner, workers)
    )


def asynchronous() -> Stream[int]:
    workers, learner = actors(SlowWorker, 2, 4, 10, DRIVER), actors(SlowLearner, 1, DRIVER)
    return (
        workers.produce(SlowWorker.sample)
        | gather_async(2)
        | learner.stage(SlowLearner.update).max_in_flight(2)
        | sync_weights(learner, workers, every=2)
    )


def bounded() -> Stream[int]:
    workers, learner = actors(SlowWorker, 2, 4, 10, DRIVER), actors(SlowLearner, 1, DRIVER)
    gathered = workers.produce(SlowWorker.sample) | gather_async(2) | max_lag(1)
    return gathered | learner.stage(SlowLearner.update) | sync_weights(learner, workers)


def answered() -> Stream[int]:
    workers, learner = actors(SlowWorker, 2, 4, 10, DRIVER), actors(SlowLearner, 1, DRIVER)
    gathered = workers.produce(SlowWorker.sample) | gather_async(1).with_source()
    updated: Stream[Sourced[int, SlowWorker]] = gathered | learner.stage(SlowLearner.update)
    return updated.reply(SlowWorker.set_weights, as_weights)


def replay() -> Stream[int]:
    workers, store = actors(SlowWorker, 2, 3, 10, DRIVER), actors(Store, 1, 3, 3)
    storing = workers.produce(SlowWorker.sample) | gather_async() | store.stage(Store.add) | drain
    return storing & (store.produce(Store.sample) | gather_async())


def shared() -> Stream[int]:
    workers, learners = actors(SlowWorker, 2, 3, 10, DRIVER), actors(SlowLearner, 2, DRIVER)
    left, right = (workers.produce(SlowWorker.sample) | gather_async(2)).fork(2, buffer=2)
    return (left | learners.stage(SlowLearner.update).max_in_flight(2).unordered()) & (right | double)


def divided() -> Stream[int]:
    even, odd = (from_shards([range(4), range(10, 14)]) | gather_sync()).partition(is_even, buffer=2)
    learner = actors(SlowLearner, 1, DRIVER)
    return ((even | learner.stage(SlowLearner.update)) & (odd | batch(2) | flatten())) & from_items([90, 91])


def reduced() -> Stream[int]:
    workers = actors(SlowWorker, 2, 3, 10, DRIVER)
    sums = workers.produce(SlowWorker.sample) | gather_rounds() | workers.broadcast() | total
    return sums | workers.stage(SlowWorker.grade) | gather_sync()


def answered_together() -> Stream[int]:
    workers, learner = actors(SlowWorker, 2, 4, 10, DRIVER), actors(SlowLearner, 1, DRIVER)
    gathered = workers.produce(SlowWorker.sample) | gather_async(1).with_source() | batch(3)
    updated: Stream[Sourced[int, SlowWorker]] = gathered | learner.stage(SlowLearner.update_all)
    return updated.reply(SlowWorker.set_weights, as_weights)


def buffered() -> Stream[int]:
    workers, learner = actors(SlowWorker, 2, 4, 10, DRIVER), actors(SlowLearner, 1, DRIVER)
    ahead = workers.produce(SlowWorker.sample) | gather_async(2) | buffer(2)
    return ahead | learner.stage(SlowLearner.update) | sync_weights(learner, workers)


def proportioned() -> Stream[int]:
    workers, store = actors(SlowWorker, 2, 4, 10, DRIVER), actors(Store, 1, 3, 3)
    sampled = workers.produce(SlowWorker.sample).map(Counted) | gather_async()
    stored = sampled | store.stage(Store.add)
    return (stored.map(Counted) & (store.produce(Store.sample) | gather_async()).map(Counted)).by_steps(2, 1)


PLANS = [
    *(rounds, asynchronous, bounded, answered, replay, shared, divided),
    *(reduced, answered_together, buffered, proportioned),
]


@pytest.mark.parametrize("make", PLANS)
def test_a_trace_keeps_the_laws_and_is_one_that_the_simulation_can_show(
    ray_runtime: None, make: Plan
) -> None:
    plan = make()
    run = plan.run("ray", record=True)
    items = tuple(run)
    assert items, "a plan that delivers nothing tests nothing"
    assert check(run.trace) == []
    assert replayed(plan, run.trace).items == items


def test_actors_that_die_cost_what_the_laws_say(ray_runtime: None) -> None:
    workers = actors(MortalWorker, 2, 6, 10, DRIVER).restarts(5)
    learner = actors(SlowLearner, 1, DRIVER)
    plan = (
        workers.produce(MortalWorker.sample)
        | gather_async(2)
        | learner.stage(SlowLearner.update)
        | sync_weights(learner, workers)
    ) & from_items([])
    run = plan.run("ray", record=True)
    with run:
        for _ in zip(range(12), run, strict=False):
            pass
    assert any(isinstance(event, Lost) for event in run.trace)
    assert any(isinstance(event, Spawned) and event.restart for event in run.trace)
    assert check(run.trace) == []


def test_a_trace_of_no_schedule_is_told() -> None:
    plan = from_shards([[1, 2], [10]]) | gather_async()
    run = plan.run(record=True)
    assert list(run)
    finished = [index for index, event in enumerate(run.trace) if isinstance(event, Finished)]
    doctored = Trace(run.trace.plan, list(run.trace.events))
    del doctored.events[finished[-1]]
    with pytest.raises(NotReproducible):
        replayed(plan, doctored)
