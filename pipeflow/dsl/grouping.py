"""Expanding operators for items of any type: `batch`, `concat`, `flatten`, `shuffle`.

Their output's type depends on the input's in a way of its own, hence a class each with its own ``__ror__``. What
`batch` and `concat` make of several items comes from the sources of all of them.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar, final, get_args, overload

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_fits, check_positive
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.expressions import Operator
from pipeflow.dsl.item_types import UNKNOWN, ItemType, list_of, show
from pipeflow.dsl.operands import expect_either, grown
from pipeflow.dsl.signals import current_shard
from pipeflow.dsl.sites import operator_site
from pipeflow.dsl.sourced import Sourced
from pipeflow.dsl.streams import ParallelStream, Stream

T = TypeVar("T")
V = TypeVar("V")
W = TypeVar("W")


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Batch(Operator):
    """See `batch`."""

    size: int

    @overload  # a list of sourced items is a sourced list
    def __ror__(  # type: ignore[overload-overlap]
        self, left: Stream[Sourced[T, V]], /
    ) -> Stream[Sourced[list[T], V]]: ...
    @overload
    def __ror__(self, left: Stream[T], /) -> Stream[list[T]]: ...
    @overload
    def __ror__(self, left: ParallelStream[T, W], /) -> ParallelStream[list[T], W]: ...
    def __ror__(self, left: Any, /) -> Any:
        stream, site = expect_either(left, self), operator_site(self.site)
        node = nodes.Batch(
            name=self.name,
            site=site,
            item_type=list_of(stream.node.item_type),
            input=stream.node,
            factory=functools.partial(Batching, self.size),
            size=self.size,
        )
        return grown(stream, node)


def batch(size: int) -> Batch:
    """Lists of `size` consecutive items; the last may be shorter when the stream ends.

    A list of `Sourced` items is one item with the sources of all, so that a reply reaches each of them (law 9).

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
    def __ror__(self, left: Stream[Sourced[C, V]], /) -> Stream[Sourced[C, V]]: ...
    @overload
    def __ror__(self, left: Stream[C], /) -> Stream[C]: ...
    @overload
    def __ror__(self, left: ParallelStream[C, W], /) -> ParallelStream[C, W]: ...
    def __ror__(self, left: Any, /) -> Any:
        stream, site = expect_either(left, self), operator_site(self.site)
        upstream = stream.node
        if isinstance(upstream.item_type, type) and not hasattr(upstream.item_type, "concatenate"):
            message = (
                f"{site}: {self.name} takes Concatenable, but {upstream.name} ({upstream.site}) delivers "
                f"{show(upstream.item_type)}, which has no concatenate; put a stage before it that makes batches"
            )
            raise PlanError(message)
        node = nodes.Concat(
            name=self.name,
            site=site,
            item_type=upstream.item_type,
            input=upstream,
            factory=functools.partial(Concatenating, self.min_steps),
            min_steps=self.min_steps,
        )
        return grown(stream, node)


def concat(min_steps: int) -> Concat:
    """Join consecutive batches until they hold at least `min_steps` environment steps.

    Items must be `Concatenable`. What is left is delivered when the stream ends (law 18). What is made of several
    `Sourced` items has the sources of all (law 9).

    Raises:
        ValueError: `min_steps` is below 1.
    """
    check_positive(min_steps, "concat(min_steps)")
    return Concat(name=f"concat({min_steps})", min_steps=min_steps)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Shuffle(Operator):
    """See `shuffle`."""

    buffer: int
    seed: int

    @overload
    def __ror__(self, left: Stream[T], /) -> Stream[T]: ...
    @overload
    def __ror__(self, left: ParallelStream[T, W], /) -> ParallelStream[T, W]: ...
    def __ror__(self, left: Any, /) -> Any:
        stream = expect_either(left, self)
        factory = functools.partial(_Shuffling, self.buffer, self.seed)
        return _expanded(stream, self, stream.node.delivered_type, factory)


def shuffle(buffer: int, *, seed: int) -> Shuffle:
    """The items in another order: each is drawn from the `buffer` that came last and were not drawn yet.

    Args:
        buffer: how many items are held; the stream begins once there are so many, or its input has ended.
        seed: of the order; before a gather every shard has one of its own.

    Raises:
        ValueError: `buffer` is below 1.
    """
    check_positive(buffer, "shuffle(buffer)")
    return Shuffle(name=f"shuffle({buffer})", buffer=buffer, seed=seed)


def _expanded(
    stream: Stream[Any] | ParallelStream[Any, Any],
    operator: Operator,
    item_type: ItemType,
    factory: Callable[[], nodes.Expansion],
) -> Stream[Any] | ParallelStream[Any, Any]:
    site = operator_site(operator.site)
    node = nodes.Expand(
        name=operator.name, site=site, item_type=item_type, input=stream.node, factory=factory
    )
    return grown(stream, node)


class _Flattening:
    def push(self, item: Iterable[object], /) -> Iterable[object]:
        return item

    def finish(self) -> Iterable[object]:
        return ()


class _Shuffling:
    def __init__(self, buffer: int, seed: int) -> None:
        self._buffer = buffer
        self._random = random.Random(f"{seed} {current_shard()}")
        self._items: list[object] = []

    def push(self, item: object, /) -> Iterable[object]:
        self._items.append(item)
        return (self._drawn(),) if len(self._items) >= self._buffer else ()

    def finish(self) -> Iterable[object]:
        return [self._drawn() for _ in range(len(self._items))]

    def _drawn(self) -> object:
        place = self._random.randrange(len(self._items))
        self._items[place], self._items[-1] = self._items[-1], self._items[place]
        return self._items.pop()


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
