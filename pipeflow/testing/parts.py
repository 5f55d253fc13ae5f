"""The functions and actors that drawn plans are made of: named, picklable, and telling in what they return.

Apart from the strategies so that a plan that was drawn, printed and pasted elsewhere finds its parts here, and
so do Ray's workers. Items are whole numbers. What an actor adds to one shows what the actor had seen by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pipeflow.dsl.signals import Ended, NotReady, current_shard

_SHARD, _VERSION, _UPDATES, _STORED = 100, 10_000, 1_000_000, 100_000_000


class Counted(int):
    """An item that counts for one, two or three steps."""

    @property
    def steps(self) -> int:
        """How many."""
        return 1 + self % 3

    @classmethod
    def concatenate(cls, items: Sequence[Self]) -> Self:
        """Their sum."""
        return cls(sum(items))


class Worker:
    """Makes a number of items, numbered; each shows the shard and the weights that it was made with."""

    def __init__(self, length: int, start: int) -> None:
        self._left = length
        self._next = start
        self._weights = 0

    def sample(self) -> int | Ended:
        """The next item."""
        if self._left == 0:
            return Ended()
        self._left -= 1
        self._next += 1
        return self._next + _SHARD * current_shard() + _VERSION * self._weights

    def grade(self, item: int) -> int:
        """The item, and the weights of now."""
        return item + _VERSION * self._weights

    def set_weights(self, weights: int) -> None:
        """Act with these from now on."""
        self._weights = weights


class Learner:
    """Counts what it is given; what it returns shows the count."""

    def __init__(self) -> None:
        self._updates = 0

    def update(self, item: int) -> int:
        """The item, and how many came before it."""
        self._updates += 1
        return item + _UPDATES * (self._updates - 1)

    def update_all(self, items: list[int]) -> int:
        """The sum of the items, which count as one."""
        return self.update(sum(items))

    def note(self, item: int) -> None:
        """Count an item that was sent."""
        self._updates += 1

    def update_target(self) -> None:
        """Count that as well."""
        self._updates += 1

    def weights(self) -> int:
        """How many items there were."""
        return self._updates


class Store:
    """Keeps items, and gives out some once it has enough."""

    def __init__(self, warm: int, samples: int) -> None:
        self._warm = warm
        self._samples = samples
        self._items: list[int] = []

    def add(self, item: int) -> int:
        """Keep an item."""
        self._items.append(item)
        return item

    def sample(self) -> int | NotReady | Ended:
        """The latest item, and how many there are."""
        if len(self._items) < self._warm:
            return NotReady()
        if self._samples == 0:
            return Ended()
        self._samples -= 1
        return self._items[-1] + _STORED * len(self._items)


def double(item: int) -> int:
    """Twice the item."""
    return 2 * item


def is_even(item: int) -> bool:
    """Whether the item is even."""
    return item % 2 == 0


def both(item: int) -> list[int]:
    """The item and the one after it."""
    return [item, item + 1]


def total(items: list[int]) -> int:
    """The sum."""
    return sum(items)


def pair_sum(pair: tuple[int, int]) -> int:
    """A sum that tells the sides apart."""
    return pair[0] + 2 * pair[1]


def ends_with_three(item: int) -> bool:
    """Whether the last digit is a three."""
    return item % 10 == 3


def look(item: int) -> None:
    """Nothing."""


def as_weights(item: int) -> int:
    """A number that fits into an item as weights do."""
    return item % 10


def total_as_weights(items: list[int]) -> int:
    """Likewise, of several items."""
    return sum(items) % 10


def fail_on_three(item: int) -> int:
    """The item; raises for one that ends with a three."""
    if ends_with_three(item):
        message = f"{item} ends with a three"
        raise ValueError(message)
    return item


def stop_on_three(item: int) -> int:
    """The item; lets a `StopIteration` escape for one that ends with a three."""
    if ends_with_three(item):
        raise StopIteration(item)
    return item
