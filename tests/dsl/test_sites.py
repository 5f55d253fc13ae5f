"""Sites: every stage knows the file and the line where the user wrote it."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeflow.dsl import (
    PlanError,
    Stage,
    StageError,
    actors,
    batch,
    drain,
    every,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    stage,
    take,
    tap,
)
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.sites import Site
from pipeflow.dsl.trees import walk

HERE = os.path.relpath(__file__)


class Adder:
    def add(self, number: int) -> int:
        return number + 1

    def total(self, numbers: list[int]) -> int:
        return sum(numbers)

    def number(self) -> int:
        return 1


def line() -> int:
    """The line that calls this."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def lines(root: Node) -> dict[str, int]:
    """The line of every node by its name; all must be of this file."""
    assert {str(node.site).rpartition(":")[0] for node in walk(root)} == {HERE}
    return {node.name: node.site.line for node in walk(root)}


def test_every_stage_of_a_chain_over_several_lines_has_its_own() -> None:
    start = line()
    adders = actors(Adder, 2)
    plan = (
        adders.produce(Adder.number)
        | abs
        | every(2)
        | (lambda number: number + 1)
        | gather_async(
            2,
        )
        | batch(2)
        | adders.stage(
            Adder.total,
        ).max_in_flight(2)
        | tap(
            repr,
        )
        | drain
    )
    assert lines(plan.node) == {
        "Adder.produce(Adder.number)": start + 3,
        "abs": start + 4,
        "every(2)": start + 5,
        "lambda": start + 6,
        "gather_async(2)": start + 7,
        "batch(2)": start + 10,
        "Adder.stage(Adder.total)": start + 11,
        "tap(repr)": start + 14,
        "drain": start + 17,
    }


def test_every_method_of_a_chain_over_several_lines_has_its_own() -> None:
    start = line()
    left, right = (
        from_items([1])
        .map(abs)
        .filter(bool)
        .tap(repr)
        .until(bool)
        .fork(2, buffer=1)
    )  # fmt: skip
    plan = left & right
    assert lines(plan.node) == {
        "from_items": start + 2,
        "abs": start + 3,
        "filter(bool)": start + 4,
        "tap(repr)": start + 5,
        "until(bool)": start + 6,
        "fork(2)": start + 7,
        "fork(2)[0]": start + 7,
        "fork(2)[1]": start + 7,
        "&": start + 9,
    }


def test_an_operator_that_was_made_before_has_the_line_where_it_is_used() -> None:
    pairs, gather = batch(2), gather_sync()
    double: Stage[int, int] = stage(abs)
    start = line()
    plan = (
        from_shards([[1]])
        | double
        | gather
        | pairs
    )  # fmt: skip
    assert lines(plan.node) == {
        "from_shards": start + 2,
        "abs": start + 3,
        "gather_sync()": start + 4,
        "batch(2)": start + 5,
    }


def test_an_operator_that_is_used_twice_has_two_lines() -> None:
    two = take(2)
    first = from_items([1]) | two
    second = from_items([1]) | two
    assert second.node.site.line == first.node.site.line + 1


def test_a_plan_that_a_function_of_the_user_s_builds_points_into_that_function() -> None:
    def doubled(numbers: list[int]) -> Any:
        return from_items(numbers) | abs

    defined = line() - 2
    assert doubled([1]).node.site.line == defined


def test_a_stage_that_the_domain_s_package_makes_belongs_to_the_line_that_called_it() -> None:
    from pipeflow.rl.returns import gae

    start = line()
    made = gae(0.9, 0.9)
    plan = from_shards([[1]]).map(str) | (lambda text: text) | made  # type: ignore[operator]  # it never runs
    assert made.site == Site(__file__, start + 1)
    assert plan.node.site == Site(__file__, start + 2)


def test_a_site_is_shown_relative_to_the_working_directory_and_whole_outside(tmp_path: Path) -> None:
    assert str(Site(__file__, 7)) == f"{HERE}:7"
    assert str(Site(str(tmp_path / "plan.py"), 7)) == f"{tmp_path}/plan.py:7"


@pytest.mark.parametrize(
    "broken",
    [
        lambda: from_items([1]) | batch,
        lambda: from_items([1]) & 3,  # type: ignore[operator]
        lambda: from_items([1]).reply(Adder.add, abs),  # type: ignore[misc]
        lambda: bool(from_items([1])),
        lambda: from_items([1]).map(abs) | gather_sync(),  # type: ignore[operator]
        lambda: (from_items([1]) & from_items([2])).round_robin(1, 2, 3),
    ],
)
def test_a_plan_error_begins_with_the_line_that_made_it(broken: Callable[[], object]) -> None:
    with pytest.raises(PlanError) as caught:
        broken()
    assert str(caught.value).startswith(f"{HERE}:{broken.__code__.co_firstlineno}: ")


def test_a_stage_error_has_the_line_of_the_stage() -> None:
    start = line()
    plan = (
        from_items([1])
        | abs
        | (lambda number: number / 0)
        | abs
    )  # fmt: skip
    with pytest.raises(StageError, match=f"^{HERE}:{start + 4}: stage lambda failed"):
        list(plan.run())
