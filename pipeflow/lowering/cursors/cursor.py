"""What every cursor shares: polling, counting, and being told to start nothing more."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pipeflow.dsl.nodes import Node
from pipeflow.lowering.items import Item, Signal

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor

T = TypeVar("T")


class Cursor(ABC):
    """A node of a running plan: answers `poll` with an item or a signal, and never blocks."""

    def __init__(self, executor: Executor, node: Node, inputs: Sequence[Cursor] = ()) -> None:
        self.executor = executor
        self.node = node
        self.inputs = tuple(inputs)
        self.meter = executor.meters[executor.number[id(node)]]
        self.waits_for = ""
        self._asked_at: float | None = None
        # What the last `Signal.DRAINED` consumed.
        self.consumed: tuple[Item, ...] = ()
        # While a trace is recorded: what was taken for the item that comes next.
        self.taken: list[Item] = []

    def poll(self) -> Item | Signal:
        """Ask for the next item (the event `Asked` of the laws)."""
        self.waits_for = ""
        recorder = self.executor.recorder
        if recorder is not None:
            recorder.asked(self)
        found = self._poll()
        if recorder is not None:
            recorder.polled(self, found)
        if isinstance(found, Item):
            self._count_delivery()
            if self._asked_at is not None:
                self.meter.waiting += self.executor.engine.now() - self._asked_at
                self._asked_at = None
        elif found is Signal.PENDING and self._asked_at is None:
            self._asked_at = self.executor.engine.now()
        return found

    def stop(self) -> None:
        """Start nothing more; what is in flight is still delivered, then the cursor is done (law 13)."""
        if self.executor.recorder is not None:
            self.executor.recorder.halted(self)
        self._stop()

    def attributes(self) -> Mapping[str, object]:
        """What the next answers depend on, by name, for a checkpoint."""
        return vars(self)

    def resumed(self, elapsed: float) -> None:
        """The attributes are those of another run, whose clock the engine's is ahead of by so many seconds."""
        if self._asked_at is not None:
            self._asked_at += elapsed

    @property
    def queue(self) -> int:
        """Items that are finished or in flight here and not yet delivered."""
        return 0

    @abstractmethod
    def _poll(self) -> Item | Signal: ...

    def _stop(self) -> None:
        for cursor in self.inputs:
            cursor.stop()

    def _count_delivery(self) -> None:
        self.meter.made += 1

    # `Any`: user functions of every signature, whose types were checked where they were written.
    def _called(self, function: Callable[..., T], *args: Any) -> T:
        """Call user code in the driver; what it raises ends the run (law 20)."""
        started = time.perf_counter()  # as in actors; the clock of a simulation does not move here
        try:
            return function(*args)
        except Exception as error:
            self.executor.fail(self.node, max(self.meter.taken - 1, 0), error)
        finally:
            self.meter.busy += time.perf_counter() - started


class OneInputCursor(Cursor):
    """A cursor that reads one other."""

    def __init__(self, executor: Executor, node: Node, upstream: Cursor) -> None:
        super().__init__(executor, node, (upstream,))
        self._upstream = upstream

    def _pull(self) -> Item | Signal:
        found = self._upstream.poll()
        if isinstance(found, Item):
            self.meter.taken += 1
            if self.executor.recorder is not None:
                self.taken.append(found)
        return found

    def _drop(self, item: Item) -> None:
        """Give an item up."""
        if self.executor.recorder is not None:
            self.executor.recorder.dropped(self, item)
