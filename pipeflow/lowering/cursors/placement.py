"""The cursor of a stage that is placed on an actor group, with what was fused into it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.lowering.cursors.cursor import Cursor, OneInputCursor
from pipeflow.lowering.engine import Call
from pipeflow.lowering.host import Answer, Host
from pipeflow.lowering.items import Item, Origin, Signal
from pipeflow.lowering.program import Program, Reply, Status

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


class PlaceCursor(OneInputCursor):
    """Feeds items to the actors, by reference, and delivers in the order of the input (law 4).

    The next input is pulled only when an output is asked for and fewer than `max_in_flight` items are in the
    actors; with one, a barrier upstream stays exact (law 6).
    """

    def __init__(self, executor: Executor, node: nodes.Place, upstream: Cursor, program: Program) -> None:
        super().__init__(executor, node, upstream)
        self._program = program
        self._actors = executor.actors(node.group)
        self._keys = [executor.install(node, node.group, index, program) for index in range(node.group.count)]
        self._load = [0] * len(self._actors)
        self._max_in_flight = node.max_in_flight
        self._ordered = node.ordered
        self._calls: deque[tuple[Call, int, Origin | None]] = deque()
        self._more = False
        self._input_ended = False
        self._told_end = not program.expands

    @property
    @override
    def queue(self) -> int:
        return len(self._calls)

    @override
    def _poll(self) -> Item | Signal:
        while True:
            idle = self._fill()
            ready = self._ready()
            if ready is None:
                return Signal.PENDING if self._calls else idle
            self._calls.remove(ready)
            call, actor, origin = ready
            self._load[actor] -= 1
            reply = call.reply
            assert isinstance(reply, Reply)
            self._more = reply.more
            if reply.status is Status.ITEM:
                return Item(handle=call.item, origin=origin)

    def _fill(self) -> Signal:
        """Submit what may be submitted; the signal says why nothing more could be."""
        while len(self._calls) < self._max_in_flight:
            if self._more:
                self._more = False
                self._submit(0, None, Host.more)
                continue
            if not self._input_ended:
                found = self._upstream.poll()  # the program in the actor counts what its steps take
                if isinstance(found, Item):
                    self._feed(found)
                    continue
                if found is not Signal.DONE:
                    return found
                self._input_ended = True
            if self._told_end:
                return Signal.DONE
            self._told_end = True
            self._submit(0, None, Host.finish)
        return Signal.PENDING

    def _feed(self, item: Item) -> None:
        least = min(range(len(self._load)), key=self._load.__getitem__)
        if item.parts is None:
            self._submit(least, item.origin, Host.feed, item.argument)
        else:
            self._submit(least, item.origin, Host.feed_list, *(part.argument for part in item.parts))

    def _submit(
        self, actor: int, origin: Origin | None, method: Callable[..., Answer], *args: object
    ) -> None:
        call = self.executor.submit(
            self.node, self._actors[actor], method, self._keys[actor], *args, program=self._program
        )
        self._load[actor] += 1
        self._calls.append((call, actor, origin))

    def _ready(self) -> tuple[Call, int, Origin | None] | None:
        if not self._calls:
            return None
        if self._ordered:
            return self._calls[0] if self._calls[0][0].reply is not None else None
        done = [entry for entry in self._calls if entry[0].reply is not None]
        return min(done, key=lambda entry: entry[0].finished) if done else None

    @override
    def _count_delivery(self) -> None:
        pass  # the program in the actor counts
