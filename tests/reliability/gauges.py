"""What memory, threads and processes a run uses while it goes on.

Apart from the tests, since the soak's figures are taken in the same way.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator


class Gauge:
    """Notes how many blocks of memory Python holds at one item of a source, and at a later one.

    A source calls `tick` for every item that it gives, so that both readings are taken in the middle of the plan,
    whatever comes after the source. Every item is an object of its own: whoever keeps items, or one thing for each
    of them, keeps as many blocks. Counting blocks costs nothing, where tracing them would take most of the time.
    """

    def __init__(self, first: int, last: int) -> None:
        self._first, self._last = first, last
        self._ticks = 0
        self._held: list[int] = []

    def tick(self) -> None:
        """One more item."""
        self._ticks += 1
        if self._ticks in (self._first, self._last):
            gc.collect()
            self._held.append(sys.getallocatedblocks())

    def items(self) -> Iterator[int]:
        """Numbers, none of which the interpreter has already, until `last` items were given."""
        number = 1_000
        while self._ticks < self._last:
            self.tick()
            yield number
            number += 1

    @property
    def growth(self) -> int:
        """Blocks that Python holds more at the later reading.

        Raises:
            ValueError: the source has not given so many items.
        """
        if len(self._held) != 2:
            message = (
                f"the source gave {self._ticks} items, and the readings are at {self._first} and {self._last}"
            )
            raise ValueError(message)
        return self._held[1] - self._held[0]
