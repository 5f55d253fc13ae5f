"""What every node means: a generator that reads its input's.

Gathers and what joins several streams have files of their own; apart from the world, which holds what all share
and makes no sense of nodes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.dsl.dispatch import dispatched
from pipeflow.dsl.nodes import Group, Node
from pipeflow.dsl.signals import Ended, NotReady
from pipeflow.dsl.trees import walk
from pipeflow.semantics.reference.choices import Choices
from pipeflow.semantics.reference.gathering import Gathering
from pipeflow.semantics.reference.joining import Branches, Joining
from pipeflow.semantics.reference.world import (
    Answers,
    Drained,
    Found,
    Item,
    Origin,
    Shard,
    Signal,
    StageFailed,
)

_END = object()


class Interpreter(Gathering, Joining):
    """A world with the meaning of every node."""

    def __init__(self, root: Node, choices: Choices) -> None:
        super().__init__(root, choices)
        self.buffers: list[_Buffer] = []

    @override
    def stream(self, node: Node, shard: Shard | None = None) -> Answers:
        match node:
            case nodes.FromItems():
                return self.from_items(node)
            case nodes.Produce():
                assert shard is not None
                return self.produce(node, shard[1])
            case nodes.Scatter():
                assert shard is not None
                return self.scatter(node, shard[1])
            case nodes.ParallelUnion(branches=branches):
                assert shard is not None
                return next(self.stream(branch, shard) for branch in branches if shard[0] in walk(branch))
            case nodes.SelectShards(input=source):
                return self.stream(source, shard)
            case nodes.Apply(input=source):
                return self.apply(node, self.stream(source, shard))
            case nodes.Expand(input=source):
                return self.expand(node, self.stream(source, shard))
            case nodes.Gate(input=source):
                return self.gate(node, self.stream(source, shard))
            case nodes.Place(input=source, group=group) if shard is not None:
                return self.place_in_shard(node, self.stream(source, shard), self.actors[id(group)][shard[1]])
            case nodes.Place(input=source):
                return self.place(node, self.stream(source))
            case nodes.Gather(mode="async"):
                return self.gather_async(node, self.shards(node))
            case nodes.Gather():
                return self.gather_sync(node, self.shards(node))
            case nodes.MaxLag(input=nodes.Gather() as source, wait=wait):
                return self.max_lag(node, self.gather_async(source, self.shards(source), holds=wait))
            case nodes.Pace(input=source):
                return self.pace(node, self.stream(source))
            case nodes.Buffer(input=source):
                self.buffers.append(_Buffer(node, self.stream(source)))
                return self.buffer(self.buffers[-1])
            case nodes.Send(input=source):
                return self.send(node, self.stream(source))
            case nodes.Notify(input=source):
                return self.notify(node, self.stream(source))
            case nodes.SyncWeights(input=source):
                return self.sync_weights(node, self.stream(source))
            case nodes.ReplyWeights(input=source):
                return self.reply_weights(node, self.stream(source))
            case nodes.Reply(input=source):
                return self.reply(node, self.stream(source))
            case nodes.Drain(input=source):
                return self.drain(self.stream(source))
            case nodes.Outlet(input=share):
                self.forked(share)
                return self.outlet(node)
            case nodes.Union():
                return self.union(node, Branches(self, node))
            case nodes.Zip(left=left, right=right):
                return self.zip(node, self.stream(left), self.stream(right))
            case _:
                message = (
                    f"{node.name} has no meaning in the reference interpreter; it is a {type(node).__name__}"
                )
                raise TypeError(message)

    @override
    def stop(self, node: Node) -> None:
        self.stopped.add(id(node))
        match node:
            case nodes.Outlet(input=share, index=index):
                fork = self.forks[id(share)]
                fork.attached.discard(index)
                if not fork.attached:
                    self.stop(share.input)
            case _:
                for source in node.inputs:
                    self.stop(source)

    def from_items(self, node: nodes.FromItems) -> Answers:
        iterator = self.call(node, iter, node.items)
        while id(node) not in self.stopped:
            value = self.call(node, next, iterator, _END)
            if value is _END:
                return
            self.moved = True
            yield Item(value)

    def produce(self, node: nodes.Produce, index: int) -> Answers:
        actor = self.actors[id(node.group)][index]
        while not isinstance(made := self.call(node, dispatched(node.method, actor), actor), Ended):
            yield Signal.NOT_READY if isinstance(made, NotReady) else Item(made)

    def apply(self, node: nodes.Apply, source: Answers) -> Answers:
        for found in source:
            yield self.output(node, node.function, found.delivered) if isinstance(found, Item) else found

    def expand(self, node: nodes.Expand, source: Answers) -> Answers:
        state = self.call(node, node.factory)
        # Where what is made of several items comes from.
        origins: dict[Origin, None] = {}
        for found in source:
            if not isinstance(found, Item):
                yield found
                continue
            self.moved = True
            given = found.value if node.keeps_source else found.delivered
            origins |= dict.fromkeys(found.origins if node.keeps_source else ())
            outputs = self.call(node, _listed, state.push, given)
            for output in outputs:
                yield Item(output, tuple(origins))
            if outputs:
                origins = {}
            else:
                yield Signal.PASS
        for output in self.call(node, _listed, state.finish):
            yield Item(output, tuple(origins))

    def gate(self, node: nodes.Gate, source: Answers) -> Answers:
        state = self.call(node, node.factory)
        dropped = Signal.REJECTED if node.passes_turn else Signal.PASS
        while not state.closed:
            found = next(source, None)
            if found is None:
                return
            if isinstance(found, Item):
                self.moved = True
                admitted = self.call(node, state.admit, found.delivered if node.reads else None)
                yield found if admitted else dropped
            else:
                yield found
        self.stop(node.input)

    def place_in_shard(self, node: nodes.Place, source: Answers, actor: object) -> Answers:
        method = dispatched(node.method, actor)
        for found in source:
            yield self.output(node, method, actor, found.value) if isinstance(found, Item) else found

    def place(self, node: nodes.Place, source: Answers) -> Answers:
        actors = self.actors[id(node.group)]
        load, had = [0] * len(actors), [0] * len(actors)
        flight: list[tuple[Item | StageFailed, int, int]] = []
        while True:
            nothing: Found | None = Signal.WAIT
            while len(flight) < node.max_in_flight:
                if flight and not node.ordered and sum(had) - flight[0][2] > node.max_in_flight:
                    break  # as many have overtaken the oldest as may
                try:
                    found = next(source, None)
                except StageFailed as failed:
                    # What is only computed between two actors may run in the second.
                    if not isinstance(failed.node, nodes.Apply | nodes.Expand):
                        raise
                    self.fails(failed)
                    flight.append((failed, 0, sum(had)))
                    break
                if not isinstance(found, Item):
                    nothing = found
                    break
                least = min(range(len(actors)), key=lambda index: (load[index], had[index]))
                made = self.started(node, least, actors[least], found)
                flight.append((made, least, sum(had)))
                load[least] += 1
                had[least] += 1
            if not flight:
                while nothing is None and self.late():
                    yield Signal.WAIT
                if nothing is None:
                    return
                yield Signal.WAIT if nothing is Signal.PASS and self.late() else nothing
            elif self.waits():
                yield Signal.PASS if nothing in (Signal.PASS, Signal.REJECTED) else Signal.WAIT
            else:
                made, actor, _ = flight.pop(0 if node.ordered else self.choose(len(flight)))
                load[actor] -= 1
                yield self.taken(made)

    def started(self, node: nodes.Place, index: int, actor: object, item: Item) -> Item | StageFailed:
        try:
            method = dispatched(node.method, actor)
            made = self.inside(index, node, self.output, node, method, actor, item.value)
        except StageFailed as failed:
            self.fails(failed)
            return failed
        return replace(made, origins=item.origins)

    def send(self, node: nodes.Send, source: Answers) -> Answers:
        for found in source:
            if isinstance(found, Item):
                for index in range(node.group.count):
                    self.message(node, node.group, index, node.method, found.value)
            yield found

    def notify(self, node: nodes.Notify, source: Answers) -> Answers:
        items = 0
        for found in source:
            items += isinstance(found, Item)
            if isinstance(found, Item) and items % node.every == 0:
                for index in range(node.group.count):
                    self.message(node, node.group, index, node.method)
            yield found

    def sync_weights(self, node: nodes.SyncWeights, source: Answers) -> Answers:
        self.send_weights(node, node.workers, range(node.workers.count))
        items = 0
        for found in source:
            if isinstance(found, Item):
                items += 1
                if items % node.every == 0:
                    self.send_weights(node, node.workers, range(node.workers.count))
            yield found

    def reply_weights(self, node: nodes.ReplyWeights, source: Answers) -> Answers:
        for group in dict.fromkeys(nodes.producers_of(node.input)):
            self.send_weights(node, group, range(group.count))
        had: Counter[Origin] = Counter()
        for found in source:
            if isinstance(found, Item):
                had.update(found.origins)
                due = [origin for origin in found.origins if had[origin] % node.every == 0]
                for group in dict.fromkeys(group for group, _ in due):
                    self.send_weights(node, group, [index for owner, index in due if owner is group])
                yield Item(found.value)
            else:
                yield found

    def send_weights(
        self, node: nodes.SyncWeights | nodes.ReplyWeights, group: Group, receivers: Iterable[int]
    ) -> None:
        weights = self.message(node, node.learner, 0, node.get)
        for index in receivers:
            self.sent[id(group), index] += 1
            self.message(node, group, index, node.set, weights)

    def reply(self, node: nodes.Reply, source: Answers) -> Answers:
        for found in source:
            if isinstance(found, Item):
                message = self.call(node, node.message, found.value)
                for origin in found.origins:
                    self.message(node, *origin, node.method, message)
                yield Item(found.value)
            else:
                yield found

    def drain(self, source: Answers) -> Answers:
        for found in source:
            self.moved |= isinstance(found, Item)
            yield Drained((found,)) if isinstance(found, Item) else found

    def pace(self, node: nodes.Pace, source: Answers) -> Answers:
        """Any timing: the first item passes at once, and every other may come too soon."""
        first = True
        for found in source:
            if isinstance(found, Item):
                if not first and node.drops and self.choose(2) == 1:
                    self.moved = True
                    yield Signal.REJECTED
                    continue
                while not first and not node.drops and self.waits():
                    yield Signal.WAIT
                first = False
            yield found

    def buffer(self, ahead: _Buffer) -> Answers:
        while True:
            if ahead.items:
                yield ahead.items.popleft()
            else:
                found = None if ahead.ended else next(ahead.source, None)
                if found is None:
                    return
                yield found

    def run_ahead(self) -> None:
        """While the plan waits, buffers take items in: all of them, where nothing else can move."""
        for ahead in self.buffers:
            idle = not (self.moved or self.waited)
            if not ahead.ended and len(ahead.items) < ahead.size and (idle or self.choose(2) == 1):
                found = next(ahead.source, None)
                ahead.ended = found is None
                if isinstance(found, Item):
                    ahead.items.append(found)
                self.moved |= ahead.ended or isinstance(found, Item)


class _Buffer:
    """What ran ahead of whoever reads it (law 16)."""

    def __init__(self, node: nodes.Buffer, source: Answers) -> None:
        self.size, self.source = node.size, source
        self.items: deque[Item] = deque()
        self.ended = False


def _listed(call: Callable[..., Iterable[object]], *args: object) -> list[object]:
    """All outputs of an expansion; a generator raises only while it is read."""
    return list(call(*args))
