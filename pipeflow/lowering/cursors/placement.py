"""The cursor of a stage that is placed on an actor group, with what was fused into it."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.lowering.cursors.cursor import Cursor, OneInputCursor
from pipeflow.lowering.engine import Call
from pipeflow.lowering.host import Host
from pipeflow.lowering.items import Item, Origin, Signal
from pipeflow.lowering.program import Program, Reply, Status

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


class _InFlight(NamedTuple):
    """A call, the actor that it is with, and where in the input its item stood."""

    call: Call
    actor: int
    position: int
    origins: tuple[Origin, ...]


class PlaceCursor(OneInputCursor):
    """Feeds items to the actors, by reference, and delivers in the order of the input (law 4).

    The next input is pulled only when an output is asked for and fewer than `max_in_flight` items are in the
    actors; with one, a barrier upstream stays exact (law 6). It goes to the actor with the fewest in flight, among
    those to the one that has had the fewest, so that a group which keeps state, such as replay buffers, fills
    evenly.
    """

    def __init__(self, executor: Executor, node: nodes.Place, upstream: Cursor, program: Program) -> None:
        super().__init__(executor, node, upstream)
        program = replace(program, apart=id(node) not in executor.read_here)
        self._actors = executor.running.of(node.group)
        self._programs = [
            executor.running.install(node, node.group, index, program) for index in range(node.group.count)
        ]
        self._load = [0] * len(self._actors)
        self._had = [0] * len(self._actors)
        self._max_in_flight = node.max_in_flight
        # What is held back in an actor comes in its order whatever may overtake whom.
        self._ordered = node.ordered or program.expands
        self._calls: deque[_InFlight] = deque()
        self._more = False
        self._input_ended = False
        self._told_end = not program.expands
        # The sources of what a program that groups items holds back.
        self._held: tuple[Origin, ...] = ()

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
                if not self._calls:
                    return idle
                if idle in (Signal.PASS, Signal.REJECTED):
                    return Signal.PASS
                self.executor.awaits(1)
                return Signal.PENDING
            self._calls.remove(ready)
            self._load[ready.actor] -= 1
            reply = ready.call.reply
            assert isinstance(reply, Reply)
            self._more = reply.more
            origins = tuple(dict.fromkeys([*self._held, *ready.origins]))
            match reply.status:
                case Status.ITEM:
                    self._held = ()
                    return Item(handle=ready.call.item, origins=origins, call=ready.call)
                case Status.EMPTY:
                    self._held = origins
                case Status.DIED | Status.FAILED:
                    self._held = ()  # what it held back is gone with it
                case _:
                    pass

    def _fill(self) -> Signal:
        """Submit what may be submitted; the signal says why nothing more could be."""
        while len(self._calls) < self._max_in_flight:
            if self._more:
                self._more = False
                self._issued(0, self.executor.run(self._programs[0], self._actors[0], Host.more))
                continue
            if not self._input_ended:
                if self._calls and sum(self._had) - self._calls[0].position > self._max_in_flight:
                    return Signal.PENDING  # as many have overtaken the oldest as may
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
            call = self.executor.run(self._programs[0], self._actors[0], Host.finish, purpose="end")
            self._issued(0, call)
        return Signal.PENDING

    def _feed(self, item: Item) -> None:
        least = min(range(len(self._load)), key=lambda actor: (self._load[actor], self._had[actor]))
        self._issued(
            least, self.executor.feed(self._programs[least], self._actors[least], item), item.origins
        )
        self._had[least] += 1

    def _issued(self, actor: int, call: Call, origins: tuple[Origin, ...] = ()) -> None:
        self._load[actor] += 1
        self._calls.append(_InFlight(call, actor, sum(self._had), origins))

    def _ready(self) -> _InFlight | None:
        if not self._calls:
            return None
        if self._ordered:
            return self._calls[0] if self._calls[0].call.reply is not None else None
        done = [entry for entry in self._calls if entry.call.reply is not None]
        return min(done, key=lambda entry: entry.call.finished, default=None)

    @override
    def _count_delivery(self) -> None:
        pass  # the program in the actor counts
