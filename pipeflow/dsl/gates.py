"""Operators that keep the item's type and may drop items, end the stream, or act on the side."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Never, TypeVar, final, overload

from pipeflow.dsl import gating, nodes
from pipeflow.dsl.checks import check_counts, check_positive
from pipeflow.dsl.expressions import Operator
from pipeflow.dsl.gating import EveryNth, Taking, tap_node, until_node
from pipeflow.dsl.item_types import name_of
from pipeflow.dsl.operands import TakenBy, expect_either, expect_stream, grown, regrown
from pipeflow.dsl.sites import Site, operator_site
from pipeflow.dsl.streams import ParallelStream, Stream

T = TypeVar("T")
W = TypeVar("W")
A = TypeVar("A")
S = TypeVar("S")
A_contra = TypeVar("A_contra", contravariant=True)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Gate(Operator):
    """An operator that does not read the items: before a gather it acts in each shard for itself."""

    factory: Callable[[], nodes.Gating]

    @overload
    def __ror__(self, left: Stream[T], /) -> Stream[T]: ...
    @overload
    def __ror__(self, left: ParallelStream[T, W], /) -> ParallelStream[T, W]: ...
    def __ror__(self, left: Any, /) -> Any:
        stream, site = expect_either(left, self), operator_site(self.site)
        return grown(stream, _gate(stream.node, self.name, site, self.factory, reads=False))


def take(count: int) -> Gate:
    """The first `count` items; then the stream ends without asking for another.

    Raises:
        ValueError: `count` is negative.
    """
    if count < 0:
        message = f"take(count) must be at least 0, got {count}"
        raise ValueError(message)
    return Gate(name=f"take({count})", factory=functools.partial(Taking, count))


def every(n: int) -> Gate:
    """Every n-th item; the others are dropped.

    Raises:
        ValueError: `n` is below 1.
    """
    check_positive(n, "every(n)")
    return Gate(name=f"every({n})", factory=functools.partial(EveryNth, n))


Counted = TypeVar("Counted", bound=gating.HasSteps)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class OncePerSteps(Operator):
    """See `once_per_steps`."""

    steps: int

    @overload
    def __ror__(self, left: Stream[Counted], /) -> Stream[Counted]: ...
    @overload
    def __ror__(self, left: ParallelStream[Counted, W], /) -> ParallelStream[Counted, W]: ...
    def __ror__(self, left: Any, /) -> Any:
        stream, site = expect_either(left, self), operator_site(self.site)
        check_counts(stream.node, self.name, site)
        factory = functools.partial(gating.OncePerSteps, self.steps)
        return grown(stream, _gate(stream.node, self.name, site, factory, reads=True))


def once_per_steps(steps: int) -> OncePerSteps:
    """An item each time that `steps` environment steps have gone by, counted by the items' own `steps`.

    The item that completes them passes, the others are dropped, and counting begins anew.

    Raises:
        ValueError: `steps` is below 1.
    """
    check_positive(steps, "once_per_steps(steps)")
    return OncePerSteps(name=f"once_per_steps({steps})", steps=steps)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Tap(Operator, Generic[A_contra]):
    """See `tap`."""

    function: Callable[[A_contra], object]

    def __ror__(self, left: TakenBy[A_contra, S], /) -> S:
        node = expect_stream(left, self).node
        return regrown(left, tap_node(node, self.function, operator_site(self.site), self.name))


def tap(function: Callable[[A], object], /) -> Tap[A]:
    """Call a function with every item, in the driver, and pass the item on.

    With a lambda write ``stream.tap(lambda report: ...)``, where its parameter's type is inferred.
    """
    return Tap(name=f"tap({name_of(function)})", function=function)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Until(Operator, Generic[A_contra]):
    """See `until`."""

    predicate: Callable[[A_contra], bool]

    def __ror__(self, left: TakenBy[A_contra, S], /) -> S:
        node = expect_stream(left, self).node
        return regrown(left, until_node(node, self.predicate, operator_site(self.site), self.name))


def until(predicate: Callable[[A], bool], /) -> Until[A]:
    """End the stream after the first item for which the predicate holds; that item is delivered.

    With a lambda write ``stream.until(lambda report: ...)``, where its parameter's type is inferred.
    """
    return Until(name=f"until({name_of(predicate)})", predicate=predicate)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Drain(Operator):
    """See `drain`."""

    name: str = "drain"

    def __ror__(self, left: Stream[object], /) -> Stream[Never]:
        left = expect_stream(left, self)
        site = operator_site(self.site)
        return Stream(nodes.Drain(name=self.name, site=site, input=left.node))


drain = Drain(site=Site(__file__, 0))
"""Consume a branch for its side effects: ``Stream[T] | drain`` is ``Stream[Never]``, so in a union with
another branch only that one's type remains (law 13)."""


def _gate(
    upstream: nodes.Node, name: str, site: Site, factory: Callable[[], nodes.Gating], *, reads: bool
) -> nodes.Gate:
    return nodes.Gate(
        name=name, site=site, item_type=upstream.item_type, input=upstream, factory=factory, reads=reads
    )
