"""A run that is advanced step by step delivers the same items, and its steps add up to its statistics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeflow.dsl import (
    DeadlockError,
    StageError,
    actors,
    batch,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
)
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.sim import Sim
from pipeflow.lowering.run import Run
from pipeflow.lowering.stats import RunStats
from pipeflow.lowering.stepping import NodeStep, Step
from pipeflow.testing.strategies import WrittenPlan, plans
from tests.conftest import EngineName
from tests.lowering.clock import ClockedEngine

T = TypeVar("T")


def steps_of(run: Run[T]) -> Iterator[tuple[Step[T], RunStats]]:
    """Every step, with the statistics after it."""
    while step := run.step():
        yield step, run.stats()


def assert_adds_up(steps: list[Step[T]], stats: RunStats) -> None:
    for node in stats.nodes:
        own = [
            step
            for whole in steps
            for step in whole.nodes
            if (step.name, step.site) == (node.name, node.site)
        ]
        same = [other for other in stats.nodes if (other.name, other.site) == (node.name, node.site)]
        assert sum(step.items_in for step in own) == sum(other.items_in for other in same)
        assert sum(step.items_out for step in own) == sum(other.items_out for other in same)
        assert sum(step.restarts for step in own) == sum(other.restarts for other in same)
        assert sum(step.busy_seconds for step in own) == pytest.approx(
            sum(other.busy_seconds for other in same)
        )
        if len(same) == 1:
            grown = sum(step.queue_after - step.queue_before for step in own)
            assert grown == node.queue


def delivered(iterate: Callable[[], Iterator[T]]) -> tuple[list[T], bool]:
    """All items, and whether the plan then came to a standstill."""
    items: list[T] = []
    try:
        items.extend(iterate())
    except DeadlockError:
        return items, True
    return items, False


@settings(max_examples=60, deadline=None)
@given(plans(), st.none() | st.integers(0, 2**16))
def test_steps_deliver_what_iteration_does_and_add_up_to_the_statistics(
    plan: WrittenPlan, seed: int | None
) -> None:
    def engine() -> Engine:
        return ClockedEngine() if seed is None else Sim(seed)

    steps: list[Step[int]] = []
    after: list[RunStats] = []

    def stepped() -> Iterator[int]:
        run = plan.build().run(engine())
        for step, stats in steps_of(run):
            steps.append(step)
            after.append(stats)
            yield step.item

    assert delivered(stepped) == delivered(lambda: plan.build().run(engine()))
    if after:
        assert_adds_up(steps, after[-1])


class Doubler:
    def double(self, number: int) -> int:
        return 2 * number


def test_steps_on_every_engine(engine: EngineName) -> None:
    plan = (
        from_shards([[1, 2, 3], [4, 5, 6]]) | gather_rounds() | sum | actors(Doubler, 1).stage(Doubler.double)
    )
    run = plan.run(engine)
    found = list(steps_of(run))
    assert [step.item for step, _ in found] == [10, 14, 18]
    assert_adds_up([step for step, _ in found], found[-1][1])
    assert [(node.name, node.items_in, node.items_out) for node in found[0][0].nodes] == [
        ("from_shards", 0, 2),
        ("gather_rounds()", 2, 1),
        ("sum", 1, 1),
        ("Doubler.stage(Doubler.double)", 1, 1),
    ]
    assert run.step() is None


def test_a_step_says_what_waits_before_and_after_it() -> None:
    with (from_shards([[1, 2, 3], [4, 5, 6]]) | gather_async(3) | batch(4)).run() as run:
        first, second = run.step(), run.step()
    assert first is not None
    assert second is not None
    assert [(node.name, node.queue_before, node.queue_after) for node in first.nodes] == [
        ("from_shards", 0, 0),
        ("gather_async(3)", 0, 5),
        ("batch(4)", 0, 0),
    ]
    assert (second.nodes[1].queue_before, second.nodes[1].queue_after) == (5, 0)


def test_only_the_nodes_that_did_something_are_in_a_step() -> None:
    plan = ((from_items([1, 2]) | abs) & (from_items([3, 4]) | hex)).round_robin()
    run = plan.run()
    run.step()  # which also begins to read both lists
    assert [[node.name for node in step.nodes] for step, _ in steps_of(run)] == [
        ["from_items", "hex", "round_robin"],
        ["from_items", "abs", "round_robin"],
        ["from_items", "hex", "round_robin"],
    ]


class Fragile:
    """Fails at its second item in every life but the last."""

    lives = 0

    def __init__(self) -> None:
        type(self).lives += 1
        self._made = 0

    def make(self) -> int:
        self._made += 1
        if self._made == 2 and type(self).lives < 3:
            raise RuntimeError("worn out")
        return self._made


def test_a_step_has_the_restarts_that_came_with_it() -> None:
    Fragile.lives = 0
    group = actors(Fragile, 1).restarts(2).on_error("restart")
    with (group.produce(Fragile.make) | gather_sync()).run() as run:
        steps = [run.step() for _ in range(3)]
    assert [step and step.nodes[0].restarts for step in steps] == [0, 1, 1]
    assert str(steps[1]).splitlines()[1].endswith("1 restart")


def test_what_ends_a_run_is_raised_as_by_next() -> None:
    run = (from_items([1, 0]) | (lambda number: 1 / number)).run()  # pyright: ignore[reportUnknownLambdaType]
    assert run.step() is not None
    with pytest.raises(StageError, match="division by zero"):
        run.step()
    assert run.step() is None


def test_a_step_prints_as_its_item_and_a_line_for_each_node() -> None:
    step = Step(
        ["item"] * 1000,
        (
            NodeStep("sample", "flows/plan.py:3", 0, 2, 0.25, 0, 0, restarts=2),
            NodeStep("gather_async(2)", "flows/plan.py:4", 2, 1, 0.0, 3, 4),
        ),
    )
    assert str(step) == (
        "item: ['item', 'item', 'item', 'item', 'item', 'item', ...]\n"
        "  sample (plan.py:3): 2 out, busy 0.250 s, 2 restarts\n"
        "  gather_async(2) (plan.py:4): 2 in, 1 out, queue 3 to 4"
    )


def test_a_step_of_a_real_run_prints_with_its_lines() -> None:
    step = (from_items([7]) | abs).run().step()
    assert re.sub(r"\.py:\d+|, busy \d\.\d{3} s", "", str(step)).splitlines() == [
        "item: 7",
        "  from_items (test_stepping): 1 in, 1 out",
        "  abs (test_stepping): 1 in, 1 out",
    ]
