"""Actors that hold nothing of what passes them.

In a module of their own, since Ray's workers import them by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pipeflow import Ended, NotReady
from tests.reliability.gauges import Gauge


class Rows(NamedTuple):
    """A batch that counts its steps and can be joined."""

    steps: int

    @classmethod
    def concatenate(cls, items: Sequence[Rows], /) -> Rows:
        """One with the steps of all."""
        return cls(sum(item.steps for item in items))


@final
class Maker:
    """Makes items until its gauge has seen enough of them, and takes messages.

    All of them share the gauge, so they are for runs in one process.
    """

    def __init__(self, gauge: Gauge) -> None:
        self._items = gauge.items()
        self._weights = 0

    def number(self) -> int | Ended:
        """The next number."""
        return next(self._items, Ended())

    def rows(self) -> Rows | Ended:
        """Three steps."""
        number = self.number()
        return number if isinstance(number, Ended) else Rows(3)

    def number_or_not(self) -> int | Ended | NotReady:
        """The next number; every other time it is not ready."""
        number = self.number()
        return NotReady() if isinstance(number, int) and number % 2 else number

    def set_weights(self, weights: int, /) -> None:
        """Keep the latest."""
        self._weights = weights

    def take(self, item: object) -> object:
        """Pass an item on, or keep none of it."""
        return item


@final
class Learner:
    """Its weights are the number of its updates."""

    def __init__(self) -> None:
        self._updates = 0
        self._target = 0

    def update(self, item: int) -> int:
        """Learn from an item."""
        self._updates += 1
        return item

    def step(self, item: int) -> int:
        """Part of a stage that is repeated."""
        return item + 1

    def weights(self) -> int:
        """The number of updates."""
        return self._updates

    def update_target(self) -> None:
        """The target is what the weights are now."""
        self._target = self._updates


@final
class Loader:
    """Makes and takes large items, each another."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._made = 0

    def make(self) -> NDArray[np.uint8]:
        """An item of `size` bytes."""
        self._made += 1
        return np.full(self._size, self._made % 251, np.uint8)

    def take(self, item: NDArray[np.uint8]) -> int:
        """What it is filled with."""
        return int(item[-1])

    def set_weights(self, weights: NDArray[np.uint8], /) -> None:
        """Look at large weights, and keep none of them."""
        self._made += 0 * int(weights[-1])

    def weights(self) -> NDArray[np.uint8]:
        """Weights as large as an item."""
        return np.full(self._size, 7, np.uint8)
