"""The package as a whole: cheap to import, its parts final and immutable."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import pipeflow
from pipeflow import dsl
from pipeflow.dsl import (
    Source,
    Sourced,
    actors,
    batch,
    buffer,
    concat,
    drain,
    every,
    every_seconds,
    expand,
    flat_map,
    flatten,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    nodes,
    once_per_steps,
    reply,
    reply_weights,
    select_shards,
    shuffle,
    stage,
    sync_weights,
    take,
    tap,
    throttle,
    until,
    update_target,
)


class Trainer:
    def __init__(self, **settings: int) -> None:
        self.settings = settings

    def train(self, number: int) -> int:
        return number

    def weights(self) -> int:
        return 1

    def set_weights(self, weights: int, /) -> None:
        pass

    def update_target(self) -> None:
        pass


TRAINERS = actors(Trainer, 1, lr=1)
PARTS: list[Any] = [
    TRAINERS,
    TRAINERS.group,
    TRAINERS.stage(Trainer.train),
    TRAINERS.send(Trainer.train),
    from_items([1]),
    from_items([1]).node,
    from_shards([[1]]),
    (from_items([1]) & from_items([2])),
    gather_sync(),
    gather_async().with_source(),
    gather_rounds(),
    batch(1),
    concat(1),
    flatten(),
    expand(list),  # type: ignore[arg-type]  # never run
    flat_map(range),
    every(1),
    take(1),
    tap(print),
    until(bool),
    stage(abs),
    sync_weights(TRAINERS, TRAINERS),
    reply_weights(TRAINERS),
    reply(Trainer.set_weights),
    update_target(TRAINERS),
    TRAINERS.scatter(),
    select_shards(0),
    once_per_steps(1),
    every_seconds(1),
    throttle(1),
    buffer(1),
    shuffle(1, seed=0),
    drain,
    Sourced(1, (Source[Trainer]("a", 0),)),
    Source[Trainer]("a", 0),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_what_a_plan_is_made_of_is_immutable(part: Any) -> None:
    for field in dataclasses.fields(part):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, field.name, None)


def test_the_constructor_arguments_of_actors_cannot_be_changed_afterwards() -> None:
    with pytest.raises(TypeError):
        TRAINERS.group.kwargs["lr"] = 2  # type: ignore[index]
    with pytest.raises(TypeError):
        TRAINERS.resources(cpus=2).group.resources["CPU"] = 3  # type: ignore[index]


def test_operators_leave_what_they_are_applied_to_as_it_was() -> None:
    numbers = from_items([1])
    before = numbers.explain()
    _ = numbers | abs
    _ = numbers.named("other")
    placed = TRAINERS.stage(Trainer.train)
    assert placed.max_in_flight(3).unordered() != placed
    assert (placed.in_flight, placed.ordered) == (1, True)
    assert TRAINERS.named("other").group.name == "other"
    assert TRAINERS.group.name == "Trainer"
    assert numbers.explain() == before


@pytest.mark.parametrize("module", ["pipeflow", "pipeflow.dsl", "pipeflow.lowering.run"])
def test_importing_costs_nothing_that_a_plan_does_not_need(module: str) -> None:
    heavy = ("ray", "torch", "numpy", "gymnasium", "pipeflow.rl", "pipeflow.lowering.engines.ray")
    program = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_inline_run_imports_neither_ray_nor_numpy() -> None:
    program = (
        "import sys, pipeflow; assert list(pipeflow.from_items([1]).run()) == [1]; "
        "print([name for name in ('ray', 'torch', 'numpy', 'gymnasium') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_building_a_plan_starts_no_actor() -> None:
    """Law 17: nor does looking at it."""

    class Refusing:
        def __init__(self) -> None:
            message = "started"
            raise AssertionError(message)

        def number(self) -> int:
            return 1

        def add(self, number: int) -> int:
            return number

    workers = actors(Refusing, 3)
    plan = (
        workers.produce(Refusing.number)
        | workers.stage(Refusing.add)
        | gather_async(2)
        | workers.stage(Refusing.add)
        | workers.send(Refusing.add)
    )
    left, right = plan.fork(2, buffer=1)
    merged = ((left | drain) & right).round_robin()
    assert "Refusing.produce" in merged.explain()
    assert "flowchart" in merged.to_mermaid()
    assert "Refusing" in repr(workers) + repr(plan)
    run = merged.run()
    run.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: batch(0), "batch(size) must be at least 1, got 0"),
        (lambda: concat(-1), "concat(min_steps) must be at least 1, got -1"),
        (lambda: every(0), "every(n) must be at least 1, got 0"),
        (lambda: take(-1), "take(count) must be at least 0, got -1"),
        (lambda: gather_async(0), "gather_async(num_async) must be at least 1, got 0"),
        (lambda: actors(Trainer, 0), "actors(count) must be at least 1, got 0"),
        (
            lambda: TRAINERS.stage(Trainer.train).max_in_flight(0),
            "max_in_flight(count) must be at least 1, got 0",
        ),
        (
            lambda: sync_weights(TRAINERS, TRAINERS, every=0),
            "sync_weights(every) must be at least 1, got 0",
        ),
        (lambda: reply_weights(TRAINERS, every=0), "reply_weights(every) must be at least 1, got 0"),
        (lambda: update_target(TRAINERS, every=0), "update_target(every) must be at least 1, got 0"),
        (
            lambda: TRAINERS.stage(Trainer.train).repeat(0),
            "repeat(times) must be at least 1, got 0",
        ),
        (lambda: buffer(0), "buffer(size) must be at least 1, got 0"),
        (lambda: shuffle(0, seed=1), "shuffle(buffer) must be at least 1, got 0"),
        (lambda: once_per_steps(0), "once_per_steps(steps) must be at least 1, got 0"),
        (lambda: from_shards([]), "from_shards: the number of shards must be at least 1, got 0"),
        (lambda: from_items([1]).fork(0, buffer=1), "fork(outlets) must be at least 1, got 0"),
        (lambda: from_items([1]).fork(2, buffer=0), "fork(2), buffer must be at least 1, got 0"),
        (
            lambda: (from_items([1]) & from_items([2])).round_robin(1, 0),
            "round_robin(weights) must be at least 1, got 0",
        ),
    ],
)
def test_a_size_that_cannot_be_is_refused_with_its_value(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=r"must be at least") as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: every_seconds(0), "every_seconds(seconds) must be positive, got 0"),
        (lambda: throttle(-1.5), "throttle(seconds) must be positive, got -1.5"),
        (lambda: throttle(float("nan")), "throttle(seconds) must be positive, got nan"),
        (lambda: select_shards(), "select_shards needs shards, each once, got ()"),
        (lambda: select_shards(1, 1), "select_shards needs shards, each once, got (1, 1)"),
        (
            lambda: (from_items([1]) & from_items([2])).by_steps(1, 0),  # type: ignore[misc]  # no steps
            "by_steps(weights) needs a positive number for every branch, got (1, 0)",
        ),
    ],
)
def test_a_time_a_weight_or_a_shard_that_cannot_be_is_refused_with_its_value(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match=r"positive|each once") as caught:
        make()
    assert str(caught.value) == message


def test_every_public_name_of_the_dsl_is_one_of_the_package() -> None:
    public = {name for name, value in vars(dsl).items() if not name.startswith("_") and not is_module(value)}
    assert public <= set(dir(pipeflow))
    assert {"Stream", "actors", "from_items", "gather_sync", "sync_weights"} <= public


def is_module(value: object) -> bool:
    return type(value) is type(nodes)
