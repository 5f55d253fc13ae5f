"""Operators that are broken on purpose; `operator_mutants` says what for, and on which plans.

Apart from `broken`, which has what is wrong with gathers, stages, unions and engines as such.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Collection, Sequence

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.dsl.errors import StageError
from pipeflow.dsl.nodes import Group, Node
from pipeflow.lowering.actors import RunningActors
from pipeflow.lowering.broadcasts import Broadcasts
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.lowering.cursors.cursor import Cursor
from pipeflow.lowering.cursors.driver import GateCursor
from pipeflow.lowering.cursors.gathers import SyncGatherCursor
from pipeflow.lowering.cursors.joining import ByStepsCursor, PrioritisedCursor, RoundRobinCursor, ZipCursor
from pipeflow.lowering.cursors.messages import NotifyCursor
from pipeflow.lowering.cursors.pacing import BufferCursor, PaceCursor
from pipeflow.lowering.cursors.placement import PlaceCursor, _InFlight
from pipeflow.lowering.cursors.shards import FedShard, Scattering
from pipeflow.lowering.engine import Actor, Engine
from pipeflow.lowering.executor import Executor
from pipeflow.lowering.items import Item, Origin, Signal
from pipeflow.lowering.program import Status
from pipeflow.lowering.resuming import resumed

# Pairs and scattered streams


class PairsTwice(ZipCursor):
    """The right side's item is used once more."""

    @override
    def _poll(self) -> Item | Signal:
        found = super()._poll()
        if isinstance(found, Item):
            self._held[1] = self.taken[1]
        return found


class ForgetsThePartner(ZipCursor):
    """What has no partner at the end vanishes."""

    @override
    def _end(self) -> Signal:
        self._held = [None, None]
        return super()._end()


class StopsNeither(ZipCursor):
    """What it reads is not stopped with it."""

    @override
    def _stop(self) -> None:
        pass


class AlwaysTheSame(Scattering):
    """Every item goes to the first actor."""

    @override
    def _spread(self, item: Item) -> None:
        self._turn = 0
        super()._spread(item)


class GoesOnUnfed(SyncGatherCursor):
    """A round goes on without the shards that have not been fed yet."""

    @override
    def _poll(self) -> Item | Signal:
        self._round = deque(shard for shard in self._round if not shard.wanted)
        return super()._poll()


class FeedsAhead(FedShard):
    """The next item is fed while the one before is delivered."""

    @override
    def head(self) -> Item | Signal:
        found = super().head()
        if isinstance(found, Item):
            self.ask()
        return found


class StopsOnlyItself(SyncGatherCursor):
    """What feeds the shards is not stopped with it."""

    @override
    def _stop(self) -> None:
        self._stopped = True


def moves_anything(node: Node) -> bool:
    """Fuses callables into the stage that follows, those too that are given the source."""
    return isinstance(node, nodes.Apply | nodes.Expand)


# Messages


def first_source(executor: Executor, origins: Sequence[Origin]) -> list[Actor]:
    """Only the first of an item's sources."""
    return [executor.running.of(origin.group)[origin.index] for origin in origins[:1]]


class ForgetsWhatIsHeld(PlaceCursor):
    """An item that was made of several has the sources of the last alone."""

    @override
    def _ready(self) -> _InFlight | None:
        self._held = ()
        return super()._ready()


class CarriesTheLost(PlaceCursor):
    """The sources of an item that was lost with an actor are those of the next as well."""

    _lost: tuple[Origin, ...] = ()

    @override
    def _ready(self) -> _InFlight | None:
        found = super()._ready()
        if found is not None and found.call.reply is not None:
            died = found.call.reply.status is Status.DIED
            self._held, self._lost = ((), found.origins) if died else (self._lost, ())
        return found


def weights_to_all(
    broadcasts: Broadcasts,
    node: nodes.SyncWeights | nodes.ReplyWeights,
    group: Group,
    receivers: Sequence[Actor],
) -> None:
    """A reply with weights goes to the whole group."""
    _SEND_WEIGHTS(broadcasts, node, group, broadcasts._executor.running.of(group))


_SEND_WEIGHTS = Broadcasts.send


class NotifiesLater(NotifyCursor):
    """The method is called after one item more than was said."""

    def __init__(self, executor: Executor, node: nodes.Notify, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._notify = dataclasses.replace(node, every=node.every + 1)


# Unions and filters in them


class WaitsForItsFilter(RoundRobinCursor):
    """A branch keeps its turn until its filter lets an item pass."""

    @override
    def _next_turn(self) -> None:
        if self._served >= self._weights[self._live[self._turn]]:
            super()._next_turn()


class RejectsInSilence(GateCursor):
    """Nobody hears that an item was rejected: the filter is asked again at once."""

    def __init__(self, executor: Executor, node: nodes.Gate, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._dropped = Signal.PASS


class CountsItems(ByStepsCursor):
    """Every branch has the same weight."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        self._weights = dict.fromkeys(branches, 1.0)


class RemembersDebts(ByStepsCursor):
    """A branch that was not ready makes up for it afterwards."""

    @override
    def _forgive(self, passed: Collection[Cursor]) -> None:
        pass


class DrainsForFree(ByStepsCursor):
    """What a drained branch consumes does not count."""

    @override
    def _count(self, branch: Cursor, *items: Item) -> None:
        if not branch.node.drained:
            super()._count(branch, *items)


class ServesTheLast(PrioritisedCursor):
    """The last branch comes first."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        self._live.reverse()


# Pacing


class BuffersMore(BufferCursor):
    """One item more is held than was said."""

    def __init__(self, executor: Executor, node: nodes.Buffer, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._size += 1


class BuffersInReverse(BufferCursor):
    """What was taken in last is given out first."""

    @override
    def _poll(self) -> Item | Signal:
        self._items.reverse()
        return super()._poll()


class Impatient(PaceCursor):
    """Half the time is enough."""

    def __init__(self, executor: Executor, node: nodes.Pace, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._seconds /= 2


class DropsForGood(PaceCursor):
    """What comes too soon is dropped, whether it should wait or not."""

    def __init__(self, executor: Executor, node: nodes.Pace, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._drops = True


# Resuming

_RESUMED = resumed


def forgets_buffers(root: Node, engine: Engine, checkpoint: Checkpoint) -> Executor:
    """A resumed run begins with empty buffers."""
    executor = _RESUMED(root, engine, checkpoint)
    for buffer in executor.buffers:
        buffer._items.clear()
    return executor


# Failures


def forgets_kept_weights(broadcasts: Broadcasts, actor: Actor) -> None:
    """What was kept for a busy actor is never sent."""
    broadcasts.kept.pop(actor, None)


def gives_up_the_last(running: RunningActors, actor: Actor, error: StageError) -> None:
    """An actor in which code raised is given up, also where no other is left."""
    place = running._place(actor)
    if place is not None:
        running._executor.engine.kill(actor)
        running._give_up(place[0], actor, error)


def restarts_in_any_case(running: RunningActors, actor: Actor, error: StageError) -> None:
    """An actor in which code raised is started again, whatever its group says."""
    place = running._place(actor)
    if place is not None:
        running._executor.engine.kill(actor)
        running._restart(*place, error)
