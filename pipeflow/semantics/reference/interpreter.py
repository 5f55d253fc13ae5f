"""What every node means: a generator that reads its input's.

Apart from the world, which holds what they share and makes no sense of nodes.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.signals import Ended, NotReady, enter_shard, leave_shard
from pipeflow.dsl.trees import walk
from pipeflow.semantics.reference.choices import Choices
from pipeflow.semantics.reference.world import Answers, Item, Signal, StageFailed, World

_END = object()


class Interpreter(World):
    """A world with the meaning of every node."""

    def __init__(self, root: Node, choices: Choices) -> None:
        super().__init__(root, choices)
        self.stopped: set[int] = set()
        self.forks: dict[int, _Fork] = {}
        # How many weights every actor was sent, by its group and index.
        self.sent: Counter[tuple[int, int]] = Counter()

    # Nodes

    def stream(self, node: Node, shard: tuple[nodes.Produce, int] | None = None) -> Answers:
        """The items of a node; of one shard where it is before a gather."""
        match node:
            case nodes.FromItems():
                return self.from_items(node)
            case nodes.Produce():
                assert shard is not None
                return self.produce(node, shard[1])
            case nodes.ParallelUnion(branches=branches):
                assert shard is not None
                return next(self.stream(branch, shard) for branch in branches if shard[0] in walk(branch))
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
                return self.gather_async(node, _shards(self, node))
            case nodes.MaxLag(input=nodes.Gather() as source, wait=wait):
                return self.max_lag(node, self.gather_async(source, _shards(self, source), holds=wait))
            case nodes.Gather():
                return self.gather_sync(node, _shards(self, node))
            case nodes.Send(input=source):
                return self.send(node, self.stream(source))
            case nodes.SyncWeights(input=source):
                return self.sync_weights(node, self.stream(source))
            case nodes.Reply(input=source):
                return self.reply(node, self.stream(source))
            case nodes.Drain(input=source):
                return self.drain(self.stream(source))
            case nodes.Outlet(input=share, index=index):
                if id(share) not in self.forks:
                    self.forks[id(share)] = _Fork(share, self.stream(share.input))
                return self.outlet(self.forks[id(share)], index)
            case nodes.Union(policy="round_robin"):
                return self.round_robin(node, _Branches(self, node))
            case nodes.Union():
                return self.union(node, _Branches(self, node))
            case _:
                message = (
                    f"{node.name} has no meaning in the reference interpreter; it is a {type(node).__name__}"
                )
                raise TypeError(message)

    def stop(self, node: Node) -> None:
        """Start nothing more behind a node; what was started is still delivered (law 13)."""
        self.stopped.add(id(node))
        if isinstance(node, nodes.Outlet):
            fork = self.forks[id(node.input)]
            fork.attached.discard(node.index)
            if not fork.attached:
                self.stop(node.input.input)
        elif not isinstance(node, nodes.Gather):
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
        while not isinstance(made := self.call(node, node.method, self.actors[id(node.group)][index]), Ended):
            yield Signal.NOT_READY if isinstance(made, NotReady) else Item(made)

    def apply(self, node: nodes.Apply, source: Answers) -> Answers:
        for found in source:
            yield self.output(node, node.function, found.delivered) if isinstance(found, Item) else found

    def expand(self, node: nodes.Expand, source: Answers) -> Answers:
        state = self.call(node, node.factory)
        for found in source:
            if not isinstance(found, Item):
                yield found
                continue
            self.moved = True
            outputs = self.call(node, _listed, state.push, found.delivered)
            if not outputs:
                yield Signal.WAIT
            yield from map(Item, outputs)
        yield from map(Item, self.call(node, _listed, state.finish))

    def gate(self, node: nodes.Gate, source: Answers) -> Answers:
        state = self.call(node, node.factory)
        while not state.closed:
            found = next(source, None)
            if found is None:
                return
            if isinstance(found, Item):
                self.moved = True
                admitted = self.call(node, state.admit, found.delivered if node.reads else None)
                yield found if admitted else Signal.WAIT
            else:
                yield found
        self.stop(node.input)

    def place_in_shard(self, node: nodes.Place, source: Answers, actor: object) -> Answers:
        for found in source:
            yield self.output(node, node.method, actor, found.value) if isinstance(found, Item) else found

    def place(self, node: nodes.Place, source: Answers) -> Answers:
        actors = self.actors[id(node.group)]
        load, had = [0] * len(actors), [0] * len(actors)
        flight: list[tuple[Item | StageFailed, int, int]] = []
        while True:
            nothing: Signal | None = Signal.WAIT
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
                if nothing is None:
                    return
                yield nothing
            elif self.waits():
                yield Signal.WAIT
            else:
                made, actor, _ = flight.pop(0 if node.ordered else self.choose(len(flight)))
                load[actor] -= 1
                yield self.taken(made)

    def started(self, node: nodes.Place, index: int, actor: object, item: Item) -> Item | StageFailed:
        try:
            made = self.inside(index, node, self.output, node, node.method, actor, item.value)
        except StageFailed as failed:
            self.fails(failed)
            return failed
        return replace(made, origins=item.origins)

    def taken(self, made: Item | StageFailed) -> Item:
        if isinstance(made, StageFailed):
            raise made
        self.moved = True
        return made

    def gather_sync(self, node: nodes.Gather, shards: list[_Shard]) -> Answers:
        while id(node) not in self.stopped:
            live = [shard for shard in shards if not shard.ended]
            for shard in live:
                shard.start()
            collected: list[object] = []
            for shard in live:
                while not (shard.started or shard.ended or id(node) in self.stopped):
                    yield Signal.NOT_READY
                    if not self.waits():
                        shard.start()
                while shard.started and self.waits():
                    yield Signal.WAIT
                if shard.started:
                    item = self.taken(shard.oldest())
                    collected.append(item.value)
                    if node.mode == "sync":
                        yield item
            if node.mode == "rounds" and collected:
                yield Item(collected)
            if not live:
                return

    def gather_async(self, node: nodes.Gather, shards: list[_Shard], holds: bool = False) -> Answers:
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

    def max_lag(self, node: nodes.MaxLag, source: Answers) -> Answers:
        for found in source:
            yield Signal.WAIT if isinstance(found, Item) and found.lag > node.limit else found

    def send(self, node: nodes.Send, source: Answers) -> Answers:
        for found in source:
            if isinstance(found, Item):
                for index in range(node.group.count):
                    self.message(node, node.group, index, node.method, found.value)
            yield found

    def sync_weights(self, node: nodes.SyncWeights, source: Answers) -> Answers:
        self.broadcast(node)
        items = 0
        for found in source:
            if isinstance(found, Item):
                items += 1
                if items % node.every == 0:
                    self.broadcast(node)
            yield found

    def broadcast(self, node: nodes.SyncWeights) -> None:
        weights = self.message(node, node.learner, 0, node.get)
        for index in range(node.workers.count):
            self.sent[id(node.workers), index] += 1
            self.message(node, node.workers, index, node.set, weights)

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
            yield Signal.DRAINED if isinstance(found, Item) else found

    def outlet(self, fork: _Fork, index: int) -> Answers:
        own = fork.buffers[index]
        while True:
            if own:
                yield own.popleft()
            elif fork.attached and index not in fork.attached:
                return
            elif any(len(fork.buffers[other]) >= fork.node.buffer for other in fork.attached - {index}):
                yield Signal.WAIT
            else:
                found = next(fork.source, None)
                if found is None:
                    return
                if isinstance(found, Item):
                    self.share(fork, found)
                if not own:
                    yield Signal.WAIT if isinstance(found, Item) else found

    def share(self, fork: _Fork, item: Item) -> None:
        self.moved = True
        receivers = fork.attached or set(range(fork.node.outlets))
        if fork.node.predicate is not None:
            receivers = receivers & {0 if self.call(fork.node, fork.node.predicate, item.delivered) else 1}
        for index in receivers:
            fork.buffers[index].append(replace(item, value=copy.deepcopy(item.value)))

    def round_robin(self, node: nodes.Union, branches: _Branches) -> Answers:
        turn = served = passed = 0
        while branches.live:
            turn %= len(branches.live)
            branch = branches.live[turn]
            found = next(branches.streams[branch], None)
            if found is None:
                branches.end(branch)
                served = 0
            elif found is Signal.NOT_READY:
                turn, served, passed = turn + 1, 0, passed + 1
                if passed >= len(branches.live):
                    passed = 0
                    yield found
            elif found is Signal.WAIT:
                yield found
                passed = 0
            else:
                served += 1
                if served >= node.weights[branch]:
                    turn, served = turn + 1, 0
                yield found if isinstance(found, Item) else branches.drained
                passed = 0

    def union(self, node: nodes.Union, branches: _Branches) -> Answers:
        while branches.live:
            asked = list(branches.live)
            answers: set[Signal] = set()
            while asked:
                before, self.moved = self.moved, False
                branch = asked.pop(self.choose(len(asked)))
                found = next(branches.streams[branch], None)
                if isinstance(found, Item):
                    yield found
                    break
                if found is None:
                    branches.end(branch)
                else:
                    answers.add(found)
                # What moved counts; what the others have may not be there yet.
                enough = self.moved and self.choose(2) == 1
                self.moved |= before
                if enough:
                    answers.add(Signal.WAIT)
                    asked.clear()
            else:
                if branches.live:
                    yield Signal.NOT_READY if answers == {Signal.NOT_READY} else branches.drained


class _Shard:
    """One shard of a gather: its program in its actor, and what was started and not yet delivered."""

    def __init__(self, world: Interpreter, node: nodes.Gather, produce: nodes.Produce, index: int) -> None:
        self._world, self._group, self._index = world, produce.group, index
        self._source = world.stream(node.input, (produce, index))
        self._origins = ((produce.group, index),) if node.with_source else ()
        # Each with the number of weights that the actor had been sent.
        self.started: deque[tuple[Item | StageFailed, int]] = deque()
        self.ended = self.not_ready = False

    def start(self) -> bool:
        """Start the next item; false if there is none."""
        token = enter_shard(self._index)
        try:
            found: Item | Signal | StageFailed | None
            found = next((found for found in self._source if found is not Signal.WAIT), None)
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


def _shards(world: Interpreter, node: nodes.Gather) -> list[_Shard]:
    produces = [found for found in walk(node.input) if isinstance(found, nodes.Produce)]
    return [_Shard(world, node, found, index) for found in produces for index in range(found.group.count)]


class _Fork:
    """One stream read by several outlets through bounded buffers (laws 14 and 15)."""

    def __init__(self, node: nodes.Share, source: Answers) -> None:
        self.node, self.source = node, source
        self.buffers: list[deque[Item]] = [deque() for _ in range(node.outlets)]
        self.attached = set(range(node.outlets))


class _Branches:
    """The branches of a union, by number; `live` are those that have not ended, in order."""

    def __init__(self, world: Interpreter, node: nodes.Union) -> None:
        self._world, self._node = world, node
        self.streams = [world.stream(branch) for branch in node.branches]
        self.live = list(range(len(self.streams)))
        # What the union says when a drain in it took an item: only a drained union passes that on as a turn.
        self.drained = Signal.DRAINED if node.drained else Signal.WAIT

    def end(self, branch: int) -> None:
        """A branch has ended; when only drained ones are left, they are stopped (law 13)."""
        self.live.remove(branch)
        self._world.moved = True
        rest = [self._node.branches[index] for index in self.live]
        if not self._node.drained and all(node.drained for node in rest):
            for node in rest:
                self._world.stop(node)


def _listed(call: Callable[..., Iterable[object]], *args: object) -> list[object]:
    """All outputs of an expansion; a generator raises only while it is read."""
    return list(call(*args))
