"""Parts of executors and engines that are broken on purpose; `mutants` says what for, and on which plans."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typing_extensions import override

from pipeflow.dsl import (
    nodes,
)
from pipeflow.dsl.nodes import Node
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.lowering.cursors.cursor import Cursor
from pipeflow.lowering.cursors.driver import ApplyCursor, BatchCursor, MaxLagCursor
from pipeflow.lowering.cursors.gathers import AsyncGatherCursor, SyncGatherCursor
from pipeflow.lowering.cursors.joining import AsyncUnionCursor, RoundRobinCursor
from pipeflow.lowering.cursors.placement import PlaceCursor, _InFlight
from pipeflow.lowering.cursors.shards import Shard
from pipeflow.lowering.cursors.sharing import Sharing
from pipeflow.lowering.engine import Actor, Call, Engine
from pipeflow.lowering.engines.inline import LocalCall
from pipeflow.lowering.engines.sim import Sim
from pipeflow.lowering.executor import Executor
from pipeflow.lowering.fusion import consumer_of
from pipeflow.lowering.host import Host
from pipeflow.lowering.items import Item, Signal
from pipeflow.lowering.program import Answer, Program
from pipeflow.lowering.resuming import resumed

# Order


class LosesItems(AsyncGatherCursor):
    """Every third item of the gather vanishes."""

    _count = 0

    @override
    def _poll(self) -> Item | Signal:
        found = super()._poll()
        if isinstance(found, Item):
            self._count += 1
            if self._count % 3 == 0:
                return super()._poll()
        return found


class SwallowsItems(ApplyCursor):
    """Every third item goes in and nothing comes out."""

    _count = 0

    @override
    def _poll(self) -> Item | Signal:
        found = super()._poll()
        self._count += isinstance(found, Item)
        return Signal.PASS if isinstance(found, Item) and self._count % 3 == 0 else found


def fuses_into_many(place: nodes.Place, number: Mapping[int, int]) -> tuple[Program, Node]:
    """Fuses what stands before a stage into all actors of its group, so that a state is split among them."""
    single = dataclasses.replace(place, group=dataclasses.replace(place.group, count=1))
    return consumer_of(single, {**number, id(single): number[id(place)]})


class DeliversWhatFinishes(PlaceCursor):
    """A stage in order delivers whatever its actors finish first."""

    def __init__(self, executor: Executor, node: nodes.Place, upstream: Cursor, program: Program) -> None:
        super().__init__(executor, node, upstream, program)
        self._ordered = False


class OvertakesForEver(PlaceCursor):
    """A stage out of order keeps its first item back as long as it has another."""

    @override
    def _ready(self) -> _InFlight | None:
        found = super()._ready()
        if found is not None and found is self._calls[0] and not self._input_ended:
            return next(
                (entry for entry in self._calls if entry is not found and entry.call.reply is not None), None
            )
        return found

    @override
    def _fill(self) -> Signal:
        self._max_in_flight = 9
        return super()._fill()


# Barriers


class RoundsAsTheyCome(SyncGatherCursor):
    """A round is delivered in the order in which its shards finish."""

    @override
    def _poll(self) -> Item | Signal:
        ready = [shard for shard in self._round if shard.calls and shard.calls[0].reply is not None]
        if ready:
            self._round.remove(ready[0])
            self._round.appendleft(ready[0])
        return super()._poll()


class RunsFurtherAhead(AsyncGatherCursor):
    """One more item of a shard is started than was said."""

    def __init__(
        self, executor: Executor, node: nodes.Gather, shards: Sequence[Shard], feeding: Sequence[Cursor]
    ) -> None:
        super().__init__(executor, node, shards, feeding)
        self._num_async += 1


class WaitsForTheSlowest(AsyncGatherCursor):
    """Shards are served in turns, so that all wait for the slowest."""

    @override
    def _ready(self) -> list[Shard]:
        waiting = [shard for shard in self._shards if shard.calls]
        slowest = min(waiting, key=lambda shard: shard.asked - len(shard.calls), default=None)
        return [shard for shard in super()._ready() if shard is slowest]


class OvertakesMessages(Sim):
    """A call for an item goes before the messages that were issued right before it."""

    @override
    def submit(self, actor: Actor, method: Callable[..., Answer], *args: Any, apart: bool = False) -> Call:
        call = super().submit(actor, method, *args, apart=apart)
        if method in (Host.advance, Host.advance_by_key):
            queue = self._queues[actor]
            mine, messages = queue.pop(), list[LocalCall]()
            while queue and queue[-1].method is Host.message:
                messages.append(queue.pop())
            queue.extend([mine, *reversed(messages)])
        return call


# Concurrency


class ForgetsItems(AsyncUnionCursor):
    """Every third item of the union vanishes."""

    _count = 0

    @override
    def _poll(self) -> Item | Signal:
        found = super()._poll()
        if isinstance(found, Item):
            self._count += 1
            if self._count % 3 == 0:
                return super()._poll()
        return found


class IgnoresWeights(RoundRobinCursor):
    """Every branch has one item a turn."""

    @override
    def _count_turn(self, branch: Cursor) -> None:
        self._next_turn()


class PrefersTheFirst(AsyncUnionCursor):
    """The first branch is served as long as it has anything."""

    @override
    def _poll(self) -> Item | Signal:
        self._turn = 0
        return super()._poll()


class LeavesDrainsUnfinished(AsyncUnionCursor):
    """Once only drained branches are left, the union ends without them."""

    @override
    def _ended(self, branch: Cursor) -> None:
        if branch in self._live:
            super()._ended(branch)
        if self._stopping:
            self._live.clear()


class NeverFull(Sharing):
    """Buffers grow as they like."""

    @override
    def full(self, index: int) -> int | None:
        return None


class HandsOutTwice(Sharing):
    """Every item of a partition goes to both sides."""

    @override
    def _share(self, item: Item) -> None:
        for index, buffer in enumerate(self.buffers):
            given = item if index == 0 else self.executor.reader.copied(item)
            buffer.append(given)
            if self.executor.recorder is not None:
                self.executor.recorder.shared(self.node, index, item, given)


class HoldsOneMore(Sharing):
    """A buffer takes one more item than was said."""

    @override
    def full(self, index: int) -> int | None:
        others = (other for other in self._attached if other != index)
        return next((other for other in others if len(self.buffers[other]) > self.node.buffer), None)


# Demand


class StartsMore(PlaceCursor):
    """One more item is in the actors than was said."""

    def __init__(self, executor: Executor, node: nodes.Place, upstream: Cursor, program: Program) -> None:
        super().__init__(executor, node, upstream, program)
        self._max_in_flight += 1


class DropsPartialBatches(BatchCursor):
    """A list that is not full at the end is lost."""

    @override
    def _poll(self) -> Item | Signal:
        found = super()._poll()
        short = isinstance(found, Item) and len(found.parts or ()) < self._size
        return Signal.DONE if short else found


# Failure


def no_weights(broadcasts: object, group: object) -> list[object]:
    """A restarted actor begins with the weights that it was built with."""
    return []


def swallows_failure(running: object, actor: object, error: object) -> None:
    """An exception in an actor is as if nothing had come of the call."""


def forgets_a_group(executor: Executor) -> None:
    """The actors of the last group are left running."""
    executor.running.groups = executor.running.groups[:-1]
    _STOP(executor)


_STOP = Executor.stop
_RESUMED = resumed


def forgets_what_is_in_flight(root: Node, engine: Engine, checkpoint: Checkpoint) -> Executor:
    """A resumed run asks its shards anew and never delivers what they had under way."""
    executor = _RESUMED(root, engine, checkpoint)
    for cursor in executor.cursors.values():
        if isinstance(cursor, AsyncGatherCursor):
            cursor._open = list(cursor._shards)
            for shard in cursor._shards:
                shard.calls.clear()
    return executor


# Engines


class DeliversOnFaith(AsyncGatherCursor):
    """An item is delivered before the call that is to make it has come back."""

    @override
    def _poll(self) -> Item | Signal:
        self._ask()
        for shard in self._shards:
            if shard.calls and shard.calls[0].reply is None:
                call = shard.calls.popleft()
                self._open.append(shard)
                return Item(handle=call.item, call=call, lag=0)
        return super()._poll()


# Types, lag and ownership


class AdmitsOlder(MaxLagCursor):
    """Items may be one version older than was said."""

    def __init__(self, executor: Executor, node: nodes.MaxLag, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._limit += 1


class SkipsTheFunction(ApplyCursor):
    """Items go past the stage as they are."""

    def __init__(self, executor: Executor, node: nodes.Apply, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._function = unchanged


def unchanged(item: object) -> object:
    """The item."""
    return item


def not_copied(executor: object, item: Item) -> Item:
    """All consumers of a fork get the one object."""
    return Item(item.value, item.handle, item.parts, item.origins)
