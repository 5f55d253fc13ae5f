"""Operators that change when items pass and nothing else: `buffer`, and two that go by the engine's clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, final

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_positive
from pipeflow.dsl.expressions import Operator
from pipeflow.dsl.operands import expect_stream
from pipeflow.dsl.sites import operator_site
from pipeflow.dsl.streams import Stream

T = TypeVar("T")


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Pace(Operator):
    """See `every_seconds` and `throttle`."""

    seconds: float
    drops: bool

    def __ror__(self, left: Stream[T], /) -> Stream[T]:
        stream: Stream[T] = expect_stream(left, self)
        site = operator_site(self.site)
        return Stream(
            nodes.Pace(
                name=self.name,
                site=site,
                item_type=stream.node.item_type,
                input=stream.node,
                seconds=self.seconds,
                drops=self.drops,
            )
        )


def every_seconds(seconds: float) -> Pace:
    """An item when at least so many seconds went by since the last one that passed; the others are dropped.

    Raises:
        ValueError: `seconds` is not positive.
    """
    return Pace(name=f"every_seconds({seconds:g})", seconds=_positive(seconds, "every_seconds"), drops=True)


def throttle(seconds: float) -> Pace:
    """At most one item in so many seconds: an item that comes sooner waits, and the stream before it with it.

    Raises:
        ValueError: `seconds` is not positive.
    """
    return Pace(name=f"throttle({seconds:g})", seconds=_positive(seconds, "throttle"), drops=False)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Buffer(Operator):
    """See `buffer`."""

    size: int

    def __ror__(self, left: Stream[T], /) -> Stream[T]:
        stream: Stream[T] = expect_stream(left, self)
        site = operator_site(self.site)
        return Stream(
            nodes.Buffer(
                name=self.name,
                site=site,
                item_type=stream.node.item_type,
                input=stream.node,
                size=self.size,
            )
        )


def buffer(size: int) -> Buffer:
    """Let up to `size` items run ahead of whoever reads them, while that is busy; changes nothing else (law 16).

    Raises:
        ValueError: `size` is below 1.
    """
    check_positive(size, "buffer(size)")
    return Buffer(name=f"buffer({size})", size=size)


def _positive(seconds: float, what: str) -> float:
    if not seconds > 0:
        message = f"{what}(seconds) must be positive, got {seconds}"
        raise ValueError(message)
    return seconds
