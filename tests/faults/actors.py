"""Actors of the fault tests, in a module of their own, since Ray's workers import them by name."""

from __future__ import annotations

import os
import time
from typing import final

import numpy as np
from numpy.typing import NDArray

from pipeflow import current_shard

Interval = tuple[str, float, float]


@final
class Bulk:
    """Makes and takes large items."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._made = 0

    def make(self) -> NDArray[np.uint8]:
        """An item of `size` bytes."""
        self._made += 1
        return np.full(self._size, self._made % 256, np.uint8)

    def take(self, item: NDArray[np.uint8]) -> int:
        """How many bytes it has."""
        return item.nbytes

    def made(self) -> int:
        """How many were asked for."""
        return self._made


@final
class Sleeper:
    """Takes its time, and says when."""

    def __init__(self, name: str, seconds: float) -> None:
        self._name = name
        self._seconds = seconds

    def work(self) -> Interval:
        """From when to when it worked."""
        started = time.time()
        time.sleep(self._seconds)
        return self._name, started, time.time()


@final
class SlowLearner:
    """Takes its time over every item."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def update(self, item: int) -> int:
        """The item, so many seconds later."""
        time.sleep(self._seconds)
        return item


@final
class ArrayLearner:
    """A learner that writes into its weights, and gives snapshots of them."""

    def __init__(self) -> None:
        self._weights = np.zeros(3)

    def update(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply a gradient in place; the weights that the gradient was computed with come back."""
        self._weights += 1.0
        return gradient

    def weights(self) -> NDArray[np.float64]:
        """A snapshot."""
        return self._weights.copy()


@final
class ArrayWorker:
    """Acts with the weights that it was given."""

    def __init__(self) -> None:
        self._weights = np.full(3, -1.0)

    def sample(self) -> NDArray[np.float64]:
        """The weights that it acts with."""
        return self._weights

    def set_weights(self, weights: NDArray[np.float64], /) -> None:
        """Act with these."""
        self._weights = weights


def process_of(_: object) -> int:
    """The process that an actor lives in; for `Run.ask`."""
    return os.getpid()


def shard_of(_: object) -> int:
    """The index of an actor; for `Run.ask`."""
    return current_shard()
