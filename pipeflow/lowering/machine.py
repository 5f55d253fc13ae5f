"""`Machine`: a program that is installed in an actor, with its states and what is under way in it.

Apart from the host, which holds an actor's programs and answers the driver's calls.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pipeflow.dsl.dispatch import dispatched
from pipeflow.dsl.nodes import Function, Gating
from pipeflow.dsl.signals import Ended, NotReady
from pipeflow.lowering.program import Answer, Failure, Gone, Program, Reply, Status, Tally, done, one_output

# A call of a source's program that completes no item comes back after so many inputs, so that the driver stays
# in control when a filter rejects everything.
_INPUTS_A_CALL = 1_000


class StepFailed(Exception):
    """User code of a step raised: carries what the driver is to be told."""

    def __init__(self, step: int, item: int, error: Exception) -> None:
        super().__init__(step, item, error)
        self._failure = Failure(step, item, error)

    def answer(self, tallies: tuple[Tally, ...] = ()) -> Answer:
        return Reply(Status.FAILED, tallies=tallies, failure=self._failure), Gone()


class Uninstalled:
    """In place of a program that failed to be installed: calls that were under way by then are lost."""

    def __init__(self, program: Program) -> None:
        self.apart, self.together = program.apart, program.together

    def advance(self, *_: object) -> Answer:
        """Nothing can be done."""
        return Reply(Status.LOST), Gone()

    skip = feed = finish = more = advance


class Machine:
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
        self._gates = self._gates_of_states()

    def advance(self, actor: object) -> Answer:
        """Run the source until one item is finished."""
        return self._answer(self._advance, actor)

    def skip(self, actor: object, count: int) -> Answer:
        """Let the source make items that nobody gets."""
        for _ in range(count):
            self._guarded(0, self._steps[0].method, actor)
        self._seen[0] += count
        return done()

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

    def attributes(self) -> Mapping[str, object]:
        """What the next calls depend on, by name."""
        names = ("_seen", "_tallies", "_waiting", "_finishing", "_states")
        return {name: getattr(self, name) for name in names}

    def fill(self, saved: Mapping[str, object]) -> None:
        """Load what `attributes` gave."""
        vars(self).update(saved)
        self._gates = self._gates_of_states()

    def _gates_of_states(self) -> list[tuple[int, Gating]]:
        return [
            (index, self._states[index]) for index, step in enumerate(self._steps) if step.gating is not None
        ]

    def _answer(self, work: Callable[[object], tuple[Status, object]], actor: object) -> Answer:
        """Work for one output."""
        try:
            status, item = work(actor)
        except StepFailed as failed:
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
            raise StepFailed(index, self._seen[index], error) from error

    def _tallied(self) -> tuple[Tally, ...]:
        tallies, self._tallies = tuple(self._tallies), [Tally() for _ in self._tallies]
        return tallies


def _listed(call: Callable[..., Iterable[Any]], *args: object) -> list[Any]:
    """All outputs of an expansion; a generator raises only while it is read."""
    return list(call(*args))
