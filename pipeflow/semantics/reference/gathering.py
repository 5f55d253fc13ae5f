"""What gathers mean: the shards of a parallel stream, each with a source of its own or fed from a scattered one.

Apart from the other nodes because shards are run by what gathers them.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import replace

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.signals import enter_shard, leave_shard
from pipeflow.semantics.reference.world import Answers, Found, Item, Shard, Signal, StageFailed, World


class Gathering(World):
    """A world with the meaning of gathers and of what feeds shards."""

    def gather_sync(self, node: nodes.Gather) -> Answers:
        """One item of every live shard, in shard order, then the next round."""
        shards = self._shards(node)
        while live := [shard for shard in shards if shard.goes_on(id(node) in self.stopped)]:
            for shard in live:
                shard.start()
            collected: list[object] = []
            while live:
                first = live[0]
                if first.started and self.waits():
                    yield Signal.WAIT
                elif first.started:
                    item = self.taken(live.pop(0).oldest())
                    collected.append(item.value)
                    if node.mode == "sync":
                        yield item
                elif not first.goes_on(id(node) in self.stopped):
                    live.pop(0)
                else:
                    yield first.answer
                    if not self.waits():
                        first.start()
                for other in live:
                    other.feed()
            if node.mode == "rounds" and collected:
                yield Item(collected)

    def gather_async(self, node: nodes.Gather, holds: bool = False) -> Answers:
        """Whatever is ready; with `holds`, the shards may be asked less than they could be."""
        shards = self._shards(node)
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
            elif id(node) in self.stopped or all(shard.ended for shard in shards):
                return
            else:
                yield Signal.NOT_READY

    def max_lag(self, node: nodes.MaxLag, gather: nodes.Gather) -> Answers:
        """The items of a gather that are not too many weights behind."""
        for found in self.gather_async(gather, holds=node.wait):
            yield Signal.PASS if isinstance(found, Item) and found.lag > node.limit else found

    def scatter(self, node: nodes.Scatter, index: int) -> Answers:
        """What the actor of an index was given of a scattered stream."""
        given = self._scatterings[id(node)].given[index]
        while True:
            yield given.popleft()

    def taken(self, made: Item | StageFailed) -> Item:
        """What an actor made, as the driver delivers it."""
        if isinstance(made, StageFailed):
            raise made
        self.moved = True
        return made

    def _shards(self, node: nodes.Gather) -> list[_Shard]:
        shards: list[_Shard] = []
        for source, index in sources_of(node.input):
            if isinstance(source, nodes.Produce):
                shards.append(_Shard(self, node, (source, index)))
                continue
            if id(source) not in self._scatterings:
                self._scatterings[id(source)] = _Scattering(self, source)
            shards.append(_FedShard(self, node, (source, index), self._scatterings[id(source)]))
        return shards

    @property
    @abstractmethod
    def _scatterings(self) -> dict[int, _Scattering]: ...


def sources_of(node: Node) -> list[Shard]:
    """Where the items of every shard of a parallel node come from, in shard order."""
    match node:
        case nodes.Produce(group=group) | nodes.Scatter(group=group):
            return [(node, index) for index in range(group.count)]
        case nodes.SelectShards(input=source, indices=indices):
            return [sources_of(source)[index] for index in indices]
        case _:
            return [shard for source in node.inputs for shard in sources_of(source)]
