"""The shards of a gather while they run: each asks its actor for one item after the other.

A shard has a source of its own in its actor, or is fed from a stream that is scattered over the actors. One call
returns one finished item, which stays in the actor until it is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.lowering.cursors.cursor import Cursor
from pipeflow.lowering.engine import Actor, Call
from pipeflow.lowering.fusion import ShardProgram
from pipeflow.lowering.host import Host
from pipeflow.lowering.items import Item, Origin, Signal
from pipeflow.lowering.program import Status

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


class Shard(ABC):
    """One shard: its calls in the order of submission, which is the order of its items (law 1)."""

    def __init__(self, executor: Executor, node: nodes.Gather, shard: ShardProgram) -> None:
        self._executor = executor
        self._actors, self._index = executor.running.of(shard.group), shard.index
        self._installed = executor.running.install(node, shard.group, shard.index, shard.program)
        self._origins = (Origin(shard.group, shard.index),) if node.with_source else ()
        self._not_ready_since: int | None = None
        self._asked_in: dict[Call, int] = {}
        self.name = self._actors[shard.index].name
        self.calls: deque[Call] = deque()
        # Seconds that its latest item took to make.
        self._seconds = 0.0
        self._ended = False
        self.asked = 0
        # Whether it was asked for an item that it still has to be fed.
        self.wanted = False
        # Whether it asks a stream that is stopped apart from it, and goes on until that has ended.
        self.fed = False

    @property
    def ended(self) -> bool:
        """Whether it is asked for nothing more: there is nothing, or its actor was given up."""
        return self._ended or self._installed.given_up

    @property
    def waits(self) -> bool:
        """Whether its source said `NotReady` and nothing has moved since."""
        return self._not_ready_since is not None and self._not_ready_since >= self._executor.epoch

    def lags(self) -> list[int]:
        """For every item under way, how many weights the actor was sent since it was asked for it."""
        return [self._executor.versions[self.name] - call.version for call in self.calls]

    @abstractmethod
    def ask(self) -> None:
        """See to it that one more item comes."""
        ...

    def ask_for(self, room: int) -> int:
        """Ask for one item or several of those that there is room for; how many. 0 puts it off."""
        self.ask()
        return 1

    def feed(self) -> None:
        """Let it start on what it was asked for, where it did not yet."""
        return

    def head(self) -> Item | Signal:
        """The shard's next item; PENDING while its call runs, DONE if none comes.

        It has to be asked again after PASS, and after REJECTED, when its call made nothing of what it took.
        """
        nothing = Signal.PASS
        while self.calls:
            reply = self.calls[0].reply
            if reply is None:
                return Signal.PENDING
            call = self.calls.popleft()
            asked_in = self._asked_in.pop(call)
            self._seconds = reply.busy
            match reply.status:
                case Status.ITEM:
                    self._not_ready_since = None
                    lag = self._executor.versions[self.name] - call.version
                    return Item(handle=call.item, origins=self._origins, call=call, lag=lag)
                case Status.ENDED:
                    self._ended = True
                case Status.NOT_READY:
                    self._not_ready_since = asked_in
                case Status.EMPTY:
                    nothing = Signal.REJECTED
                case _:
                    pass
        if self.ended:
            return Signal.DONE
        return Signal.NOT_READY if self.waits else nothing

    @property
    def _actor(self) -> Actor:
        return self._actors[self._index]  # looked up anew, since it may have been restarted

    def _issued(self, call: Call) -> None:
        self._asked_in[call] = self._executor.epoch
        self.calls.append(call)
        self.asked += 1


class SourceShard(Shard):
    """A shard whose items come from a source in its actor."""

    @override
    def ask(self) -> None:
        self._issued(self._executor.advance(self._installed, self._actor))

    @override
    def ask_for(self, room: int) -> int:
        together = 1 if self._installed.named else self._installed.program.together
        if together == 1 or not self._executor.engine.travels_together(self._actor, self._seconds):
            return super().ask_for(room)
        if room < together:
            return 0
        for call in self._executor.advance_together(self._installed, self._actor):
            self._issued(call)
        return together


class FedShard(Shard):
    """A shard whose items come from a scattered stream."""

    def __init__(
        self, executor: Executor, node: nodes.Gather, shard: ShardProgram, scattering: Scattering
    ) -> None:
        super().__init__(executor, node, shard)
        self._scattering = scattering
        self._answer: Signal = Signal.PASS
        self.fed = True

    @override
    def ask(self) -> None:
        self.wanted = True
        self.feed()

    @override
    def feed(self) -> None:
        if not self.wanted:
            return
        found = self._scattering.take(self._index)
        if isinstance(found, Signal):
            self._answer = found
            self._ended = found is Signal.DONE
            self.wanted = not self._ended
            return
        self.wanted = False
        executor, installed, actor = self._executor, self._installed, self._actor
        if found.origins:
            self._issued(
                executor.run(installed, actor, Host.feed, executor.reader.delivered(found), given=found)
            )
        else:
            self._issued(executor.feed(installed, actor, found))

    @override
    def head(self) -> Item | Signal:
        self.feed()
        if self.wanted:
            return self._answer
        found = super().head()
        # What was lost with an actor is not made up for, so that the shards' items of a round belong together.
        return Signal.DONE if found is Signal.PASS else found


class Scattering:
    """A stream that several shards are fed from: item k for shard ``k % count``, or every item for every shard."""

    def __init__(self, executor: Executor, node: nodes.Scatter, upstream: Cursor) -> None:
        self._executor = executor
        self._node = node
        self.upstream = upstream
        self._queues: list[deque[Item]] = [deque() for _ in range(node.group.count)]
        self._turn = 0
        self._meter = executor.meters[executor.number[id(node)]]

    def take(self, index: int) -> Item | Signal:
        """The next item for a shard, or why there is none."""
        queue = self._queues[index]
        if not queue:
            found = self.upstream.poll()
            if isinstance(found, Signal):
                return found
            self._spread(found)
        return queue.popleft() if queue else Signal.PASS

    def _spread(self, item: Item) -> None:
        self._meter.taken += 1
        recorder = self._executor.recorder
        receivers = range(len(self._queues)) if self._node.to_all else (self._turn,)
        for place in receivers:
            self._meter.made += 1
            # What fans out is copied, as at a fork (law 26).
            given = item if place == receivers[0] else self._copied(item)
            self._queues[place].append(given)
            if recorder is not None:
                recorder.shared(self._node, place, item, given)
        self._turn = (self._turn + 1) % len(self._queues)

    def _copied(self, item: Item) -> Item:
        try:
            return self._executor.reader.copied(item)
        except Exception as error:  # it runs code of the item's class
            self._executor.fail(self._node, self._meter.taken - 1, error)


def shards_on(
    executor: Executor,
    node: nodes.Gather,
    programs: Sequence[ShardProgram],
    cursor: Callable[[nodes.Node], Cursor],
) -> tuple[list[Shard], list[Cursor]]:
    """The running shards of a gather, and the cursors of the streams that feed some of them."""
    scatterings: dict[int, Scattering] = {}
    shards: list[Shard] = []
    apart = id(node) not in executor.read_here
    # Half of what may be in flight travels while the other half is made; large items go one by one.
    together = 1 if apart or node.mode != "async" else max(node.num_async // 2, 1)
    for shard in programs:
        program = replace(shard, program=replace(shard.program, apart=apart, together=together))
        if program.scatter is None:
            shards.append(SourceShard(executor, node, program))
            continue
        scattering = scatterings.get(id(program.scatter))
        if scattering is None:
            scattering = Scattering(executor, program.scatter, cursor(program.scatter.input))
            scatterings[id(program.scatter)] = scattering
        shards.append(FedShard(executor, node, program, scattering))
    return shards, [scattering.upstream for scattering in scatterings.values()]
