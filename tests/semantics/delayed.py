"""Actors that take a little while, each time another, and some that die: for runs on Ray.

In a module of their own, since Ray's workers import them by name.
"""

from __future__ import annotations

import os
import random
import time

from typing_extensions import override

from pipeflow.dsl import Ended, current_shard
from pipeflow.testing.parts import Learner, Worker


def dawdle(driver: int) -> None:
    """Between nothing and four milliseconds, but for the process that only simulates."""
    if os.getpid() != driver:
        time.sleep(random.random() * 0.004)


class SlowWorker(Worker):
    """A worker that takes its time over every item."""

    def __init__(self, length: int, start: int, driver: int) -> None:
        super().__init__(length, start)
        self._driver = driver

    @override
    def sample(self) -> int | Ended:
        dawdle(self._driver)
        return super().sample()


class SlowLearner(Learner):
    """A learner that takes its time over every update."""

    def __init__(self, driver: int) -> None:
        super().__init__()
        self._driver = driver

    @override
    def update(self, item: int) -> int:
        dawdle(self._driver)
        return super().update(item)


class MortalWorker(SlowWorker):
    """The worker of shard 0 loses its process at the third item of each of its lives."""

    def __init__(self, length: int, start: int, driver: int) -> None:
        super().__init__(length, start, driver)
        self._made = 0

    @override
    def sample(self) -> int | Ended:
        self._made += 1
        if self._made == 3 and current_shard() == 0 and os.getpid() != self._driver:
            os._exit(1)
        return super().sample()
