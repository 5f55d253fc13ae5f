"""`Stage` and the expanding operators as values, and the sources' types."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import pickle
from collections.abc import Iterable

import pytest

from pipeflow.dsl import (
    PlanError,
    Source,
    Sourced,
    StageError,
    expand,
    flat_map,
    from_items,
    from_shards,
    stage,
)
from pipeflow.dsl.errors import DeadlockError, PipeflowError, RunError
from pipeflow.dsl.item_types import UNKNOWN


@stage
def double(number: int) -> int:
    return 2 * number


@stage
def inverse(number: int) -> float:
    return 1 / number


class Windows:
    """Overlapping pairs."""

    def __init__(self) -> None:
        self._last: list[int] = []

    def push(self, item: int, /) -> Iterable[tuple[int, int]]:
        last, self._last = self._last, [item]
        return [(last[0], item)] if last else []

    def finish(self) -> Iterable[tuple[int, int]]:
        return []


def test_a_stage_is_called_like_its_function() -> None:
    assert double(4) == 8
    assert double.function(4) == 8
    assert repr(double) == "<Stage double>"


def test_stages_compose_from_left_to_right() -> None:
    """Law 3."""
    composed = double | (lambda number: number + 1) | str
    assert composed(4) == "9"
    assert composed.name == "double | lambda | str"


def test_a_stage_under_another_name_does_the_same() -> None:
    named = double.named("twice")
    assert (named.name, named(3)) == ("twice", 6)
    assert list((from_items([1]) | named).run()) == [2]
    with pytest.raises(StageError, match="stage reciprocal failed on item 1"):
        list((from_items([1, 0]) | inverse.named("reciprocal")).run())


def test_a_state_is_made_once_for_every_place_that_the_stage_runs_in() -> None:
    windows = expand(Windows)
    assert windows.name == "Windows"
    plan = from_items([1, 2, 3]) | windows
    for _ in range(2):
        assert list(plan.run()) == [(1, 2), (2, 3)]


def test_the_type_of_items_is_known_where_they_lie_open() -> None:
    assert from_items([1, 2]).node.item_type is int
    assert from_items((1, "a")).node.item_type is UNKNOWN
    assert from_items(list[int]()).node.item_type is UNKNOWN
    assert from_items(iter([1])).node.item_type is UNKNOWN
    assert from_shards([[1], range(3)]).node.item_type is int
    mixed: list[list[object]] = [[1], ["a"]]
    assert from_shards(mixed).node.item_type is UNKNOWN


def test_an_iterator_is_not_read_while_the_plan_is_built() -> None:
    """Law 17."""
    numbers = iter([1, 2])
    plan = from_items(numbers) | flat_map(range)
    assert list(numbers) == [1, 2]
    assert list(plan.run()) == []


def test_a_source_shows_group_and_index() -> None:
    sourced = Sourced(1, (Source[object]("left", 2),))
    assert str(sourced.source) == "left[2]"


def test_an_item_of_several_sources_has_no_one_source() -> None:
    left, right = Source[object]("left", 0), Source[object]("right", 1)
    several = Sourced([1, 2], (left, right))
    assert several.map(sum) == Sourced(3, (left, right))
    with pytest.raises(ValueError, match=r"the item has 2 sources, .*; read \.sources"):
        _ = several.source


def test_errors_can_be_caught_by_cause() -> None:
    assert issubclass(PlanError, PipeflowError) and issubclass(PlanError, TypeError)  # noqa: PT018
    assert issubclass(StageError, RunError) and issubclass(RunError, RuntimeError)  # noqa: PT018
    error = StageError("update", "plan.py:3", "Learner[0]", 4, ValueError("no"), "Traceback of there")
    assert str(error) == (
        "plan.py:3: stage update failed on item 4 in Learner[0]: ValueError: no\n\n"
        "The traceback in Learner[0]:\nTraceback of there"
    )
    assert (error.stage, error.site, error.actor, error.item, error.trace) == (
        "update",
        "plan.py:3",
        "Learner[0]",
        4,
        "Traceback of there",
    )
    copied = pickle.loads(pickle.dumps(error))  # as from a pool of processes that run plans
    assert str(copied) == str(error)
    assert isinstance(copied.__cause__, ValueError)
    nameless = StageError("actors(Learner, 1)", "plan.py:1", "Learner[0]", -1, ValueError("no"), "")
    assert str(nameless) == "plan.py:1: stage actors(Learner, 1) failed in Learner[0]: ValueError: no"
    assert issubclass(DeadlockError, RunError)
