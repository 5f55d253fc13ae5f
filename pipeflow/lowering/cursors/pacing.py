"""Cursors of what changes when items pass and nothing else: buffers, and gates that go by the clock."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.lowering.cursors.cursor import Cursor, OneInputCursor
from pipeflow.lowering.items import Item, Signal

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


class PaceCursor(OneInputCursor):
    """Lets an item pass once in so many seconds; what comes too soon waits or is dropped."""

    def __init__(self, executor: Executor, node: nodes.Pace, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._seconds, self._drops = node.seconds, node.drops
        self._next = -math.inf
        self._waiting: Item | None = None

    @override
    def resumed(self, elapsed: float) -> None:
        super().resumed(elapsed)
        self._next += elapsed

    @override
    def _poll(self) -> Item | Signal:
        if self._waiting is None:
            found = self._pull()
            if isinstance(found, Signal):
                return found
            self._waiting = found
        item, now = self._waiting, self.executor.engine.now()
        early = now < self._next
        if early and not self._drops:
            self.executor.wake_at(self._next)
            return Signal.PENDING
        self._waiting = None
        if self.executor.recorder is not None:
            self.executor.recorder.timed(self, item, now)
        if early:
            self._drop(item)
            return Signal.REJECTED
        self._next = now + self._seconds
        return item


class BufferCursor(OneInputCursor):
    """Lets items run ahead of whoever reads them (law 16)."""

    def __init__(self, executor: Executor, node: nodes.Buffer, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._size = node.size
        self._items: deque[Item] = deque()
        self._ended = False
        executor.buffers.append(self)

    @property
    @override
    def queue(self) -> int:
        return len(self._items)

    def fill(self) -> bool:
        """Take in one item, if there is room and one; whether anything moved."""
        if self._ended or len(self._items) >= self._size:
            return False
        found = self._taken_in()
        if isinstance(found, Item):
            self._items.append(found)
        return isinstance(found, Item) or found in (Signal.DONE, Signal.PASS, Signal.REJECTED)

    @override
    def _poll(self) -> Item | Signal:
        if self._items:
            return self._items.popleft()
        return Signal.DONE if self._ended else self._taken_in()

    def _taken_in(self) -> Item | Signal:
        # Who asked does not matter: after its end the input is not asked again.
        found = self._pull()
        self._ended = found is Signal.DONE
        return found
