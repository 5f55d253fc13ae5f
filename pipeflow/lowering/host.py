"""`Host`: the one class that every engine runs as an actor; it holds the user's object and runs programs on it.

User code raises only in here. What it raises comes back as a `Failure` in the reply, so the driver can say
which stage, shard and item it was (law 20), and a `StopIteration` is an error like any other.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pipeflow.dsl.dispatch import dispatched
from pipeflow.dsl.nodes import Function, Gating
from pipeflow.dsl.signals import Ended, NotReady, enter_shard, leave_shard
from pipeflow.lowering.program import Failure, Gone, Program, Reply, Status, Tally, one_output

# A call of a source's program that completes no item comes back after so many inputs, so that the driver stays
# in control when a filter rejects everything.
_INPUTS_A_CALL = 1_000

Answer = tuple[Reply, object]

# The key of the program that was installed first: calls of it need not name it, since an argument costs a call to
# another process a third of its time.
FIRST = 0


class Host:
    """An actor: built by `build`, then given programs and calls, one at a time.

    Every method returns an `Answer`: the reply for the driver and, apart from it, the item.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._actor: Any = None
        self._programs: dict[int, _Machine | _Uninstalled] = {}
        self._calls = 0

    def build(self, factory: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """Make the user's object."""
        return self._inside(self._build, factory, args, kwargs)

    def install(self, key: int, program: Program) -> Answer:
        """Keep a program under a key; its states start afresh."""
        return self._inside(self._install, key, program)

    def skip(self, key: int, count: int) -> Answer:
        """Let a program's source make `count` items that nobody gets: those of before a restart."""
        return self._inside(self._programs[key].skip, self._actor, count)

    # Without a parameter, since Ray then has no arguments to check.
    def advance(self) -> Answer:
        """Run the first program from its source until one item is finished."""
        return self.advance_by_key(FIRST)

    def advance_by_key(self, key: int) -> Answer:
        """Run a program from its source until one item is finished."""
        machine = self._programs[key]
        return self._inside(machine.advance, self._actor, apart=machine.apart)

    def advance_together(self) -> list[Answer]:
        """As many calls of `advance` as the first program says, one after the other."""
        return [self.advance() for _ in range(self._programs[FIRST].together)]

    def feed(self, item: object, key: int = FIRST) -> Answer:
        """Give a program one input and take its first output."""
        machine = self._programs[key]
        return self._inside(machine.feed, self._actor, item, apart=machine.apart)

    def feed_list(self, key: int, *parts: object) -> Answer:
        """Give a program a list as one input, its members passed apart so that each may be a reference."""
        return self.feed(list(parts), key)

    def more(self, key: int = FIRST) -> Answer:
        """Take the next of the outputs that wait."""
        machine = self._programs[key]
        return self._inside(machine.more, self._actor, apart=machine.apart)

    def finish(self, key: int = FIRST) -> Answer:
        """Tell a program that its input has ended and take its first remaining output."""
        machine = self._programs[key]
        return self._inside(machine.finish, self._actor, apart=machine.apart)

    def message(self, method: Function, payload: object) -> Answer:
        """Call a method of the actor with a payload and keep nothing of the result."""
        return self._inside(self._message, method, payload)

    def notify(self, method: Function) -> Answer:
        """Call a method of the actor and keep nothing of the result."""
        return self._inside(self._notify, method)

    def ask(self, method: Function) -> Answer:
        """Call a method of the actor and return its result as the item."""
        return self._inside(self._ask, method)

    def lend(self, method: Function) -> Answer:
        """Call a method of the actor and return its result as an item that stays here, for others to read."""
        return self._inside(self._ask, method, apart=True)

    def close(self) -> Answer:
        """Let the actor close what it holds, where it has a method ``close``."""
        return self._inside(self._close)

    def _inside(self, work: Callable[..., Answer], *args: object, apart: bool = False) -> Answer:
        """Work as this shard; what user code raises becomes a failure, and every answer is numbered."""
        token = enter_shard(self._index)
        try:
            answer = work(*args)
        except _StepFailed as failed:
            answer = failed.answer()
        except Exception as error:
            answer = _StepFailed(-1, -1, error).answer()
        finally:
            leave_shard(token)
        self._calls += 1
        reply = answer[0]
        reply.order, reply.apart = self._calls, apart
        return answer

    def _build(self, factory: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        self._actor = factory(*args, **kwargs)
        return _done()

    def _install(self, key: int, program: Program) -> Answer:
        self._programs[key] = _Uninstalled(program)  # to stay, should making a state raise
        self._programs[key] = _Machine(program, self._actor)
        return _done()

    def _message(self, method: Function, payload: object) -> Answer:
        if isinstance(payload, Gone):
            return Reply(Status.LOST), None
        dispatched(method, self._actor)(self._actor, payload)
        return _done()

    def _notify(self, method: Function) -> Answer:
        dispatched(method, self._actor)(self._actor)
        return _done()

    def _ask(self, method: Function) -> Answer:
        return Reply(Status.ITEM), dispatched(method, self._actor)(self._actor)

    def _close(self) -> Answer:
        closing = getattr(self._actor, "close", None)
        self._programs.clear()
        self._actor = None
        if callable(closing):
            closing()
        return _done()


def _done() -> Answer:
    return Reply(Status.EMPTY), None


class _StepFailed(Exception):
    """User code of a step raised: carries what the driver is to be told."""

    def __init__(self, step: int, item: int, error: Exception) -> None:
        super().__init__(step, item, error)
        self._failure = Failure(step, item, error)

    def answer(self, tallies: tuple[Tally, ...] = ()) -> Answer:
        return Reply(Status.FAILED, tallies=tallies, failure=self._failure), Gone()


class _Uninstalled:
    """In place of a program that failed to be installed: calls that were under way by then are lost."""

    def __init__(self, program: Program) -> None:
        self.apart, self.together = program.apart, program.together

    def advance(self, *_: object) -> Answer:
        """Nothing can be done."""
        return Reply(Status.LOST), Gone()

    skip = feed = finish = more = advance


class _Machine:
    """A program with its states, what is under way in it, and its tallies.

    It does no more than the next output needs, as the stages would on the driver (law 3): where one input makes
    many outputs, each goes through the steps that follow when it is asked for.
    """

    def __init__(self, program: Program, actor: object) -> None:
        self.apart, self.together = program.apart, program.together
        self._steps = [
            step if step.method is None else replace(step, method=dispatched(step.method, actor))
            for step in program.all_steps
        ]
        self._first = 0 if program.source is None else 1
        self._seen = [0] * len(self._steps)
        self._tallies = [Tally() for _ in self._steps]
        # What is under way, each with the step that it comes to next; the first output is made of the first.
        self._waiting: deque[tuple[int, object]] = deque()
        # Once the input has ended, the next step to give what it holds.
        self._finishing: int | None = None
        self._states = [self._state(index) for index in range(len(self._steps))]
        self._gates: list[tuple[int, Gating]] = [
            (index, self._states[index]) for index, step in enumerate(self._steps) if step.gating is not None
        ]

    def advance(self, actor: object) -> Answer:
        """Run the source until one item is finished."""
        return self._answer(self._advance, actor)

    def skip(self, actor: object, count: int) -> Answer:
        """Let the source make items that nobody gets."""
        for _ in range(count):
            self._guarded(0, self._steps[0].method, actor)
        self._seen[0] += count
        return _done()

    def feed(self, actor: object, item: object) -> Answer:
        """Take one input in."""
        self._waiting.append((self._first, item))
        return self._answer(self._output, actor)

    def finish(self, actor: object) -> Answer:
        """The input has ended."""
        self._finishing = 0
        return self._answer(self._output, actor)

    def more(self, actor: object) -> Answer:
        """The next output of what is under way."""
        return self._answer(self._output, actor)

    def _answer(self, work: Callable[[object], tuple[Status, object]], actor: object) -> Answer:
        """Work for one output."""
        try:
            status, item = work(actor)
        except _StepFailed as failed:
            return failed.answer(self._tallied())
        return Reply(status, more=bool(self._waiting) or self._holding, tallies=self._tallied()), item

    def _advance(self, actor: object) -> tuple[Status, object]:
        source, tally = self._steps[0], self._tallies[0]
        for _ in range(_INPUTS_A_CALL):
            if self._waiting or self._finishing is not None:
                status, output = self._output(actor)
                if status is not Status.EMPTY:
                    return status, output
            if self._gates and self._cut() > 0:
                self._finishing = 0
                continue
            started = time.perf_counter()
            item = self._guarded(0, source.method, actor)
            tally.busy += time.perf_counter() - started
            if isinstance(item, NotReady):
                return Status.NOT_READY, None
            if isinstance(item, Ended):
                self._finishing = 0
                continue
            self._seen[0] += 1
            tally.made += 1
            self._waiting.append((1, item))
        return self._output(actor)

    def _output(self, actor: object) -> tuple[Status, object]:
        """The next output of what is under way and, once the input has ended, of what the steps hold."""
        while True:
            while self._waiting:
                index, item = self._waiting.popleft()
                if index == len(self._steps):
                    return Status.ITEM, item
                if not self._gates or index > self._cut():
                    self._step(actor, index, item)
            if self._finishing is None:
                return Status.EMPTY, None
            if self._finishing == len(self._steps):
                return Status.ENDED, None
            self._finish_step(self._finishing)
            self._finishing += 1

    def _step(self, actor: object, index: int, item: Any) -> None:
        """Send an item through one step; what comes out waits, before all else."""
        step, state, tally = self._steps[index], self._states[index], self._tallies[index]
        tally.taken += 1
        started = time.perf_counter()
        if step.expansion is not None:
            outputs = self._guarded(index, _listed, state.push, item)
        elif step.gating is not None:
            outputs = [item] if self._guarded(index, state.admit, item) else []
        elif step.method is not None:
            outputs = [self._guarded(index, one_output, step.method, actor, item)]
        else:
            outputs = [self._guarded(index, one_output, step.function, item)]
        tally.busy += time.perf_counter() - started
        tally.made += len(outputs)
        self._seen[index] += 1
        self._waiting.extendleft((index + 1, output) for output in reversed(outputs))

    def _finish_step(self, index: int) -> None:
        """Let an expansion give what it holds."""
        if self._steps[index].expansion is not None and index >= self._cut():
            outputs = self._guarded(index, _listed, self._states[index].finish)
            self._tallies[index].made += len(outputs)
            self._waiting.extend((index + 1, output) for output in outputs)

    @property
    def _holding(self) -> bool:
        """Whether the input has ended and a step has yet to give what it holds."""
        return self._finishing is not None and any(
            step.expansion is not None for step in self._steps[self._finishing :]
        )

    def _cut(self) -> int:
        """The last step whose gate has closed: nothing before it matters any more. 0, the source, if none."""
        return max((index for index, gate in self._gates if gate.closed), default=0)

    def _state(self, index: int) -> Any:
        """The state that a step keeps between items, or None; it is made in the place that uses it."""
        factory = self._steps[index].expansion or self._steps[index].gating
        return None if factory is None else self._guarded(index, factory)

    def _guarded(self, index: int, call: Function | None, *args: object) -> Any:
        assert call is not None
        try:
            return call(*args)
        except Exception as error:
            raise _StepFailed(index, self._seen[index], error) from error

    def _tallied(self) -> tuple[Tally, ...]:
        tallies, self._tallies = tuple(self._tallies), [Tally() for _ in self._tallies]
        return tallies


def _listed(call: Callable[..., Iterable[Any]], *args: object) -> list[Any]:
    """All outputs of an expansion; a generator raises only while it is read."""
    return list(call(*args))
