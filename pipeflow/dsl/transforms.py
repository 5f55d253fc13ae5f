"""Operators that make new items: `Stage` (one for each) and `Expand` (zero or more for each).

`batch`, `concat` and `flatten` are expanding operators whose output type depends on the input's in a way of
its own, hence a class each with its own ``__ror__``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar, final, get_args, overload

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_fits, check_not_drained, check_positive
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.item_types import (
    UNKNOWN,
    ItemType,
    fits,
    list_of,
    name_of,
    returned_type,
    show,
    taken_type,
)
from pipeflow.dsl.operands import expect_either, grown
from pipeflow.dsl.sites import call_site, operator_site
from pipeflow.dsl.streams import Class, ClassObject, Operator, ParallelStream, R, Stream

T = TypeVar("T")
U = TypeVar("U")
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
    push = getattr(factory, "push", None)
    taken = taken_type(push, 1) if push is not None else UNKNOWN
    return Expand(name=name_of(factory), factory=factory, taken=taken)


def flat_map(function: Callable[[A], Iterable[B]], /) -> Expand[A, B]:
    """All items of ``function(item)``, in order, for every item."""
    factory = functools.partial(_FlatMapping, function)
    return Expand(name=f"flat_map({name_of(function)})", factory=factory, taken=taken_type(function, 0))


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Batch(Operator):
    """See `batch`."""

    size: int

    @overload
    def __ror__(self, left: Stream[T], /) -> Stream[list[T]]: ...
    @overload
    def __ror__(self, left: ParallelStream[T, W], /) -> ParallelStream[list[T], W]: ...
    def __ror__(self, left: Any, /) -> Any:
        stream = expect_either(left, self)
        item_type = list_of(stream.node.delivered_type)
        return _expanded(stream, self, item_type, functools.partial(Batching, self.size))


def batch(size: int) -> Batch:
    """Lists of `size` consecutive items; the last may be shorter when the stream ends.

    Raises:
        ValueError: `size` is below 1.
    """
    check_positive(size, "batch(size)")
    return Batch(name=f"batch({size})", size=size)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Flatten(Operator):
    """See `flatten`."""

    @overload
    def __ror__(self, left: Stream[Iterable[T]], /) -> Stream[T]: ...
    @overload
    def __ror__(self, left: ParallelStream[Iterable[T], W], /) -> ParallelStream[T, W]: ...
    def __ror__(self, left: Any, /) -> Any:
        stream = expect_either(left, self)
        check_fits(stream.node, Iterable, self.name, operator_site(self.site))
        members = get_args(stream.node.delivered_type)
        return _expanded(stream, self, members[0] if len(members) == 1 else UNKNOWN, _Flattening)


def flatten() -> Flatten:
    """The members of every item, one by one, in order."""
    return Flatten(name="flatten")


class Concatenable(Protocol):
    """A batch that counts its steps and can be joined with others of its type."""

    @property
    def steps(self) -> int:
        """How many environment steps the batch holds."""
        ...

    @classmethod
    def concatenate(cls, items: Sequence[Self], /) -> Self:
        """One batch with the steps of all."""
        ...


C = TypeVar("C", bound=Concatenable)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Concat(Operator):
    """See `concat`."""

    min_steps: int

    @overload
    def __ror__(self, left: Stream[C], /) -> Stream[C]: ...
    @overload
    def __ror__(self, left: ParallelStream[C, W], /) -> ParallelStream[C, W]: ...
    def __ror__(self, left: Any, /) -> Any:
        stream = expect_either(left, self)
        node, item_type = stream.node, stream.node.delivered_type
        if isinstance(item_type, type) and not hasattr(item_type, "concatenate"):
            message = (
                f"{operator_site(self.site)}: {self.name} takes Concatenable, but {node.name} ({node.site}) "
                f"delivers {show(item_type)}, which has no concatenate; put a stage before it that makes batches"
            )
            raise PlanError(message)
        return _expanded(stream, self, item_type, functools.partial(Concatenating, self.min_steps))


def concat(min_steps: int) -> Concat:
    """Join consecutive batches until they hold at least `min_steps` environment steps.

    Items must be `Concatenable`. What is left is delivered when the stream ends (law 18).

    Raises:
        ValueError: `min_steps` is below 1.
    """
    check_positive(min_steps, "concat(min_steps)")
    return Concat(name=f"concat({min_steps})", min_steps=min_steps)


def _expanded(
    stream: Stream[Any] | ParallelStream[Any, Any],
    operator: Operator,
    item_type: ItemType,
    factory: Callable[[], nodes.Expansion],
) -> Stream[Any] | ParallelStream[Any, Any]:
    site = operator_site(operator.site)
    check_not_drained(stream.node, operator.name, site)
    node = nodes.Expand(
        name=operator.name, site=site, item_type=item_type, input=stream.node, factory=factory
    )
    return grown(stream, node)


class _FlatMapping:
    def __init__(self, function: Callable[[Any], Iterable[object]]) -> None:
        self.push = function

    def finish(self) -> Iterable[object]:
        return ()


class _Flattening:
    def push(self, item: Iterable[object], /) -> Iterable[object]:
        return item

    def finish(self) -> Iterable[object]:
        return ()


class Batching:
    """Keeps items until there are `size` of them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: list[object] = []

    def push(self, item: object, /) -> Iterable[object]:
        self._items.append(item)
        return self.finish() if len(self._items) >= self._size else ()

    def finish(self) -> Iterable[object]:
        items, self._items = self._items, []
        return (items,) if items else ()


class Concatenating:
    """Keeps batches until they hold `min_steps` steps."""

    def __init__(self, min_steps: int) -> None:
        self._min_steps = min_steps
        self._items: list[Concatenable] = []
        self._steps = 0

    def push(self, item: Concatenable, /) -> Iterable[object]:
        self._items.append(item)
        self._steps += item.steps
        return self.finish() if self._steps >= self._min_steps else ()

    def finish(self) -> Iterable[object]:
        items, self._items, self._steps = self._items, [], 0
        if len(items) < 2:
            return items
        return (type(items[0]).concatenate(items),)
