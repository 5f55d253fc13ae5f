"""Faults of RLlib Flow when something fails, and in going on afterwards: numbers 4, 8, 9 and 14 of its table."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable
from itertools import islice

import pytest

from pipeflow import (
    ActorDiedError,
    StageError,
    Stream,
    actors,
    batch,
    buffer,
    drain,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    shuffle,
    sync_weights,
    take,
    throttle,
)
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.sim import Sim
from tests.conftest import EngineName
from tests.faults.actors import process_of
from tests.lowering.actors import Counter, Failing, Learner, Recorder, Sample, Worker
from tests.lowering.clock import ClockedEngine


def stops_at_two(number: int) -> int:
    return number if number != 2 else next(iter(list[int]()))


def test_fault_04_a_stop_iteration_of_user_code_is_an_error_with_stage_actor_and_item(
    engine: EngineName,
) -> None:
    """In Flow it ended the worker's stream in silence, and later errors looked like it."""
    run = (from_shards([[0, 1, 2, 3]]) | stops_at_two | gather_sync()).run(engine)
    assert [next(run), next(run)] == [0, 1]
    with pytest.raises(StageError, match="StopIteration") as caught:
        next(run)
    error = caught.value
    assert (error.stage, error.actor, error.item) == ("stops_at_two", "shards[0]", 2)
    assert "test_failure_faults.py:" in error.site
    assert type(error.__cause__) is StopIteration


@pytest.mark.parametrize(
    ("method", "kind"), [(Failing.stops, StopIteration), (Failing.third_fails, LookupError)]
)
def test_fault_04_every_error_keeps_its_own_type(
    method: Callable[[Failing], int], kind: type[Exception]
) -> None:
    with pytest.raises(StageError) as caught:
        list((actors(Failing, 1).produce(method) | gather_async(2)).run())
    assert type(caught.value.__cause__) is kind


@pytest.mark.ray
def test_fault_08_a_killed_worker_costs_what_it_had_in_flight_and_nothing_else(ray_runtime: None) -> None:
    """Flow built the plan anew: counters, buffers and the other workers' items were lost."""
    workers, learner, recorder = actors(Worker, 2).restarts(1), actors(Learner, 1), actors(Recorder, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync()
        | learner.stage(Learner.update)
        | recorder.send(Recorder.note)
        | sync_weights(learner, workers)
    )
    with plan.run("ray") as run:
        before = list(islice(run, 6))
        os.kill(run.ask(workers, process_of)[0], signal.SIGKILL)
        after = list(islice(run, 6))
        found = [*before, *after]
        # The learner and the counters of the plan go on.
        assert run.ask(learner, Learner.weights) == [12]
        assert run.stats()["Learner.stage(Learner.update)"].items_out == 12
        assert run.ask(recorder, Recorder.notes) == [found]
        # The other worker goes on where it was; the new one acts with the latest weights from its first item on.
        assert [sample.k for sample in found if sample.shard == 1] == list(range(len(found) // 2))
        restarted = [sample for sample in after if sample.shard == 0 and sample.k == 0]
        assert restarted
        assert min(sample.version for sample in after if sample.shard == 0) >= 4


@pytest.mark.parametrize("seed", range(12))
def test_fault_08_under_any_schedule_the_others_lose_nothing(seed: int) -> None:
    """At most one worker begins anew; of every other, and of its items since, all come in their order."""
    workers = actors(Worker, 3).restarts(1)
    delivered = list[Sample]()
    plan = (workers.produce(Worker.sample) | gather_async(2)).tap(delivered.append) | take(20)
    with plan.run(Sim(seed, crashes=1)) as run:
        assert list(run) == delivered
        assert run.stats()["gather_async(2)"].items_out == len(delivered) == 20
    begun = 0
    for shard in range(3):
        numbers = [sample.k for sample in delivered if sample.shard == shard]
        begun += sum(number == 0 for number in numbers[1:])
        assert all(number in (last + 1, 0) for last, number in itertools.pairwise(numbers))
    assert begun <= 1


def everything_with_a_state() -> Stream[object]:
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    sampled = (
        workers.produce(Worker.sample)
        | gather_async(2)
        | batch(3)
        | learner.stage(Learner.update_round)
        | sync_weights(learner, workers, every=2)
        | buffer(2)
        | throttle(0.002)
        | take(9)
    )
    data = from_items(list(range(40))) | shuffle(6, seed=7) | batch(2)
    return sampled.zip(data)


@pytest.mark.parametrize("make", [ClockedEngine, lambda: Sim(1), lambda: Sim(2)])
@pytest.mark.parametrize("delivered", [0, 3, 7])
def test_fault_09_a_checkpoint_has_buffers_random_state_throttles_and_actors(
    make: Callable[[], Engine], delivered: int
) -> None:
    """Flow saved counters only."""
    plan = everything_with_a_state()
    with plan.run(make()) as run:
        list(islice(run, delivered))
        checkpoint = run.checkpoint()
        rest = list(run)
        counters = [(node.items_in, node.items_out) for node in run.stats().nodes]
    with plan.run(make(), resume=checkpoint) as resumed:
        assert list(resumed) == rest
        assert [(node.items_in, node.items_out) for node in resumed.stats().nodes] == counters
    assert len(rest) == 9 - delivered


def test_fault_14_an_error_in_a_learner_that_nobody_reads_ends_the_run(engine: EngineName) -> None:
    """Flow's learner was a thread, whose death went unnoticed while the driver waited for its queue."""
    failing = actors(Failing, 1).named("learner")
    trained = from_items([7]) | failing.stage(Failing.refuse) | drain
    run = (trained & from_items(itertools.repeat(0))).run(engine)
    with pytest.raises(
        StageError, match=r"failed on item 0 in learner\[0\]: ValueError: refused 7"
    ) as caught:
        list(run)
    told = f"{caught.value}{caught.value.__cause__!r}"
    assert "refused 7" in told
    assert list(run) == []


@pytest.mark.ray
def test_fault_14_a_learner_that_dies_is_named_within_seconds(ray_runtime: None) -> None:
    learner = actors(Counter, 1).named("learner")
    plan = from_items(itertools.count()) | learner.stage(Counter.scaled)
    with plan.run("ray") as run:
        next(run)
        os.kill(run.ask(learner, process_of)[0], signal.SIGKILL)
        started = time.monotonic()
        with pytest.raises(ActorDiedError, match=r"^learner\[0\] died"):
            list(islice(run, 1000))
        assert time.monotonic() - started < 15
