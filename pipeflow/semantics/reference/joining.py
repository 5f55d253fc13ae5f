"""What joins and parts streams: unions by every policy, pairs, forks and partitions.

Apart from the other nodes because here several streams are under way at once.
"""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import replace
from typing import Any

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Node
from pipeflow.semantics.reference.choices import Choices
from pipeflow.semantics.reference.world import Answers, Drained, Found, Item, Signal, World


class Joining(World):
    """A world with the meaning of unions, pairs, forks and partitions."""

    def __init__(self, root: Node, choices: Choices) -> None:
        super().__init__(root, choices)
        self.forks: dict[int, Fork] = {}

    # Joining

    def union(self, node: nodes.Union, branches: Branches) -> Answers:
        """The items of several streams by the policy of the union."""
        match node.policy:
            case "async":
                return self.served_when_ready(branches)
            case "prioritised":
                return self.served_by_priority(branches)
            case "round_robin":
                return self.served_in_turns(node, branches)
            case "by_steps":
                return self.served_by_steps(node, branches)

    def served_when_ready(self, branches: Branches) -> Answers:
        while branches.live:
            asked = list(branches.live)
            answers: list[Found] = []
            while asked:
                before, self.moved = self.moved, False
                branch = asked.pop(self.choose(len(asked)))
                found = branches.next(branch)
                if isinstance(found, Item):
                    yield found
                    break
                answers.append(Signal.PASS if found is None else found)
                # What moved counts; what the others have may not be there yet.
                enough = self.moved and self.choose(2) == 1
                self.moved |= before
                if enough:
                    answers.append(Signal.WAIT)
                    asked.clear()
            else:
                if branches.live:
                    yield branches.answer(answers)

    def served_by_priority(self, branches: Branches) -> Answers:
        while branches.live:
            answers: list[Found] = []
            for branch in list(branches.live):
                found = branches.next(branch)
                if isinstance(found, Item):
                    yield found
                    break
                answers.append(Signal.PASS if found is None else found)
                if found is None or found is Signal.PASS or isinstance(found, Drained):
                    yield branches.answer(answers)
                    break
            else:
                yield branches.answer(answers)

    def served_in_turns(self, node: nodes.Union, branches: Branches) -> Answers:
        turn = served = 0
        passed: list[Found] = []
        while branches.live:
            turn %= len(branches.live)
            branch = branches.live[turn]
            found = branches.next(branch)
            if found is None:
                served = 0
            elif found in _PASSES_TURN:
                turn, served = turn + 1, 0
                passed.append(found)
                if len(passed) >= len(branches.live):
                    yield branches.answer(passed)
                    passed.clear()
            elif isinstance(found, Signal):
                yield found
                passed.clear()
            else:
                served += 1
                if served >= node.weights[branch]:
                    turn, served = turn + 1, 0
                yield found if isinstance(found, Item) else branches.answer([found])
                passed.clear()

    def served_by_steps(self, node: nodes.Union, branches: Branches) -> Answers:
        served = [0.0] * len(node.branches)
        passed: dict[int, Found] = {}
        while branches.live:
            ready = [branch for branch in branches.live if branch not in passed]
            branch = min(ready, key=lambda index: served[index], default=-1)
            found = branches.answer([*passed.values()]) if branch < 0 else branches.next(branch)
            if found is None:
                passed.clear()
                continue
            if found in _PASSES_TURN and branch >= 0:
                passed[branch] = found
                continue
            if not isinstance(found, Signal):
                for item in (found,) if isinstance(found, Item) else found.items:
                    served[branch] += self.call(node, _steps, item.value) / node.weights[branch]
                # Who had nothing is owed nothing.
                least = min(served[index] for index in ready)
                for index in passed:
                    served[index] = max(served[index], least)
            passed.clear()
            yield branches.answer([found]) if isinstance(found, Drained) else found

    def zip(self, node: nodes.Zip, left: Answers, right: Answers) -> Answers:
        held: dict[int, Item] = {}
        while True:
            answers: list[Found] = []
            for side, source in enumerate((left, right)):
                if side not in held:
                    found = next(source, None)
                    self.moved |= found is None or isinstance(found, Item)
                    if found is None:
                        self.stop(node)
                        return
                    if isinstance(found, Item):
                        held[side] = found
                    answers.append(Signal.PASS if isinstance(found, Item) else found)
            if len(held) < 2:
                yield next(said for said in Signal if said in answers)
            else:
                yield Item((held.pop(0).delivered, held.pop(1).delivered))

    # Parting

    def outlet(self, node: nodes.Outlet) -> Answers:
        fork = self.forks[id(node.input)]
        own = fork.buffers[node.index]
        while True:
            if own:
                yield own.popleft()
            elif fork.attached and node.index not in fork.attached:
                return
            elif any(len(fork.buffers[other]) >= node.input.buffer for other in fork.attached - {node.index}):
                yield Signal.WAIT
            else:
                found = next(fork.source, None)
                if found is None:
                    return
                if isinstance(found, Item):
                    self.share(fork, found)
                if not own:
                    yield Signal.PASS if isinstance(found, Item) else found

    def share(self, fork: Fork, item: Item) -> None:
        self.moved = True
        receivers = fork.attached or set(range(fork.node.outlets))
        if fork.node.predicate is not None:
            receivers = receivers & {0 if self.call(fork.node, fork.node.predicate, item.delivered) else 1}
        for index in receivers:
            fork.buffers[index].append(replace(item, value=copy.deepcopy(item.value)))

    def forked(self, node: nodes.Share) -> Fork:
        """The one fork of a node, whose outlets are several."""
        if id(node) not in self.forks:
            self.forks[id(node)] = Fork(node, self.stream(node.input))
        return self.forks[id(node)]


# What a branch says that has nothing for now.
_PASSES_TURN = (Signal.NOT_READY, Signal.REJECTED)


class Fork:
    """One stream read by several outlets through bounded buffers (laws 14 and 15)."""

    def __init__(self, node: nodes.Share, source: Answers) -> None:
        self.node, self.source = node, source
        self.buffers: list[deque[Item]] = [deque() for _ in range(node.outlets)]
        self.attached = set(range(node.outlets))


class Branches:
    """The branches of a union, by number; `live` are those that have not ended, in order."""

    def __init__(self, world: World, node: nodes.Union) -> None:
        self._world, self._node = world, node
        self._streams = [world.stream(branch) for branch in node.branches]
        self.live = list(range(len(self._streams)))

    def next(self, branch: int) -> Found | None:
        """What a branch says; once it has ended and only drained ones are left, those are stopped (law 13)."""
        found = next(self._streams[branch], None)
        if found is None:
            self.live.remove(branch)
            self._world.moved = True
            rest = [self._node.branches[index] for index in self.live]
            if not self._node.drained and all(node.drained for node in rest):
                for node in rest:
                    self._world.stop(node)
        return found

    def answer(self, answers: list[Found]) -> Found:
        """What the union says when its branches said this and had no item."""
        consumed = [found for found in answers if isinstance(found, Drained)]
        if consumed and self._node.drained:
            return Drained(tuple(item for found in consumed for item in found.items))
        if consumed or Signal.PASS in answers:
            return Signal.PASS
        return next(said for said in Signal if said in answers)


# `Any`: what is counted was compared with `HasSteps` where the union was written.
def _steps(item: Any) -> float:
    return float(item.steps)
