"""What gathers mean: the shards of a parallel stream, each with a source of its own or fed from a scattered one.

Apart from the other nodes because a gather runs what stands before it.
"""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import replace

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.signals import enter_shard, leave_shard
from pipeflow.semantics.reference.choices import Choices
from pipeflow.semantics.reference.world import Answers, Found, Item, Shard, Signal, StageFailed, World


class Gathering(World):
    """A world with the meaning of gathers and of what feeds shards."""

    def __init__(self, root: Node, choices: Choices) -> None:
        super().__init__(root, choices)
        self.scatterings: dict[int, Scattering] = {}

    def gather_sync(self, node: nodes.Gather, shards: list[RunningShard]) -> Answers:
        while live := [shard for shard in shards if shard.goes_on(id(node) in self.stopped)]:
            for shard in live:
                shard.start()
            collected: list[object] = []
            while live:
                first = live[0]
                if (first.started and self.waits()) or (first.ended and self.late()):
                    yield Signal.WAIT
                elif first.started:
                    item = self.taken(live.pop(0).oldest())
                    collected.append(item.value)
                    if node.mode == "sync":
                        yield item
                elif not first.goes_on(id(node) in self.stopped):
                    live.pop(0)
                elif not first.fed and self.late():
                    yield Signal.WAIT
                else:
                    yield first.answer
                    if not first.fed and not self.waits():
                        first.start()
                for shard in live:
                    if shard.fed and not shard.started:
                        shard.start()
            if node.mode == "rounds" and collected:
                yield Item(collected)

    def gather_async(self, node: nodes.Gather, shards: list[RunningShard], holds: bool = False) -> Answers:
        while True:
            for shard in shards:
                while id(node) not in self.stopped and len(shard.started) < node.num_async:
                    if holds and any(shard.started for shard in shards) and self.choose(2) == 1:
                        break  # so that what was started does not get too old
                    # Who was not ready is asked again only after it is known that something moved.
                    if shard.ended or (shard.not_ready and self.waits()) or not shard.start():
                        break
            ready = [shard for shard in shards if shard.started]
            if ready and self.waits():
                yield Signal.WAIT
            elif ready:
                yield self.taken(ready[self.choose(len(ready))].oldest())
            elif self.late():
                yield Signal.WAIT
            elif id(node) in self.stopped or all(shard.ended for shard in shards):
                return
            else:
                yield Signal.NOT_READY

    def max_lag(self, node: nodes.MaxLag, source: Answers) -> Answers:
        for found in source:
            yield Signal.PASS if isinstance(found, Item) and found.lag > node.limit else found

    def scatter(self, node: nodes.Scatter, index: int) -> Answers:
        """What one actor is given of a scattered stream; asked only when it was given something."""
        while True:
            yield self.scatterings[id(node)].given[index].popleft()

    def shards(self, node: nodes.Gather) -> list[RunningShard]:
        """The shards of a gather."""
        found: list[RunningShard] = []
        for source, index in _sources(node.input):
            if isinstance(source, nodes.Scatter):
                if id(source) not in self.scatterings:
                    self.scatterings[id(source)] = Scattering(self, source)
                found.append(FedShard(self, node, (source, index), self.scatterings[id(source)]))
            else:
                found.append(RunningShard(self, node, (source, index)))
        return found

    def taken(self, made: Item | StageFailed) -> Item:
        """What was started, now that it is delivered."""
        if isinstance(made, StageFailed):
            raise made
        self.moved = True
        return made


# A shard goes on by itself after these.
_AGAIN = (Signal.PASS, Signal.REJECTED)


class RunningShard:
    """One shard of a gather: its program in its actor, and what was started and not yet delivered."""

    fed = False

    def __init__(self, world: World, node: nodes.Gather, shard: Shard) -> None:
        self._world, self._group, self._index = world, shard[0].group, shard[1]
        self._source = world.stream(node.input, shard)
        self._origins = ((self._group, self._index),) if node.with_source else ()
        # Each with the number of weights that the actor had been sent.
        self.started: deque[tuple[Item | StageFailed, int]] = deque()
        self.ended = self.not_ready = False
        # What the gather says while nothing was started.
        self.answer: Found = Signal.NOT_READY

    def goes_on(self, stopped: bool) -> bool:
        """Whether more is to be asked of it, where its gather may have been stopped."""
        return not (self.ended or stopped)

    def start(self) -> bool:
        """Start the next item; false if there is none."""
        token = enter_shard(self._index)
        try:
            found: Found | StageFailed | None
            found = next((found for found in self._source if found not in _AGAIN), None)
        except StageFailed as failed:
            self._world.fails(failed)
            found = failed
        finally:
            leave_shard(token)
        self.ended, self.not_ready = found is None, found is Signal.NOT_READY
        self._world.moved |= not self.not_ready
        if isinstance(found, Item | StageFailed):
            self.started.append((found, self._weights))
        return isinstance(found, Item)

    def oldest(self) -> Item | StageFailed:
        """What was started first, to be delivered."""
        found, weights = self.started.popleft()
        if isinstance(found, StageFailed):
            return found
        return replace(found, origins=self._origins, lag=self._weights - weights)

    @property
    def _weights(self) -> int:
        return self._world.sent[id(self._group), self._index]


class FedShard(RunningShard):
    """A shard that is fed from a scattered stream; that is stopped apart from it, and it goes on until the end."""

    fed = True

    def __init__(self, world: World, node: nodes.Gather, shard: Shard, scattering: Scattering) -> None:
        super().__init__(world, node, shard)
        self._scattering = scattering

    @override
    def goes_on(self, stopped: bool) -> bool:
        return not self.ended

    @override
    def start(self) -> bool:
        found = self._scattering.take(self._index)
        if isinstance(found, Item):
            self._scattering.given[self._index].append(found)
            return super().start()
        self.ended, self.answer = found is None, found or Signal.PASS
        return False


class Scattering:
    """A stream that shards are fed from: item k goes to shard ``k % count``, or every item to all (law 2)."""

    def __init__(self, world: World, node: nodes.Scatter) -> None:
        self._world, self._node, self._turn = world, node, 0
        self._source = world.stream(node.input)
        self._waiting: list[deque[Item]] = [deque() for _ in range(node.group.count)]
        self.given: list[deque[Item]] = [deque() for _ in range(node.group.count)]

    def take(self, index: int) -> Found | None:
        """The next item for a shard, or why there is none."""
        waiting = self._waiting[index]
        if not waiting:
            found = next(self._source, None)
            if not isinstance(found, Item):
                return found
            self._world.moved = True
            for receiver in range(len(self._waiting)) if self._node.to_all else [self._turn]:
                self._waiting[receiver].append(Item(copy.deepcopy(found.delivered)))
            self._turn = (self._turn + 1) % len(self._waiting)
        return waiting.popleft() if waiting else Signal.PASS


def _sources(node: Node) -> list[Shard]:
    """Where the items of every shard of a parallel node come from, in shard order."""
    match node:
        case nodes.Produce(group=group) | nodes.Scatter(group=group):
            return [(node, index) for index in range(group.count)]
        case nodes.SelectShards(input=source, indices=indices):
            return [_sources(source)[index] for index in indices]
        case _:
            return [shard for source in node.inputs for shard in _sources(source)]
