"""The recorder: turns what an executor does into the events of a trace. A run without one records nothing.

Apart from the executor so that what is recorded stands in one place and the loop stays readable.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeflow.dsl.nodes import Node
from pipeflow.lowering.engine import Call
from pipeflow.lowering.items import Item, Signal
from pipeflow.lowering.program import Program, Status
from pipeflow.semantics import events
from pipeflow.semantics.events import Purpose, Trace

if TYPE_CHECKING:
    from pipeflow.lowering.cursors.cursor import Cursor

_OUTCOMES: dict[Status, events.Outcome] = {
    Status.ITEM: "item",
    Status.EMPTY: "nothing",
    Status.NOT_READY: "not_ready",
    Status.ENDED: "ended",
    Status.FAILED: "failed",
}


class Recorder:
    """Writes the events of one run into a trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._calls = self._items = self._installed = 0
        # By actor, for one program may be installed in several; found by identity, for its functions may not hash.
        self._programs: defaultdict[str, list[tuple[Program, int]]] = defaultdict(list)

    def copied(self) -> Recorder:
        """One that goes on from here and leaves this one alone."""
        other = Recorder(Trace(self.trace.plan, list(self.trace.events)))
        other._calls, other._items, other._installed = self._calls, self._items, self._installed
        other._programs.update({actor: list(programs) for actor, programs in self._programs.items()})
        return other

    def reinstalled(self, actor: str, programs: Sequence[Program]) -> None:
        """An actor of a resumed run has the same programs as the one before, as other objects."""
        known = self._programs[actor]
        self._programs[actor] = [
            (program, number) for program, (_, number) in zip(programs, known, strict=True)
        ]

    def record(self, event: events.Event) -> None:
        """Append an event."""
        self.trace.events.append(event)

    def spawned(self, actor: str, restart: bool) -> None:
        """An actor was started."""
        self.record(events.Spawned(actor, restart))

    def given_up(self, actor: str) -> None:
        """An actor that failed is not started again, and its shards end."""
        self.record(events.GivenUp(actor))

    def kept(self, node: Node, actor: str, weights: Item) -> None:
        """Weights for an actor wait with the driver."""
        self.record(events.Kept(self.trace.number[id(node)], actor, self.uid(weights)))

    def installed(self, actor: str, program: Program) -> None:
        """A program was installed in an actor."""
        self._installed += 1
        self._programs[actor].append((program, self._installed))
        self.record(events.Installed(actor, tuple(step.node for step in program.all_steps), self._installed))

    def called(
        self, call: Call, node: Node, purpose: Purpose, given: Item | None, program: Program | None
    ) -> None:
        """A call was issued."""
        number = self._number(call)
        uids = () if given is None else (self.uid(given),)
        index, actor = self.trace.number.get(id(node), -1), call.actor.name
        key = next((number for known, number in self._programs[actor] if known is program), 0)
        self.record(events.Called(number, index, actor, purpose, uids, call.version, key))

    def finished(self, call: Call) -> None:
        """A call came back, or never will."""
        assert call.reply is not None
        number, actor, status = self._number(call), call.actor.name, call.reply.status
        if status in (Status.DIED, Status.LOST):
            self.record(events.Lost(number, actor, status is Status.DIED))
        else:
            self.record(events.Finished(number, actor, call.reply.order, _OUTCOMES[status]))

    def asked(self, cursor: Cursor) -> None:
        """A cursor was asked for its next item."""
        self.record(events.Asked(self.trace.number[id(cursor.node)]))

    def dropped(self, cursor: Cursor, item: Item) -> None:
        """A cursor gave an item up."""
        cursor.taken.clear()
        self.record(events.Dropped(self.trace.number[id(cursor.node)], self.uid(item)))

    def halted(self, cursor: Cursor) -> None:
        """A cursor was told to start nothing more."""
        self.record(events.Halted(self.trace.number[id(cursor.node)]))

    def shared(self, node: Node, outlet: int, item: Item, given: Item) -> None:
        """An outlet was given an item, or a copy of it."""
        copy_of = 0 if given is item else self.uid(item)
        aliased = given is not item and _aliased(item, given)
        self.record(events.Shared(self.trace.number[id(node)], outlet, self.uid(given), copy_of, aliased))

    def counted(self, cursor: Cursor, branch: Cursor, item: Item, steps: float) -> None:
        """A union counted the steps of an item that it took from a branch."""
        number = self.trace.number
        self.record(events.Counted(number[id(cursor.node)], number[id(branch.node)], self.uid(item), steps))

    def timed(self, cursor: Cursor, item: Item, time: float) -> None:
        """A cursor that goes by the clock looked at it for an item."""
        self.record(events.Timed(self.trace.number[id(cursor.node)], self.uid(item), time))

    def polled(self, cursor: Cursor, found: Item | Signal) -> None:
        """A cursor answered."""
        node = self.trace.number[id(cursor.node)]
        if isinstance(found, Item):
            made_from = () if found.uid else tuple(self.uid(item) for item in cursor.taken)
            uid = self.uid(found)
            cursor.taken.clear()
            held = found.handle is None and found.parts is None
            self.record(
                events.Delivered(
                    node,
                    uid,
                    self._calls_of(found),
                    made_from,
                    type(found.value) if held else None,
                    id(found.value) if held else None,
                    found.lag,
                )
            )
        elif found is Signal.DRAINED:
            self.record(events.Drained(node))
        elif found in (Signal.NOT_READY, Signal.REJECTED):
            self.record(events.NothingReady(node))
        elif found is Signal.DONE:
            self.record(events.Ended(node))

    def uid(self, item: Item) -> int:
        """The number of an item, given at first sight."""
        if not item.uid:
            self._items += 1
            item.uid = self._items
        return item.uid

    def _calls_of(self, item: Item) -> tuple[int, ...]:
        if item.parts is not None:
            return tuple(number for part in item.parts for number in self._calls_of(part))
        return () if item.call is None else (self._number(item.call),)

    def _number(self, call: Call) -> int:
        if not call.number:
            self._calls += 1
            call.number = self._calls
        return call.number


def _aliased(item: Item, other: Item) -> bool:
    """Whether two items that the driver holds share an object that can be written to."""
    if item.parts is not None and other.parts is not None:
        return any(_aliased(*pair) for pair in zip(item.parts, other.parts, strict=True))
    if item.handle is not None or other.handle is not None or item.value is not other.value:
        return False
    return copy.deepcopy(item.value) is not item.value
