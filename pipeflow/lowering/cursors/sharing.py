"""Cursors of what shares one stream between several consumers: forks and partitions."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.lowering.cursors.cursor import Cursor
from pipeflow.lowering.items import Item, Signal

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


class Sharing:
    """One input read by several outlets through bounded buffers (laws 14 and 15)."""

    def __init__(self, executor: Executor, node: nodes.Share, upstream: Cursor) -> None:
        self.executor = executor
        self.node = node
        self.upstream = upstream
        self.buffers: list[deque[Item]] = [deque() for _ in range(node.outlets)]
        self._attached = set(range(node.outlets))
        self._meter = executor.meters[executor.number[id(node)]]

    def pull(self, index: int) -> Item | Signal:
        """The next item of outlet `index`, or why there is none yet."""
        own = self.buffers[index]
        if own:
            return own.popleft()
        if self._attached and index not in self._attached:
            return Signal.DONE
        found = self.upstream.poll()
        if isinstance(found, Signal):
            return found
        self._share(found)
        return own.popleft() if own else Signal.PASS

    def full(self, index: int) -> int | None:
        """Another outlet whose buffer is full, so that nothing further can be read for `index`."""
        if self.buffers[index] or index not in self._attached:
            return None
        full = (other for other in self._attached if len(self.buffers[other]) >= self.node.buffer)
        return next((other for other in full if other != index), None)

    def detach(self, index: int) -> None:
        """Outlet `index` wants no item that is not read yet; when none does, the input is stopped.

        What the input has in flight then is still shared by all (law 13).
        """
        self._attached.discard(index)
        if not self._attached:
            self.upstream.stop()

    def _share(self, item: Item) -> None:
        self._meter.taken += 1
        receivers = sorted(self._attached) or list(range(self.node.outlets))
        try:
            if self.node.predicate is not None:
                side = 0 if self.node.predicate(self.executor.reader.delivered(item)) else 1
                receivers = [side] if side in receivers else []
            for position, index in enumerate(receivers):
                self._meter.made += 1
                given = item if position == 0 else self.executor.reader.copied(item)
                self.buffers[index].append(given)
                if self.executor.recorder is not None:
                    self.executor.recorder.shared(self.node, index, item, given)
        except Exception as error:  # the predicate, or copying an item, which runs its class's code
            self.executor.fail(self.node, self._meter.taken - 1, error)


class OutletCursor(Cursor):
    """One consumer's end of a fork or a partition."""

    def __init__(self, executor: Executor, node: nodes.Outlet, sharing: Sharing) -> None:
        super().__init__(executor, node)
        self._sharing = sharing
        self._index = node.index

    @property
    @override
    def queue(self) -> int:
        return len(self._sharing.buffers[self._index])

    @override
    def _stop(self) -> None:
        self._sharing.detach(self._index)

    @override
    def _poll(self) -> Item | Signal:
        blocker = self._sharing.full(self._index)
        if blocker is not None:
            self.waits_for = self._held_up_by(blocker)
            return Signal.PENDING
        found = self._sharing.pull(self._index)
        if isinstance(found, Item):
            self.meter.taken += 1
        return found

    def _held_up_by(self, index: int) -> str:
        share, plan = self._sharing.node, self.executor.nodes
        others = (node for node in plan if isinstance(node, nodes.Outlet) and node.input is share)
        other = next(node for node in others if node.index == index)
        reader = next((node for node in plan if other in node.inputs), other)
        return (
            f"{reader.name} ({reader.site}) to ask for {other.name}, whose buffer of {share.buffer} is full"
        )
