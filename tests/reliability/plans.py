"""A plan for every operator of the DSL, with a source that notes how much memory is held.

Apart from the test, which only runs them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from pipeflow import (
    Actors,
    ParallelStream,
    Stream,
    actors,
    batch,
    buffer,
    concat,
    drain,
    every,
    every_seconds,
    expand,
    flat_map,
    flatten,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    max_lag,
    once_per_steps,
    reply,
    reply_weights,
    select_shards,
    shuffle,
    stage,
    sync_weights,
    take,
    tap,
    throttle,
    until,
    update_target,
)
from tests.reliability.actors import Learner, Maker, Rows
from tests.reliability.gauges import Gauge

FOREVER = 1 << 60


def is_even(number: int) -> bool:
    """For what chooses."""
    return number % 2 == 0


def _never(item: object) -> bool:
    return False


def _twice(number: int) -> list[int]:
    return [number, number]


class _Pairing:
    """The state of an expanding stage: the sum of every two."""

    def __init__(self) -> None:
        self._first: int | None = None

    def push(self, item: int, /) -> Iterable[int]:
        first, self._first = self._first, item if self._first is None else None
        return [] if first is None else [first + item]

    def finish(self) -> Iterable[int]:
        return []


@stage
def _negative(number: int) -> int:
    return -number


class Parts:
    """What the plans are made of; every actor and every source ticks the same gauge."""

    def __init__(self, gauge: Gauge) -> None:
        self.gauge = gauge
        self.makers: Actors[Maker] = actors(Maker, 2, gauge)
        self.others: Actors[Maker] = actors(Maker, 2, gauge).named("others")
        self.learner: Actors[Learner] = actors(Learner, 1)

    @property
    def items(self) -> Stream[int]:
        """Numbers of the driver's."""
        return from_items(self.gauge.items())

    @property
    def shards(self) -> ParallelStream[int, Maker]:
        """Numbers of two actors."""
        return self.makers.produce(Maker.number)

    @property
    def rows(self) -> ParallelStream[Rows, Maker]:
        """Batches of two actors."""
        return self.makers.produce(Maker.rows)


def held_up(sides: tuple[Stream[int], Stream[int]]) -> Stream[int]:
    """The second of two sides is read only where nothing else can go on."""
    first, second = sides
    return (first & (second | every(100))).prioritised()


def _both(sides: tuple[Stream[int], Stream[int]]) -> Stream[int]:
    first, second = sides
    return first & second


# `Any`: a plan of each operator, whatever its items are.
PLANS: dict[str, Callable[[Parts], Stream[Any]]] = {
    # Sources
    "from_items": lambda p: p.items,
    "from_shards": lambda p: from_shards([p.gauge.items(), p.gauge.items()]) | gather_sync(),
    "produce": lambda p: p.shards | gather_sync(),
    "a source that is not ready": lambda p: (
        (p.makers.produce(Maker.number_or_not) | gather_async(2))
        & (p.others.produce(Maker.number) | gather_async(2))
    ),
    # Transforms
    "|": lambda p: p.items | operator.neg,
    "map": lambda p: p.shards.map(operator.neg) | gather_sync(),
    "map(here=True)": lambda p: (p.shards | gather_sync()).map(operator.neg, here=True),
    "stage": lambda p: p.items | _negative,
    "filter": lambda p: p.items.filter(is_even),
    "filter in the shards": lambda p: p.shards.filter(is_even) | gather_sync(),
    "expand": lambda p: p.items | expand(_Pairing),
    "flat_map": lambda p: p.items | flat_map(_twice),
    "flatten": lambda p: p.items | batch(4) | flatten(),
    "batch": lambda p: p.shards | batch(4) | gather_sync(),
    "concat": lambda p: p.rows | gather_sync() | concat(10),
    "shuffle": lambda p: p.items | shuffle(64, seed=1),
    # Gates
    "take": lambda p: p.items | take(FOREVER),
    "every": lambda p: p.items | every(3),
    "every_seconds": lambda p: p.items | every_seconds(1e-9),
    "throttle": lambda p: p.items | throttle(1e-9),
    "once_per_steps": lambda p: p.rows | gather_sync() | once_per_steps(10),
    "tap": lambda p: p.items | tap(is_even),
    "until": lambda p: p.items | until(_never),
    "max_lag": lambda p: (
        p.shards
        | gather_async(4)
        | max_lag(1)
        | p.learner.stage(Learner.update)
        | sync_weights(p.learner, p.makers)
    ),
    "max_lag(wait=True)": lambda p: (
        p.shards
        | gather_async(4)
        | max_lag(4, wait=True)
        | p.learner.stage(Learner.update)
        | sync_weights(p.learner, p.makers)
    ),
    # Sequencing
    "gather_sync": lambda p: p.shards | gather_sync(),
    "gather_rounds": lambda p: p.shards | gather_rounds(),
    "gather_async": lambda p: p.shards | gather_async(4),
    "with_source": lambda p: p.shards | gather_async(4).with_source(),
    "select_shards": lambda p: p.shards | select_shards(1) | gather_sync(),
    "scatter": lambda p: p.items | p.others.scatter() | gather_sync(),
    "broadcast": lambda p: p.items | p.others.broadcast() | gather_sync(),
    # Concurrency
    "&": lambda p: (p.shards | gather_async(2)) & p.items,
    "& of shards": lambda p: (p.shards & p.others.produce(Maker.number)) | gather_async(2),
    "round_robin": lambda p: ((p.shards | gather_async(2)) & p.items).round_robin(2, 1),
    "by_steps": lambda p: (
        (p.rows | gather_async(2)) & (p.others.produce(Maker.rows) | gather_async(2))
    ).by_steps(1, 4),
    "prioritised": lambda p: ((p.shards | gather_async(2)) & p.items).prioritised(),
    "async_": lambda p: ((p.shards | gather_async(2)) & p.items).async_(),
    "fork": lambda p: _both(p.items.fork(2, buffer=8)),
    "fork with a side that is held up": lambda p: held_up(p.items.fork(2, buffer=8)),
    "partition": lambda p: _both(p.items.partition(is_even, buffer=8)),
    "zip": lambda p: p.items.zip(p.shards | gather_sync()),
    "buffer": lambda p: p.shards | gather_async(2) | buffer(16),
    "drain": lambda p: (p.shards | gather_sync() | drain) & p.items,
    # Placement
    "a stage in an actor": lambda p: p.shards | gather_sync() | p.learner.stage(Learner.update),
    "a stage in its own shards": lambda p: p.shards | p.makers.stage(Maker.take) | gather_sync(),
    "max_in_flight": lambda p: p.items | p.others.stage(Maker.take).max_in_flight(6),
    "unordered": lambda p: p.items | p.others.stage(Maker.take).max_in_flight(6).unordered(),
    "repeat": lambda p: p.items | p.learner.stage(Learner.step).repeat(3),
    # Messages
    "send": lambda p: p.items | p.others.send(Maker.take),
    "reply": lambda p: p.shards | gather_async(2).with_source() | reply(Maker.set_weights),
    "reply of a batch": lambda p: (
        (p.shards | gather_async(2).with_source() | batch(4)).reply(Maker.set_weights, max)
    ),
    "reply_weights": lambda p: (
        p.shards
        | gather_async(2).with_source()
        | p.learner.stage(Learner.update)
        | reply_weights(p.learner)
    ),
    "sync_weights": lambda p: (
        p.shards | gather_sync() | p.learner.stage(Learner.update) | sync_weights(p.learner, p.makers)
    ),
    "update_target": lambda p: (
        p.items | p.learner.stage(Learner.update) | update_target(p.learner, every=3)
    ),
}  # fmt: skip
