"""Operators that make new items of any kind: `Stage` (one for each) and `Expand` (zero or more for each)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, final, overload

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_fits
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.expressions import Class, ClassObject, Operator
from pipeflow.dsl.item_types import (
    UNKNOWN,
    ItemType,
    fits,
    member_of,
    name_of,
    returned_type,
    show,
    taken_type,
)
from pipeflow.dsl.operands import expect_either, grown
from pipeflow.dsl.sites import call_site, operator_site
from pipeflow.dsl.streams import ParallelStream, R, Stream

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
W = TypeVar("W")
A = TypeVar("A")
B = TypeVar("B")
A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Stage(Operator, Generic[A_contra, B_co]):
    """Exactly one output for every input (law 2). Callable like the function that it wraps.

    Stages compose before they meet a stream: ``s | (f | g)`` is ``(s | f) | g`` (law 3).
    """

    function: Callable[[A_contra], B_co]

    def __post_init__(self) -> None:
        # `inspect` follows it, so the stage has the signature of its function.
        object.__setattr__(self, "__wrapped__", self.function)

    def __call__(self, item: A_contra, /) -> B_co:
        return self.function(item)

    def __or__(self, following: Callable[[B_co], R] | ClassObject[Class], /) -> Stage[A_contra, R | Class]:
        """This stage, then the following one, as one stage."""
        return _composed(self, following)

    @override
    def __repr__(self) -> str:
        return f"<Stage {self.name}>"


# `Any`, here and below: `Stage.__or__` states the types.
def _composed(first: Stage[Any, Any], second: Any) -> Stage[Any, Any]:
    site = call_site()
    if isinstance(second, Operator) and not callable(second):
        message = (
            f"{site}: {second!r} acts on a stream, and {first!r} is none: write stream | {first.name} | ..."
        )
        raise PlanError(message)
    made, taken = returned_type(first.function), taken_type(second, 0)
    if not fits(made, taken):
        message = (
            f"{site}: {name_of(second)} takes {show(taken)}, but {first.name} ({first.site}) makes {show(made)}; "
            f"put a stage between them that makes {show(taken)}"
        )
        raise PlanError(message)
    return Stage(name=f"{first.name} | {name_of(second)}", function=_Composed(first.function, second))


class _Composed:
    """Two functions, one after the other, with the annotations of both ends."""

    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> None:
        self._first = first
        self._second = second
        self.__annotations__ = {"item": taken_type(first, 0), "return": returned_type(second)}

    def __call__(self, item: Any, /) -> Any:
        return self._second(self._first(item))


def stage(function: Callable[[A], B], /) -> Stage[A, B]:
    """Make a named stage of a function; also a decorator.

    >>> @stage
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> double
    <Stage double>
    >>> (double | repr)(4)
    '8'
    """
    return Stage(name=name_of(function), function=function)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Expand(Operator, Generic[A_contra, B_co]):
    """Zero or more outputs for every input; may keep state between items. Made by `expand` and `flat_map`."""

    factory: Callable[[], nodes.Expansion]
    taken: ItemType = UNKNOWN
    made: ItemType = UNKNOWN

    @overload
    def __ror__(self, left: Stream[A_contra], /) -> Stream[B_co]: ...
    @overload
    def __ror__(self, left: ParallelStream[A_contra, W], /) -> ParallelStream[B_co, W]: ...
    def __ror__(self, left: Any, /) -> Any:
        site = operator_site(self.site)
        stream = expect_either(left, self)
        check_fits(stream.node, self.taken, self.name, site)
        node = nodes.Expand(
            name=self.name, site=site, item_type=self.made, input=stream.node, factory=self.factory
        )
        return grown(stream, node)


class ExpansionOf(Protocol[A_contra, B_co]):
    """The state of an expanding stage while it runs, with its types."""

    def push(self, item: A_contra, /) -> Iterable[B_co]:
        """Take one item and return the outputs that it completes."""
        ...

    def finish(self) -> Iterable[B_co]:
        """Return what is left when the input has ended (law 18)."""
        ...


def expand(factory: Callable[[], ExpansionOf[A, B]], /) -> Expand[A, B]:
    """Zero or more outputs for every input, with state.

    Args:
        factory: makes the state, once for every place that the stage runs in; a class with ``push(item)`` and
            ``finish()``.
    """
    maker = factory.func if isinstance(factory, functools.partial) else factory
    push = getattr(maker, "push", None)
    if push is None:
        return Expand(name=name_of(factory), factory=factory)
    made = member_of(returned_type(push))
    return Expand(name=name_of(factory), factory=factory, taken=taken_type(push, 1), made=made)


def flat_map(function: Callable[[A], Iterable[B]], /) -> Expand[A, B]:
    """All items of ``function(item)``, in order, for every item."""
    factory = functools.partial(_FlatMapping, function)
    made = member_of(returned_type(function))
    return Expand(
        name=f"flat_map({name_of(function)})", factory=factory, taken=taken_type(function, 0), made=made
    )


class _FlatMapping:
    def __init__(self, function: Callable[[Any], Iterable[object]]) -> None:
        self.push = function

    def finish(self) -> Iterable[object]:
        return ()
