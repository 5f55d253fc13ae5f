"""`Host`: the one class that every engine runs as an actor; it holds the user's object and runs programs on it.

User code raises only in here. What it raises comes back as a `Failure` in the reply, so the driver can say
which stage, shard and item it was (law 20), and a `StopIteration` is an error like any other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pipeflow.dsl.dispatch import dispatched
from pipeflow.dsl.nodes import Function
from pipeflow.dsl.signals import enter_shard, leave_shard
from pipeflow.lowering.machine import Machine, StepFailed, Uninstalled
from pipeflow.lowering.program import Answer, Gone, Program, Reply, Status, Tally, done

if TYPE_CHECKING:
    from pipeflow.state.values import StateValue

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
        self._programs: dict[int, Machine | Uninstalled] = {}
        self._calls = 0

    @property
    def built(self) -> bool:
        """Whether the user's object is there."""
        return self._actor is not None

    def build(self, factory: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """Make the user's object; the reply says how many seconds its constructor took."""
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

    def state(self) -> Answer:
        """All that the next calls depend on, under flat names, as an item."""
        answer = self._inside(self._state, apart=True)
        self._calls -= 1  # it changes nothing, and so is no call of the run's
        return answer

    def load_state(self, state: Mapping[str, StateValue]) -> Answer:
        """Go on where the host stood that gave this state; it was built and given the same programs."""
        return self._inside(self._load_state, state)

    def close(self) -> Answer:
        """Let the actor close what it holds, where it has a method ``close``."""
        return self._inside(self._close)

    def _inside(self, work: Callable[..., Answer], *args: object, apart: bool = False) -> Answer:
        """Work as this shard; what user code raises becomes a failure, and every answer is numbered."""
        token = enter_shard(self._index)
        try:
            answer = work(*args)
        except StepFailed as failed:
            answer = failed.answer()
        except Exception as error:
            answer = StepFailed(-1, -1, error).answer()
        finally:
            leave_shard(token)
        self._calls += 1
        reply = answer[0]
        reply.order, reply.apart = self._calls, apart
        return answer

    def _build(self, factory: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        begun = time.perf_counter()
        self._actor = factory(*args, **kwargs)
        return Reply(Status.EMPTY, tallies=(Tally(busy=time.perf_counter() - begun),)), None

    def _install(self, key: int, program: Program) -> Answer:
        self._programs[key] = Uninstalled(program)  # to stay, should making a state raise
        self._programs[key] = Machine(program, self._actor)
        return done()

    def _message(self, method: Function, payload: object) -> Answer:
        if isinstance(payload, Gone):
            return Reply(Status.LOST), None
        dispatched(method, self._actor)(self._actor, payload)
        return done()

    def _notify(self, method: Function) -> Answer:
        dispatched(method, self._actor)(self._actor)
        return done()

    def _ask(self, method: Function) -> Answer:
        return Reply(Status.ITEM), dispatched(method, self._actor)(self._actor)

    def _state(self) -> Answer:
        from pipeflow.lowering.host_state import host_state

        machines = {key: machine for key, machine in self._programs.items() if isinstance(machine, Machine)}
        return Reply(Status.ITEM), host_state(self._actor, machines, self._calls)

    def _load_state(self, state: Mapping[str, StateValue]) -> Answer:
        from pipeflow.lowering.host_state import load_host_state

        machines = {key: machine for key, machine in self._programs.items() if isinstance(machine, Machine)}
        # This call is counted as well, when it is over.
        self._calls = load_host_state(self._actor, machines, state) - 1
        return done()

    def _close(self) -> Answer:
        closing = getattr(self._actor, "close", None)
        self._programs.clear()
        self._actor = None
        if callable(closing):
            closing()
        return done()
