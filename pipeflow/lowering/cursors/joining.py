"""Cursors of what joins several streams, unions and pairs, and of the drains in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.lowering.cursors.cursor import Cursor, OneInputCursor
from pipeflow.lowering.items import Item, Signal

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


class DrainCursor(OneInputCursor):
    """Consumes its input and delivers nothing (law 13)."""

    @override
    def _poll(self) -> Item | Signal:
        found = self._pull()
        if isinstance(found, Signal):
            return found
        self._drop(found)
        self.consumed = (found,)
        return Signal.DRAINED


class ZipCursor(Cursor):
    """Pairs; when one side ends the other is stopped, and an item that has no partner is given up."""

    def __init__(self, executor: Executor, node: nodes.Zip, left: Cursor, right: Cursor) -> None:
        super().__init__(executor, node, (left, right))
        self._held: list[Item | None] = [None, None]
        self._ended = False

    @property
    @override
    def queue(self) -> int:
        return sum(item is not None for item in self._held)

    @override
    def _poll(self) -> Item | Signal:
        if self._ended:
            return Signal.DONE
        missing: list[Signal] = []
        moved = False
        for side, cursor in enumerate(self.inputs):
            if self._held[side] is None:
                found = cursor.poll()
                if found is Signal.DONE:
                    return self._end()
                if isinstance(found, Item):
                    self.meter.taken += 1
                    self._held[side] = found
                    moved = True
                else:
                    missing.append(found)
        left, right = self._held
        if left is not None and right is not None:
            self._held = [None, None]
            if self.executor.recorder is not None:
                self.taken = [left, right]
            return Item((self.executor.reader.delivered(left), self.executor.reader.delivered(right)))
        if moved or Signal.PASS in missing:
            return Signal.PASS  # what was taken may have made room for the other side at a fork
        return _nothing_of(missing)

    def _end(self) -> Signal:
        self._ended = True
        self.stop()
        for item in self._held:
            if item is not None and self.executor.recorder is not None:
                self.executor.recorder.dropped(self, item)
        return Signal.DONE


class UnionCursor(Cursor):
    """A union ends when every branch that can deliver has; drained branches are then stopped (law 13)."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        self._weights = dict(zip(branches, node.weights or (1.0,) * len(branches), strict=True))
        self._live = list(branches)
        self._turn = 0
        self._stopping = False

    def _ended(self, branch: Cursor) -> None:
        position = self._live.index(branch)
        self._live.remove(branch)
        if position < self._turn:
            self._turn -= 1
        if self._live:
            self._turn %= len(self._live)
        only_drained = all(cursor.node.drained for cursor in self._live)
        if only_drained and not self.node.drained and not self._stopping:
            self._stopping = True
            for cursor in self._live:
                cursor.stop()

    def _delivered(self, item: Item) -> Item:
        self.meter.taken += 1
        return item

    def _drained(self, branches: Sequence[Cursor]) -> Signal:
        """What the union answers when drained branches of it consumed an item each."""
        self.consumed = tuple(item for branch in branches for item in branch.consumed)
        return Signal.DRAINED if self.node.drained else Signal.PASS


class RoundRobinCursor(UnionCursor):
    """Serves the branches in turns by weight (law 11); a branch that has nothing for now passes its turn."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        self._served = 0

    @override
    def _poll(self) -> Item | Signal:
        passed: list[Signal] = []
        while self._live:
            branch = self._live[self._turn]
            found = branch.poll()
            if isinstance(found, Item):
                self._count_turn(branch)
                return self._delivered(found)
            match found:
                case Signal.DRAINED:
                    self._count_turn(branch)
                    return self._drained((branch,))
                case Signal.DONE:
                    self._served = 0
                    self._ended(branch)
                case Signal.NOT_READY | Signal.REJECTED:
                    self._next_turn()
                    passed.append(found)
                    if len(passed) >= len(self._live):
                        return _nothing_of(passed)
                case _:
                    return found
        return Signal.DONE

    def _count_turn(self, branch: Cursor) -> None:
        self._served += 1
        if self._served >= self._weights[branch]:
            self._next_turn()

    def _next_turn(self) -> None:
        self._served = 0
        self._turn = (self._turn + 1) % len(self._live)


class ByStepsCursor(UnionCursor):
    """Serves the branch that is furthest behind in steps for its weight; one that has nothing is owed nothing."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        # Steps served for each unit of weight.
        self._served = dict.fromkeys(branches, 0.0)

    @override
    def _poll(self) -> Item | Signal:
        passed: dict[Cursor, Signal] = {}
        while len(passed) < len(self._live):
            branch = min((b for b in self._live if b not in passed), key=lambda b: self._served[b])
            found = branch.poll()
            if isinstance(found, Item):
                self._count(branch, found)
                self._forgive(passed)
                return self._delivered(found)
            match found:
                case Signal.DRAINED:
                    self._count(branch, *branch.consumed)
                    self._forgive(passed)
                    return self._drained((branch,))
                case Signal.DONE:
                    self._ended(branch)
                    passed.clear()  # something moved
                case Signal.NOT_READY | Signal.REJECTED:
                    passed[branch] = found
                case _:
                    return found
        return _nothing_of(passed.values()) if self._live else Signal.DONE

    def _count(self, branch: Cursor, *items: Item) -> None:
        for item in items:
            steps = self._called(_steps, self.executor.reader.value(item))
            self._served[branch] += steps / self._weights[branch]
            if self.executor.recorder is not None:
                self.executor.recorder.counted(self, branch, item, steps)

    def _forgive(self, passed: Collection[Cursor]) -> None:
        """A branch that had nothing is now as far as the one that is furthest behind of those that had."""
        behind = min(self._served[branch] for branch in self._live if branch not in passed)
        for branch in passed:
            self._served[branch] = max(self._served[branch], behind)


class PrioritisedCursor(UnionCursor):
    """Serves the first branch that has an item ready (law 12)."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        # Whether it last moved a branch behind one with calls under way. Where that branch never waits, nobody
        # would hear that the calls have finished.
        self._overtook = False

    @override
    def _poll(self) -> Item | Signal:
        if self._overtook:
            self.executor.look()
        answers: set[Signal] = set()
        for branch in list(self._live):
            found = branch.poll()
            self._overtook = Signal.PENDING in answers
            if isinstance(found, Item):
                return self._delivered(found)
            if found is Signal.DRAINED:
                return self._drained((branch,))
            if found is Signal.PASS:
                return found  # something moved; the branch may have an item now
            if found is Signal.DONE:
                self._ended(branch)
                return Signal.PASS if self._live else Signal.DONE
            answers.add(found)
        self._overtook = False
        return _nothing_of(answers) if self._live else Signal.DONE


class AsyncUnionCursor(UnionCursor):
    """Serves whatever branch has an item ready, the one after the last served first (law 12)."""

    def __init__(self, executor: Executor, node: nodes.Union, branches: Sequence[Cursor]) -> None:
        super().__init__(executor, node, branches)
        # How often it moved since the executor last looked what had finished.
        self._moves = 0
        self._looks = 0

    @override
    def _poll(self) -> Item | Signal:
        self._look()
        moved = False
        drained: list[Cursor] = []
        nothing: list[Signal] = []
        first = self._turn
        for branch in [*self._live[first:], *self._live[:first]]:
            found = branch.poll()
            if isinstance(found, Item):
                self._turn = (self._live.index(branch) + 1) % len(self._live)
                self._moves += 1
                return self._delivered(found)
            match found:
                case Signal.DONE:
                    self._ended(branch)
                    moved = True
                case Signal.DRAINED:
                    drained.append(branch)
                case Signal.PASS:
                    moved = True
                case _:
                    nothing.append(found)
        if not self._live:
            return Signal.DONE
        if moved or drained or Signal.REJECTED in nothing:
            self._moves += 1
        if moved or drained:
            return self._drained(drained) if drained else Signal.PASS
        return _nothing_of(nothing)

    def _look(self) -> None:
        """Let the other branches' calls be noticed, where some could be served for ever without a wait."""
        if self._looks != self.executor.looks:
            self._looks, self._moves = self.executor.looks, 0
        elif self._moves >= len(self._live):
            self.executor.look()


def _nothing_of(answers: Collection[Signal]) -> Signal:
    """What is said when the inputs said these, none of which is an item: whether to ask again, or to wait."""
    likely = (Signal.REJECTED, Signal.PENDING)
    return next((found for found in likely if found in answers), Signal.NOT_READY)


# `Any`: what is counted was compared with `HasSteps` where the union was written.
def _steps(item: Any) -> float:
    return float(item.steps)
