"""Cursors of what runs on the driver itself: items of an iterable, plain callables, expansions, gates."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.dsl.errors import CheckpointError
from pipeflow.lowering.cursors.cursor import Cursor, OneInputCursor
from pipeflow.lowering.items import Item, Signal, merged_origins
from pipeflow.lowering.program import one_output

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor

_END = object()


class ItemsCursor(Cursor):
    """The items of an iterable."""

    def __init__(self, executor: Executor, node: nodes.FromItems) -> None:
        super().__init__(executor, node)
        self._iterator = self._called(iter, node.items)
        self._read_once = self._iterator is node.items
        self._stopped = False

    @override
    def attributes(self) -> Mapping[str, object]:
        if self._read_once:
            message = (
                f"{self.node.name} ({self.node.site}) reads something that can be read only once, such as a "
                "generator, so nobody could go on reading it; read a list"
            )
            raise CheckpointError(message)
        return {name: value for name, value in vars(self).items() if name != "_iterator"}

    @override
    def resumed(self, elapsed: float) -> None:
        super().resumed(elapsed)
        for _ in range(self.meter.taken):
            self._called(next, self._iterator, _END)

    @override
    def _stop(self) -> None:
        self._stopped = True

    @override
    def _poll(self) -> Item | Signal:
        if self._stopped:
            return Signal.DONE
        self.meter.taken += 1
        value = self._called(next, self._iterator, _END)
        if value is _END:
            self.meter.taken -= 1
            self._stopped = True
            return Signal.DONE
        return Item(value)


class ApplyCursor(OneInputCursor):
    """One output for every input (law 2)."""

    def __init__(self, executor: Executor, node: nodes.Apply, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._function = node.function

    @override
    def _poll(self) -> Item | Signal:
        found = self._pull()
        if isinstance(found, Signal):
            return found
        return Item(self._called(one_output, self._function, self.executor.reader.delivered(found)))


class ExpandCursor(OneInputCursor):
    """Zero or more outputs for every input; what is left comes at the end (law 18)."""

    def __init__(self, executor: Executor, node: nodes.Expand, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._state = self._called(node.factory)
        self._keeps_source = node.keeps_source
        self._outputs: deque[object] = deque()
        # The items that the next output is made of, where it keeps their sources.
        self._held: list[Item] = []
        self._finished = False

    @property
    @override
    def queue(self) -> int:
        return len(self._outputs)

    @override
    def _poll(self) -> Item | Signal:
        if not self._outputs:
            if self._finished:
                return Signal.DONE
            found = self._pull()
            if isinstance(found, Item):
                if self._keeps_source:
                    self._held.append(replace(found, value=None, handle=None, parts=None, call=None))
                    value = self.executor.reader.value(found)
                else:
                    value = self.executor.reader.delivered(found)
                self._outputs.extend(self._called(lambda: list(self._state.push(value))))
            elif found is Signal.DONE:
                self._finished = True
                self._outputs.extend(self._called(lambda: list(self._state.finish())))
            else:
                return found
        if not self._outputs:
            return Signal.PASS
        origins, self._held = merged_origins(self._held), []
        return Item(self._outputs.popleft(), origins=origins)


class BatchCursor(OneInputCursor):
    """Lists of items, which stay where they are."""

    def __init__(self, executor: Executor, node: nodes.Batch, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._size = node.size
        self._items: list[Item] = []

    @property
    @override
    def queue(self) -> int:
        return len(self._items)

    @override
    def _poll(self) -> Item | Signal:
        found = self._pull()
        if isinstance(found, Item):
            self._items.append(found)
            if len(self._items) < self._size:
                return Signal.PASS
        elif found is not Signal.DONE or not self._items:
            return found
        items, self._items = self._items, []
        return Item(parts=tuple(items), origins=merged_origins(items))


class MaxLagCursor(OneInputCursor):
    """Drops the items of a gather that are too many weights behind (law 24)."""

    def __init__(self, executor: Executor, node: nodes.MaxLag, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._limit = node.limit

    @override
    def _poll(self) -> Item | Signal:
        found = self._pull()
        if isinstance(found, Signal) or (found.lag or 0) <= self._limit:
            return found
        self._drop(found)
        return Signal.PASS


class GateCursor(OneInputCursor):
    """Keeps items or drops them. A gate that does not read its items never fetches them."""

    def __init__(self, executor: Executor, node: nodes.Gate, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._gate = self._called(node.factory)
        self._reads = node.reads
        self._dropped = Signal.REJECTED if node.passes_turn else Signal.PASS
        self._closed = False

    def close(self, error: BaseException | None) -> None:
        """The run is over: give back what the gate holds open. error: what ended the run early, if anything."""
        if isinstance(self._gate, nodes.Closing):
            self._called(self._gate.close, error)

    @override
    def _poll(self) -> Item | Signal:
        if self._closed or self._gate.closed:
            if not self._closed:
                self._closed = True
                self.stop()
            return Signal.DONE
        found = self._pull()
        if isinstance(found, Signal):
            return found
        item = self.executor.reader.delivered(found) if self._reads else None
        if self._called(self._gate.admit, item):
            return found
        self._drop(found)
        return self._dropped
