"""Resuming from a checkpoint, in memory or from a folder, delivers what the unbroken run would have (law 22)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeflow import (
    CheckpointError,
    Stream,
    actors,
    batch,
    buffer,
    concat,
    drain,
    every,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    once_per_steps,
    reply_weights,
    shuffle,
    sync_weights,
    take,
    throttle,
)
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.engines.sim import Sim
from pipeflow.lowering.run import EngineName
from tests.lowering.actors import Counter


@dataclass(frozen=True)
class Steps:
    steps: int

    @classmethod
    def concatenate(cls, items: object) -> Steps:
        assert isinstance(items, list)
        return cls(sum(item.steps for item in items))


class Worker:
    def __init__(self) -> None:
        self._made = 0
        self._weights = 0

    def sample(self) -> int:
        self._made += 1
        return 1000 * self._weights + self._made

    def set_weights(self, weights: int, /) -> None:
        self._weights = weights

    def add(self, number: int) -> int:
        self._made += number
        return self._made


class Learner:
    def __init__(self) -> None:
        self._updates = 0

    def update(self, batch: list[int]) -> tuple[int, list[int]]:
        self._updates += 1
        return self._updates, batch

    def weights(self) -> int:
        return self._updates


def training(num_async: int | None) -> Stream[tuple[int, list[int]]]:
    workers, learner = actors(Worker, 3), actors(Learner, 1)
    gather = gather_sync() if num_async is None else gather_async(num_async)
    return (
        workers.produce(Worker.sample)
        | gather
        | batch(2)
        | learner.stage(Learner.update)
        | sync_weights(learner, workers)
        | take(9)
    )


def shared() -> Stream[object]:
    left, right = (from_items(list(range(12))) | every(2)).fork(2, buffer=4)
    pairs = (from_shards([[1, 2, 3], [4, 5]]) | batch(2)) | gather_sync()
    stored = right | batch(2) | drain
    return (left & pairs & stored).round_robin(2, 1, 1)


def spread() -> Stream[object]:
    """What runs ahead, what goes by the clock, pairs, an order of chance, and actors that are fed."""
    workers = actors(Worker, 2)
    rounds = (
        workers.produce(Worker.sample)
        | gather_rounds()
        | workers.broadcast()
        | sum
        | workers.stage(Worker.add)
        | gather_sync()
        | buffer(2)
        | throttle(0.002)
        | take(10)
    )
    return rounds.zip(from_items(list(range(20))) | shuffle(4, seed=2))


def counted() -> Stream[object]:
    """Branches by their steps, a gate that counts them, and weights to the sources of what was joined."""
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    sampled = (
        workers.produce(Worker.sample)
        | gather_async(2).with_source()
        | batch(3)
        | learner.stage(Learner.update)
        | reply_weights(learner, every=2)
        | weighed
        | take(8)
    )
    others = from_items([Steps(number % 4 + 1) for number in range(20)]) | once_per_steps(3)
    return (sampled & others).by_steps(2, 1) | steps_of


def weighed(update: tuple[int, list[int]]) -> Steps:
    return Steps(update[0] % 3 + 1)


def steps_of(item: Steps) -> int:
    return item.steps


def prioritised() -> Stream[object]:
    urgent = from_shards([[1, 2, 3], [4, 5]]) | gather_async(2)
    return (urgent & (from_items(list(range(-9, 0))) | batch(2))).prioritised()


def engines() -> Iterator[Engine]:
    yield InlineEngine()
    for seed in range(5):
        yield Sim(seed)


def engine(index: int) -> Engine:
    return list(engines())[index]


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("delivered", [0, 1, 4, 8])
@pytest.mark.parametrize(
    "plan",
    [training(None), training(1), training(2), shared(), spread(), counted(), prioritised()],
    ids=["sync", "async 1", "async 2", "shared", "spread", "counted", "prioritised"],
)
def test_law_22_the_items_after_it_are_those_of_the_unbroken_run(
    plan: Stream[object], delivered: int, index: int, tmp_path: Path
) -> None:
    with plan.run(engine(index)) as run:
        before = list(itertools.islice(run, delivered))
        checkpoint = run.checkpoint()
        after = list(run)
    assert before + after == list(plan.run(engine(index)))
    checkpoint.save(tmp_path / "it")
    assert list(plan.run(engine(index), resume=checkpoint)) == after
    assert list(plan.run(engine(index), resume=tmp_path / "it")) == after
    assert list(plan.run(engine(index), resume=checkpoint)) == after, "it is good for more than one run"


def test_law_22_the_counters_go_on() -> None:
    plan = training(None)
    with plan.run() as run:
        next(run)
        checkpoint = run.checkpoint()
        list(run)
        whole = [(node.items_in, node.items_out) for node in run.stats().nodes]
    with plan.run(resume=checkpoint) as resumed:
        list(resumed)
        assert [(node.items_in, node.items_out) for node in resumed.stats().nodes] == whole


def test_a_checkpoint_of_another_plan_is_refused() -> None:
    checkpoint = training(None).run().checkpoint()
    with pytest.raises(
        CheckpointError, match=r"of another plan: it has 'gather_sync.* this one has 'gather_async"
    ):
        training(1).run(resume=checkpoint)


def test_a_generator_cannot_be_checkpointed_and_the_error_says_so() -> None:
    run = from_items(number for number in range(3)).run()
    next(run)
    with pytest.raises(CheckpointError, match=r"such as a generator, .* read a list"):
        run.checkpoint()


@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
@pytest.mark.parametrize("engines", [("ray", "ray"), ("inline", "ray"), ("ray", "inline")], ids=" to ".join)
@pytest.mark.parametrize("delivered", [pytest.param(0, marks=pytest.mark.slow), 4])
def test_law_22_a_synchronous_plan_goes_on_across_engines(
    engines: tuple[EngineName, EngineName], delivered: int, tmp_path: Path
) -> None:
    plan, (first, second) = training(None), engines
    with plan.run(first) as run:
        before = list(itertools.islice(run, delivered))
        run.checkpoint(tmp_path / "it")
        after = list(run)
    assert before + after == list(plan.run())
    assert list(plan.run(second, resume=tmp_path / "it")) == after


@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
def test_on_ray_what_is_in_flight_is_kept(tmp_path: Path) -> None:
    plan = actors(Counter, 2, limit=50).produce(Counter.next_tagged) | gather_async(2)
    with plan.run("ray") as run:
        items = list(itertools.islice(run, 5))
        run.checkpoint(tmp_path / "it")
    with plan.run("ray", resume=tmp_path / "it") as run:
        items += list(run)
    for shard in range(2):
        assert [number for place, number in items if place == shard] == list(range(1, 51))


def test_concat_keeps_what_it_holds() -> None:
    plan = from_items([Steps(2), Steps(3), Steps(4), Steps(5)]) | every(1) | concat(6)
    with plan.run() as run:
        checkpoint = run.checkpoint()
        whole = [item.steps for item in run]
    assert [item.steps for item in plan.run(resume=checkpoint)] == whole == [9, 5]
