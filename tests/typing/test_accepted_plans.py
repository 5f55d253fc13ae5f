"""The plans that type-check also run, and deliver items of the types that the checkers were told (law 25)."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import operator
import typing
from collections.abc import Callable
from typing import Any, Never

import pytest
from beartype.door import is_bearable

from pipeflow import Merged, ParallelStream, Stream, gather_sync
from tests.typing import differences
from tests.typing.checkers import ACCEPT

# Any: what an accepted function returns is what is looked at here.
Accepted = Callable[[], Any]


def _functions() -> list[pytest.ParameterSet]:
    found: list[pytest.ParameterSet] = []
    for file in ACCEPT:
        module = importlib.import_module(f"tests.typing.accept.{file.stem}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__:
                found.append(pytest.param(function, id=f"{file.stem}-{name}"))
    return found


@pytest.mark.parametrize("function", _functions())
def test_items_are_of_the_type_that_the_checkers_accepted(function: Accepted) -> None:
    made = function()
    stated = typing.get_type_hints(function)["return"]
    plan, item_type = _plan_of(made, stated)
    if plan is None:
        return
    with plan.run() as run:
        items = list(itertools.islice(run, 4))
    if item_type is Never:
        assert items == []
        return
    assert items != []
    wrong = [item for item in items if not is_bearable(item, item_type)]
    assert wrong == []


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.plan) for row in differences.differences() if row.builds]
)
def test_plans_that_the_checkers_type_differently_are_built(row: differences.Difference) -> None:
    names: dict[str, object] = {}
    exec(compile(differences.HEADER, "differences.py", "exec"), names)
    assert row.mypy.startswith(type(eval(row.plan, names)).__name__)


def _plan_of(made: Any, stated: Any) -> tuple[Stream[Any] | None, Any]:
    """A plan that runs what an accepted function made, and the type of its items."""
    origin, arguments = typing.get_origin(stated), typing.get_args(stated)
    if origin is ParallelStream:
        return made | gather_sync(), arguments[0]
    if origin in (Stream, Merged):
        return made, arguments[0]
    if origin is tuple:
        streams = [argument for argument in arguments if argument is not ...]
        members = [typing.get_args(stream)[0] for stream in streams]
        return functools.reduce(operator.and_, made), functools.reduce(operator.or_, members)
    return None, None
