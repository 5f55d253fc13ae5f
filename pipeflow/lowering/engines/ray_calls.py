"""What travels between the Ray engine and its actors: calls, replies, and items by reference.

An item that the driver reads comes with the reply, as one object. Every other is an object of its own, which stays
where it was made until somebody who needs it fetches it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import ray
from ray import cloudpickle
from typing_extensions import override

from pipeflow.dsl.errors import EngineError
from pipeflow.lowering.engine import Actor, Call, Handle
from pipeflow.lowering.engines.ray_connection import first_line
from pipeflow.lowering.host import Host
from pipeflow.lowering.program import Answer, Failure, Reply, Status, Tally

# Where several calls are needed, how long to wait for all of them before what else has finished is looked at.
PATIENCE_SECONDS = 0.05
_STATUSES = {status.value: status for status in Status}


class RemoteHandle(Handle):
    """An item by its reference, or, without one, as it came with the reply."""

    __slots__ = ("answer", "made_in", "ref", "value")

    def __init__(self, made_in: str, ref: ray.ObjectRef[Any] | None = None) -> None:
        self.made_in = made_in
        self.ref = ref
        # Of the call that makes it, where it is an object apart.
        self.answer: ray.ObjectRef[Any] | None = None
        self.value: object = None

    def travelling(self) -> object:
        """The item as an argument of a remote call."""
        return self.value if self.ref is None else self.ref


class RemoteCall(Call):
    """A call, or the first of a `bundle` of calls that were made as one."""

    __slots__ = ("answer", "bundle", "given", "handle")

    def __init__(self, actor: Actor, handle: RemoteHandle, answer: ray.ObjectRef[Any]) -> None:
        super().__init__(actor, handle)
        self.answer = answer
        self.handle = handle
        self.bundle: tuple[RemoteCall, ...] = ()
        # The answers of the calls that make the items which it was given.
        self.given: tuple[ray.ObjectRef[Any], ...] = ()

    # `Any`: what a remote host made of its answer.
    def answered(self, answer: list[Any]) -> Sequence[Call]:
        """Set the reply, and the item where it came along."""
        if not self.bundle:
            self._set(answer)
            return (self,)
        for call, own in zip(self.bundle, answer, strict=True):
            call._set(own)
        return self.bundle

    def _set(self, answer: list[Any]) -> None:
        self.reply = _decoded(answer)
        if self.handle.ref is None:
            self.handle.value = answer[-1]

    def unanswered(self, reply: Reply) -> Sequence[Call]:
        """Set the reply to a call that came back without one."""
        calls = self.bundle or (self,)
        for call in calls:
            call.reply = reply
        return calls


class RemoteActor:
    """A handle on a Ray actor; its methods are looked up once."""

    def __init__(self, name: str, handle: Any, time_limit: float | None = None) -> None:
        self.name = name
        self.handle = handle
        self.time_limit = time_limit
        self._methods: dict[tuple[str, int], Any] = {}

    # `Any`: Ray's handles on methods have no types.
    def remote_method(self, method: Callable[..., Any], returns: int) -> Any:
        """What calls the actor's method, which gives so many objects."""
        key = method.__name__, returns
        found = self._methods.get(key)
        if found is None:
            found = getattr(self.handle, method.__name__).options(num_returns=returns).remote
            self._methods[key] = found
        return found


class RemoteHost(Host):
    """A `Host` whose answers can travel.

    A reply is a list of plain values, which Ray need not pickle; the item is its last member where the driver
    reads it, else an object apart. An exception goes as far as it can be pickled, its traceback as text.
    """

    @override
    # `Any`: a list of the engine's own in place of an answer.
    def _inside(self, work: Callable[..., Answer], *args: object, apart: bool = False) -> Any:
        reply, item = _portable(super()._inside(work, *args, apart=apart))
        return (encoded(reply), item) if reply.apart else [*encoded(reply), item]


# Outstanding calls by their answers, in the order of submission.
ByRef: TypeAlias = dict[ray.ObjectRef[Any], RemoteCall]


# `Any`: plain values of several kinds.
def encoded(reply: Reply) -> list[Any]:
    """The reply as plain values."""
    tallies = [value for tally in reply.tallies for value in (tally.taken, tally.made, tally.busy)]
    return [reply.status.value, reply.more, reply.order, tallies, reply.failure]


def _decoded(answer: list[Any]) -> Reply:
    status, more, order, tallies, failure = answer[:5]
    pairs = tuple(Tally(*tallies[index : index + 3]) for index in range(0, len(tallies), 3))
    return Reply(_STATUSES[status], more=more, tallies=pairs, failure=failure, order=order)


def settled(call: RemoteCall) -> Sequence[Call]:
    """Set the reply of one call, which may have come back without one."""
    try:
        answer = ray.get(call.answer)
    except ray.exceptions.RayActorError as error:
        # Raised in a living actor where it was given an item that a dead one was to make.
        if isinstance(error, ray.exceptions.RayTaskError):
            return call.unanswered(Reply(Status.LOST))
        return call.unanswered(Reply(Status.DIED, failure=Failure(-1, -1, error)))
    except ray.exceptions.RaySystemError as error:
        raise unreadable(call.actor.name, error) from error  # the item that came along
    except ray.exceptions.RayError as error:
        return call.unanswered(_untravelled(error))
    return call.answered(answer)


def with_earlier(by_ref: ByRef, ready: Sequence[ray.ObjectRef[Any]]) -> list[RemoteCall]:
    """The calls that are ready, and those that ran before them, whose answers are on their way.

    They are earlier ones of the same actors, and those that made an item which a ready one was given.

    A call that was given what is lost is ready though its actor has not run the calls before it: these come later.
    """
    if len(ready) == len(by_ref):
        return list(by_ref.values())
    found, implied, actors = set(ready), set(ready), set[Actor]()
    # Backwards, since both an actor's earlier calls and those that made an item were made before.
    for ref, call in reversed(by_ref.items()):
        if ref in implied or call.actor in actors:
            actors.add(call.actor)
            implied.update((ref, *call.given))
    earlier = [ref for ref in by_ref if ref in implied and ref not in found]
    if earlier:
        found.update(ray.wait(earlier, num_returns=len(earlier), timeout=PATIENCE_SECONDS)[0])
    return [call for ref, call in by_ref.items() if ref in found]


def _portable(answer: Answer) -> Answer:
    reply, item = answer
    if reply.status is not Status.FAILED or reply.failure is None:
        return answer
    cause = reply.failure.cause
    trace = "".join(traceback.format_exception(cause))
    try:
        cloudpickle.loads(cloudpickle.dumps(cause))
    except Exception:  # pickling runs the exception class's own code, which may raise anything
        cause = RuntimeError(f"{type(cause).__name__}: {cause}")
    return replace(reply, failure=replace(reply.failure, cause=cause, trace=trace)), item


def unreadable(made_in: str, error: ray.exceptions.RayError) -> EngineError:
    """What to raise where an item cannot be unpickled."""
    return EngineError(f"an item that was made in {made_in} cannot be read here: {first_line(error)}")


def _untravelled(error: ray.exceptions.RayError) -> Reply:
    """The reply to a call whose item or answer could not be pickled, or its argument not be unpickled."""
    cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
    return Reply(Status.FAILED, failure=Failure(-1, -1, cause, str(error)))
