"""The inline engine: actors are objects of this process and a call runs when somebody waits for it.

No server, no start-up, ordinary tracebacks, and ``breakpoint()`` works in any stage. Calls run one at a time
in the order of submission, so a run is deterministic. No call can be interrupted: one that breaks a time limit is
found out when it returns.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from pipeflow.dsl.nodes import Function, Group
from pipeflow.lowering.engine import Actor, Call, Engine, Handle, overdue
from pipeflow.lowering.host import Host
from pipeflow.lowering.program import Answer, Failure, Reply, Status


@dataclass(frozen=True, slots=True, eq=False)
class LocalActor:
    """An actor that is an object of this process."""

    name: str
    host: Host
    time_limit: float | None = None


class _LocalHandle(Handle):
    __slots__ = ("lost", "ready", "value")

    def __init__(self, value: object = None, *, ready: bool = True) -> None:
        self.value = value
        self.ready = ready
        self.lost = False


class InlineEngine(Engine):
    """Everything in this process."""

    @property
    @override
    def name(self) -> str:
        return "inline"

    @property
    @override
    def concurrent(self) -> bool:
        return False

    @override
    def open(self) -> None:
        pass

    def __init__(self) -> None:
        self._dead: set[Actor] = set()

    @override
    def start(self, name: str, index: int, group: Group) -> Actor:
        return LocalActor(name, Host(index), group.time_limit)

    @override
    def kill(self, actor: Actor) -> None:
        assert isinstance(actor, LocalActor)
        self._dead.add(actor)
        actor.host.close()  # nothing else frees what it holds; what `close` raises is in an answer nobody reads

    @override
    def submit(self, actor: Actor, method: Callable[..., Answer], *args: Any, apart: bool = False) -> Call:
        assert isinstance(actor, LocalActor)
        return LocalCall(actor, method, args, apart)

    @override
    def submit_together(self, actor: Actor, count: int, apart: bool = False) -> Sequence[Call]:
        return [self.submit(actor, Host.advance, apart=apart) for _ in range(count)]

    @override
    def travels_together(self, actor: Actor, seconds: float) -> bool:
        return False

    @override
    def wait(self, calls: Sequence[Call], timeout: float | None, needed: int = 1) -> Sequence[Call]:
        return (self._run(calls[0]),)

    @override
    def complete(self, calls: Sequence[Call]) -> None:
        for call in calls:
            self._run(call)

    @override
    def hold(self, value: object) -> Handle:
        return _LocalHandle(value)

    @override
    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    @override
    def fetch(self, handle: Handle) -> object:
        assert isinstance(handle, _LocalHandle)
        return handle.value

    @override
    def duplicate(self, handle: Handle) -> Handle:
        return _LocalHandle(copy.deepcopy(self.fetch(handle)))

    @override
    def stop(self, actors: Sequence[Actor]) -> Sequence[Call]:
        closings = [self.submit(actor, Host.close) for actor in actors]
        return [self._run(call) for call in closings]

    @override
    def close(self) -> None:
        pass

    @override
    def now(self) -> float:
        return time.perf_counter()

    # What a checkpoint holds beside the actors' states

    def state(self) -> Mapping[str, object]:
        """What the engine itself decides by."""
        return {}

    def load_state(self, state: Mapping[str, object], actors: Mapping[str, Actor]) -> None:
        """Go on deciding where the engine that gave this state stood; `actors` are by name."""

    def gone(self, name: str) -> Actor:
        """An actor that is dead, of that name."""
        actor = LocalActor(name, Host(0))
        self._dead.add(actor)
        return actor

    def lost(self) -> Handle:
        """A handle on an item that went with its actor."""
        handle = _LocalHandle()
        handle.lost = True
        return handle

    @staticmethod
    def is_lost(handle: Handle) -> bool:
        """Whether an item went with its actor."""
        return isinstance(handle, _LocalHandle) and handle.lost

    def _run(self, call: Call) -> Call:
        assert isinstance(call, LocalCall)
        actor = call.actor
        assert isinstance(actor, LocalActor)
        if actor.time_limit is None and not self._dead:
            call.run()
        elif actor in self._dead:
            call.lose(Status.DIED)
        elif actor.time_limit is None:
            call.run()
        else:
            started = self.now()
            call.run()
            if self.now() - started > actor.time_limit:
                self.kill(actor)
                call.lose(Status.DIED, overdue(actor.time_limit))
        return call


class LocalCall(Call):
    """A call that runs when it is waited for."""

    __slots__ = ("_host", "_result", "apart", "args", "method")

    def __init__(
        self, actor: LocalActor, method: Callable[..., Answer], args: tuple[Any, ...], apart: bool = False
    ) -> None:
        self._result = _LocalHandle(ready=False)
        super().__init__(actor, self._result)
        self._host, self.method, self.args, self.apart = actor.host, method, args, apart

    @property
    def ready(self) -> bool:
        """Whether all items that it is given are there."""
        return all(arg.ready for arg in self.args if isinstance(arg, _LocalHandle))

    @property
    def installs(self) -> bool:
        """Whether it only installs a program."""
        return self.method is Host.install

    def run(self) -> None:
        """Run it; lost where an item that it is given was."""
        if any(arg.lost for arg in self.args if isinstance(arg, _LocalHandle)):
            self.lose(Status.LOST)
            return
        values = [arg.value if isinstance(arg, _LocalHandle) else arg for arg in self.args]
        self.reply, self._result.value = self.method(self._host, *values)
        self._result.ready = True

    def fail(self, raising: Function) -> None:
        """Run a function that raises in its place, in the actor."""
        self.reply, self._result.value = self._host.ask(raising)
        self._result.ready = True

    def lose(self, status: Status, failure: Failure | None = None) -> None:
        """Let it never come back."""
        self._result.ready = self._result.lost = True
        self.reply = Reply(status, failure=failure)
