"""Faults of RLlib Flow in what becomes of the data: numbers 5, 7, 10, 10b, 12, 13, 17 and 26 of its table."""

from __future__ import annotations

import os
import time
from itertools import islice

import numpy as np
import pytest
import ray

from pipeflow import (
    Sourced,
    Stream,
    actors,
    batch,
    buffer,
    concat,
    drain,
    flatten,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    groups_with,
    reply_weights,
    sync_weights,
    take,
)
from pipeflow.lowering.engines.sim import Sim
from pipeflow.rl.gradients import Gradients
from tests.conftest import EngineName
from tests.faults.actors import ArrayLearner, ArrayWorker, Bulk
from tests.lowering.actors import (
    Arithmetic,
    Learner,
    Recorder,
    Roller,
    Sample,
    Sealed,
    Sealer,
    Worker,
)


@pytest.mark.parametrize("seed", range(10))
def test_fault_05_an_item_made_of_several_answers_each_that_it_came_from(seed: int) -> None:
    """Flow remembered the source of the item last read: after batching, others waited for weights for ever."""
    workers, learner = actors(Worker, 3), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_async(2).with_source()
        | batch(2)
        | learner.stage(Learner.update_round)
        | reply_weights(learner)
        | take(10)
    )
    with plan.run(Sim(seed)) as run:
        batches = list(run)
        messages = run.ask(workers, Worker.messages)
    expected: list[list[int]] = [[0], [0], [0]]
    for version, samples in enumerate(batches, start=1):
        for shard in {sample.shard for sample in samples}:
            expected[shard].append(version)
    assert messages == expected


def test_fault_05_the_sources_are_part_of_the_item_and_not_of_the_moment() -> None:
    def sources(sourced: Sourced[object, Roller]) -> list[int]:
        return [source.index for source in sourced.sources]

    rollers = actors(Roller, 2)
    joined = rollers.produce(Roller.roll) | gather_sync().with_source() | concat(6) | buffer(3) | take(4)
    assert list((joined | sources).run()) == [[0, 1]] * 4


def gradient(values: list[float], steps: int) -> Gradients:
    return Gradients(np.array(values, np.float32), steps, steps, version=0)


def test_fault_07_averaging_gradients_averages_weighted_by_steps() -> None:
    """Flow's AverageGradients added them up."""
    mean = Gradients.mean([gradient([2.0, 0.0], 1), gradient([4.0, 8.0], 3)])
    np.testing.assert_allclose(mean.values, [3.5, 6.0])
    assert mean.steps == 4
    parts = [gradient([1.0], 2), gradient([5.0], 2), gradient([9.0], 4)]
    nested = Gradients.mean([Gradients.mean(parts[:2]), parts[2]])
    np.testing.assert_allclose(nested.values, Gradients.mean(parts).values)


def test_fault_07_a_plan_averages_what_its_shards_made_like_a_dense_computation() -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(3, 4, 5)).astype(np.float32)  # shards, rounds, parameters
    shards = [[gradient(list(map(float, row)), 8) for row in rows] for rows in dense]
    plan = from_shards(shards) | gather_rounds() | Gradients.mean
    for made, expected in zip(plan.run(), dense.mean(axis=0), strict=True):
        np.testing.assert_allclose(made.values, expected, rtol=1e-5)


def test_fault_10_what_fans_out_is_not_shared_with_a_branch_that_writes(engine: EngineName) -> None:
    """Flow handed one object to all; an operator that wrote in place changed the other's data."""

    def zeroed(item: list[int]) -> list[int]:
        item.clear()
        return item

    left, right = (from_shards([[[1, 2], [3]]]) | gather_sync()).fork(2, buffer=2)
    found = list(((left | zeroed) & right).round_robin(1, 1).run(engine))
    assert found == [[], [1, 2], [], [3]]


def test_fault_10b_weights_are_snapshots_that_nothing_changes_afterwards(engine: EngineName) -> None:
    """Flow's driver read the weights while the learner's thread wrote them."""
    workers, learner = actors(ArrayWorker, 1), actors(ArrayLearner, 1)
    plan = (
        workers.produce(ArrayWorker.sample)
        | gather_sync()
        | learner.stage(ArrayLearner.update)
        | sync_weights(learner, workers, every=2)
        | take(6)
    )
    with plan.run(engine) as run:
        snapshots = list(run)
    # The learner writes into its own array after every item; what the workers act with is of one version.
    assert [snapshot.tolist() for snapshot in snapshots] == [[version] * 3 for version in (0, 0, 2, 2, 4, 4)]


def stalled(size: int) -> Stream[int]:
    """At most so many items can be under way: four in the gather, two in the buffer, two at the taker."""
    makers, taker = actors(Bulk, 2, size), actors(Bulk, 1, size).named("taker")
    return makers.produce(Bulk.make) | gather_async(2) | buffer(2) | taker.stage(Bulk.take).max_in_flight(2)


UNDER_WAY = 4 + 2 + 2


@pytest.mark.ray
def test_fault_12_bytes_stay_bounded_under_a_stalled_consumer(ray_runtime: None) -> None:
    """In Flow they did not: the store filled, and then the disk."""
    size = 4 << 20
    before = _stored()
    with stalled(size).run("ray") as run:
        for _ in range(3):
            assert list(islice(run, 8)) == [size] * 8
            time.sleep(0.4)  # the consumer does something else; nothing is asked for meanwhile
            assert 0 < _stored() - before <= UNDER_WAY * (size + 1024)


def _stored() -> float:
    """Bytes in Ray's object store, which tells them a moment late."""
    time.sleep(0.2)
    used: float = (
        ray.cluster_resources()["object_store_memory"] - ray.available_resources()["object_store_memory"]
    )
    return used


@pytest.mark.parametrize("seed", range(6))
def test_fault_12_items_stay_bounded_under_any_schedule(seed: int) -> None:
    size = 16
    plan = stalled(size)
    makers = groups_with(plan, Bulk)[0]
    with plan.run(Sim(seed)) as run:
        for delivered, _ in enumerate(islice(run, 20), start=1):
            assert sum(run.ask(makers, Bulk.made)) <= delivered + UNDER_WAY


def test_fault_13_a_branch_of_a_fork_runs_ahead_by_its_buffer_and_no_further() -> None:
    """Flow's duplicate was lock-step: one branch could not be read before the other."""
    read = list[int]()
    left, right = from_items(range(20)).tap(read.append).fork(2, buffer=4)
    run = (left & (right | batch(20) | flatten())).prioritised().run()
    first = list(islice(run, 20))
    assert sorted(first) == list(range(20))
    behind = actors(Recorder, 1)
    ahead, slow = from_items(range(20)).fork(2, buffer=3)
    plan = (ahead & (slow | behind.stage(Recorder.note_number) | drain)).prioritised()
    with plan.run() as ahead_run:
        for delivered, _ in enumerate(islice(ahead_run, 20), start=1):
            assert delivered - len(ahead_run.ask(behind, Recorder.notes)[0]) <= 3 + 1


def test_fault_17_weights_flow_along_an_edge_of_the_plan_and_to_nobody_else() -> None:
    """In Flow they were broadcast to all, as a side effect of training."""
    workers, others, learner = actors(Worker, 2), actors(Worker, 1).named("others"), actors(Learner, 1)
    trained = workers.produce(Worker.sample) | gather_sync() | learner.stage(Learner.update)
    untouched = others.produce(Worker.sample) | gather_sync()
    synced = (trained | sync_weights(learner, workers, every=2) | take(4)) & (untouched | take(2))
    assert synced.to_mermaid().count('-.->|"weights"|') == 1
    with synced.run() as run:
        assert len(list(run)) == 6
        assert run.ask(workers, Worker.messages) == [[0, 2, 4], [0, 2, 4]]
        assert run.ask(others, Worker.messages) == [[]]
    silent = actors(Worker, 1)
    plan = silent.produce(Worker.sample) | gather_sync() | actors(Learner, 1).stage(Learner.update) | take(2)
    assert list(plan.run()) == [Sample(0, 0, -1), Sample(0, 1, -1)], "training alone sends nothing"


@pytest.mark.ray
def test_fault_26_data_go_from_actor_to_actor_and_the_driver_reads_none(ray_runtime: None) -> None:
    """All data of Flow passed through the driver at every gather."""
    makers, pool, taker = (actors(Sealer, count, os.getpid()) for count in (2, 2, 1))
    plan = (
        makers.produce(Sealer.make)
        | gather_rounds()
        | makers.broadcast()
        | Sealed.concatenate
        | gather_sync()
        | batch(2)
        | pool.stage(Sealer.join)
        | taker.stage(Sealer.open)
        | sync_weights(taker, makers)
        | take(2)
    )
    assert list(plan.run("ray")) == [2 + 2, 4 + 4]


def test_fault_26_a_small_part_is_read_where_the_plan_says_so() -> None:
    plan = from_shards([[1, 2, 3]]) | gather_sync() | actors(Arithmetic, 1).stage(Arithmetic.square)
    seen = list[int]()
    assert list(plan.tap(seen.append).run()) == seen == [1, 4, 9]
