"""Cursors of what is concurrent: unions, drains, forks and partitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.lowering.cursors.cursor import Cursor, OneInputCursor
from pipeflow.lowering.items import Item, Signal

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


class DrainCursor(OneInputCursor):
    """Consumes its input and delivers nothing (law 13)."""

    @override
    def _poll(self) -> Item | Signal:
        found = self._pull()
        if isinstance(found, Signal):
            return found
        self._drop(found)
        return Signal.DRAINED


class _UnionCursor(Cursor):
    """A union ends when every branch that can deliver has; drained branches are then stopped (law 13)."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        self._weights = dict(zip(branches, node.weights or (1,) * len(branches), strict=True))
        self._live = list(branches)
        self._turn = 0
        # What this union answers when a drained branch of it consumed an item.
        self._drained = Signal.DRAINED if node.drained else Signal.PASS
        self._stopping = False

    def _ended(self, branch: Cursor) -> None:
        position = self._live.index(branch)
        self._live.remove(branch)
        if position < self._turn:
            self._turn -= 1
        if self._live:
            self._turn %= len(self._live)
        only_drained = all(cursor.node.drained for cursor in self._live)
        if only_drained and not self.node.drained and not self._stopping:
            self._stopping = True
            for cursor in self._live:
                cursor.stop()

    def _delivered(self, item: Item) -> Item:
        self.meter.taken += 1
        return item


class RoundRobinCursor(_UnionCursor):
    """Serves the branches in turns by weight (law 11); a branch that is not ready passes its turn."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        self._served = 0

    @override
    def _poll(self) -> Item | Signal:
        passed = 0
        while self._live:
            branch = self._live[self._turn]
            found = branch.poll()
            if isinstance(found, Item):
                self._count_turn(branch)
                return self._delivered(found)
            match found:
                case Signal.DRAINED:
                    self._count_turn(branch)
                    return self._drained
                case Signal.DONE:
                    self._served = 0
                    self._ended(branch)
                case Signal.NOT_READY:
                    self._next_turn()
                    passed += 1
                    if passed >= len(self._live):
                        return found
                case _:
                    return found
        return Signal.DONE

    def _count_turn(self, branch: Cursor) -> None:
        self._served += 1
        if self._served >= self._weights[branch]:
            self._next_turn()

    def _next_turn(self) -> None:
        self._served = 0
        self._turn = (self._turn + 1) % len(self._live)


class AsyncUnionCursor(_UnionCursor):
    """Serves whatever branch has an item ready, the one after the last served first (law 12)."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        # How often it moved since the executor last looked what had finished.
        self._moves = 0
        self._looks = 0

    @override
    def _poll(self) -> Item | Signal:
        self._look()
        moved = pending = False
        first = self._turn
        for branch in [*self._live[first:], *self._live[:first]]:
            found = branch.poll()
            if isinstance(found, Item):
                self._turn = (self._live.index(branch) + 1) % len(self._live)
                self._moves += 1
                return self._delivered(found)
            match found:
                case Signal.DONE:
                    self._ended(branch)
                    moved = True
                case Signal.DRAINED | Signal.PASS:
                    moved = True
                case Signal.PENDING:
                    pending = True
                case _:
                    pass
        if not self._live:
            return Signal.DONE
        if moved:
            self._moves += 1
            return self._drained
        return Signal.PENDING if pending else Signal.NOT_READY

    def _look(self) -> None:
        """Let the other branches' calls be noticed, where some could be served for ever without a wait."""
        if self._looks != self.executor.looks:
            self._looks, self._moves = self.executor.looks, 0
        elif self._moves >= len(self._live):
            self.executor.look()


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
                side = 0 if self.node.predicate(self.executor.delivered(item)) else 1
                receivers = [side] if side in receivers else []
            for position, index in enumerate(receivers):
                self._meter.made += 1
                given = item if position == 0 else self.executor.copied(item)
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
