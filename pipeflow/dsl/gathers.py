"""Sequencing: operators that turn the shards of a `ParallelStream` into one `Stream`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, final

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_positive, check_rounds
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.expressions import Operator
from pipeflow.dsl.item_types import list_of
from pipeflow.dsl.nodes import GatherMode
from pipeflow.dsl.operands import expect_parallel, expect_stream
from pipeflow.dsl.sites import operator_site
from pipeflow.dsl.sourced import Sourced
from pipeflow.dsl.streams import ParallelStream, Stream

T = TypeVar("T")
W = TypeVar("W")


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Gather(Operator):
    """One item after the other. Made by `gather_sync` and `gather_async`."""

    mode: GatherMode
    num_async: int = 1

    def __ror__(self, left: ParallelStream[T, W], /) -> Stream[T]:
        return _gathered(self, left, self.mode, self.num_async)

    def with_source(self) -> SourcedGather:
        """Deliver every item together with the actor that it came from."""
        name = f"{self.name}.with_source()"
        return SourcedGather(name=name, site=self.site, mode=self.mode, num_async=self.num_async)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class SourcedGather(Operator):
    """A gather whose items are `Sourced`. Made by `Gather.with_source`."""

    mode: GatherMode
    num_async: int

    def __ror__(self, left: ParallelStream[T, W], /) -> Stream[Sourced[T, W]]:
        return _gathered(self, left, self.mode, self.num_async, with_source=True)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class GatherRounds(Operator):
    """One list a round. Made by `gather_rounds`."""

    def __ror__(self, left: ParallelStream[T, W], /) -> Stream[list[T]]:
        return _gathered(self, left, "rounds", 1)


def gather_sync() -> Gather:
    """In rounds: one item of every live shard, in shard order, then a barrier (laws 5 and 6).

    No shard starts its next item before every item of the round was delivered and the consumer asked for the
    next. What is sent to the shards' actors in between takes effect before the next round starts, so a
    synchronous plan is exactly on-policy.
    """
    return Gather(name="gather_sync()", mode="sync")


def gather_async(num_async: int = 1) -> Gather:
    """As the shards' items become ready, each shard's own in order (laws 1, 7 and 8).

    On Ray, items that the driver reads and that take less than a fifth of a millisecond to make travel several
    at a time, half of `num_async`, since a call costs more than they do.

    Args:
        num_async: how many items a shard may have started and not yet delivered. After a message to a shard at
            most so many further items do not reflect it.

    Raises:
        ValueError: `num_async` is below 1.
    """
    check_positive(num_async, "gather_async(num_async)")
    return Gather(name=f"gather_async({num_async})", mode="async", num_async=num_async)


def gather_rounds() -> GatherRounds:
    """Like `gather_sync`, each round as one list in shard order."""
    return GatherRounds(name="gather_rounds()")


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class MaxLag(Operator):
    """See `max_lag`."""

    limit: int
    wait: bool

    def __ror__(self, left: Stream[T], /) -> Stream[T]:
        stream: Stream[T] = expect_stream(left, self)
        site, upstream = operator_site(self.site), stream.node
        if not isinstance(upstream, nodes.Gather) or upstream.mode != "async":
            message = (
                f"{site}: {self.name} knows the lag of what comes right from a gather_async, but "
                f"{upstream.name} ({upstream.site}) stands before it; put it behind the gather_async"
            )
            raise PlanError(message)
        return Stream(
            nodes.MaxLag(
                name=self.name,
                site=site,
                item_type=upstream.item_type,
                input=upstream,
                limit=self.limit,
                wait=self.wait,
            )
        )


def max_lag(versions: int, *, wait: bool = False) -> MaxLag:
    """Deliver no item of a `gather_async` that is more than so many weights behind the newest sent (law 24).

    Args:
        versions: how many weights the actor of an item may have been sent since it was asked for the item.
        wait: keep the faster shards' items back until a slow one has delivered, instead of dropping what is too
            old.

    Raises:
        ValueError: `versions` is negative, or 0 with `wait`.
    """
    if versions < (1 if wait else 0):
        message = f"max_lag(versions) must be at least {1 if wait else 0}, got {versions}"
        raise ValueError(message)
    name = f"max_lag({versions}{', wait=True' if wait else ''})"
    return MaxLag(name=name, limit=versions, wait=wait)


# `Any`: the callers' signatures state the type.
def _gathered(
    operator: Operator, left: object, mode: GatherMode, num_async: int, with_source: bool = False
) -> Stream[Any]:
    upstream, site = expect_parallel(left, operator).node, operator_site(operator.site)
    check_rounds(upstream, mode, operator.name, site)
    return Stream(
        nodes.Gather(
            name=operator.name,
            site=site,
            item_type=list_of(upstream.item_type) if mode == "rounds" else upstream.item_type,
            input=upstream,
            mode=mode,
            num_async=num_async,
            with_source=with_source,
        )
    )
