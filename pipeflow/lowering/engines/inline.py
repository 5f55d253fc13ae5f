"""The inline engine: actors are objects of this process and a call runs when somebody waits for it.

No server, no start-up, ordinary tracebacks, and ``breakpoint()`` works in any stage. Calls run one at a time
in the order of submission, so a run is deterministic.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from pipeflow.lowering.engine import Actor, Call, Engine, Handle
from pipeflow.lowering.host import Answer, Host


@dataclass(frozen=True, slots=True)
class _LocalActor:
    name: str
    host: Host


class _LocalHandle(Handle):
    __slots__ = ("value",)

    value: object

    def __init__(self, value: object = None) -> None:
        self.value = value


class InlineEngine(Engine):
    """Everything in this process."""

    @property
    @override
    def name(self) -> str:
        return "inline"

    @override
    def open(self) -> None:
        pass

    @override
    def start(self, name: str, index: int, resources: dict[str, float]) -> Actor:
        return _LocalActor(name, Host(index))

    @override
    def submit(self, actor: Actor, method: Callable[..., Answer], *args: Any) -> Call:
        assert isinstance(actor, _LocalActor)
        return _LocalCall(actor, method, args)

    @override
    def wait(self, calls: Sequence[Call], timeout: float | None) -> Sequence[Call]:
        return (self._run(calls[0]),)

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

    def _run(self, call: Call) -> Call:
        assert isinstance(call, _LocalCall)
        call.run()
        return call


class _LocalCall(Call):
    """A call that runs when it is waited for."""

    __slots__ = ("_args", "_host", "_method", "_result")

    def __init__(self, actor: _LocalActor, method: Callable[..., Answer], args: tuple[Any, ...]) -> None:
        self._result = _LocalHandle()
        super().__init__(actor, self._result)
        self._host, self._method, self._args = actor.host, method, args

    def run(self) -> None:
        values = [arg.value if isinstance(arg, _LocalHandle) else arg for arg in self._args]
        self.reply, self._result.value = self._method(self._host, *values)
