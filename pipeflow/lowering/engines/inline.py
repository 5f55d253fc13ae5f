"""The inline engine: actors are objects of this process and a call runs when somebody waits for it.

No server, no start-up, ordinary tracebacks, and ``breakpoint()`` works in any stage. Calls run one at a time
in the order of submission, so a run is deterministic.
"""

from __future__ import annotations

import copy
import time
from collections import deque
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


_Pending = tuple[Call, _LocalActor, Callable[..., Answer], tuple[Any, ...]]


class InlineEngine(Engine):
    """Everything in this process."""

    def __init__(self) -> None:
        self._pending: deque[_Pending] = deque()

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
        call = Call(actor, _LocalHandle())
        self._pending.append((call, actor, method, args))
        return call

    @override
    def wait(self, calls: Sequence[Call], timeout: float | None) -> Sequence[Call]:
        call = self._run(self._pending.popleft())
        return (call,)

    @override
    def fetch(self, handle: Handle) -> object:
        assert isinstance(handle, _LocalHandle)
        return handle.value

    @override
    def duplicate(self, handle: Handle) -> Handle:
        return _LocalHandle(copy.deepcopy(self.fetch(handle)))

    @override
    def stop(self, actors: Sequence[Actor]) -> None:
        self._pending.clear()
        for actor in actors:
            assert isinstance(actor, _LocalActor)
            actor.host.close()

    @override
    def close(self) -> None:
        self._pending.clear()

    @override
    def now(self) -> float:
        return time.perf_counter()

    def _run(self, pending: _Pending) -> Call:
        call, actor, method, args = pending
        values = [self.fetch(arg) if isinstance(arg, Handle) else arg for arg in args]
        reply, item = method(actor.host, *values)
        assert isinstance(call.item, _LocalHandle)
        call.item.value = item
        call.reply = reply
        return call
