"""The Ray engine: a host is a Ray actor, an item an object in Ray's store, on this machine or on a cluster.

The only module that imports Ray. A host's answer comes as two objects: the small reply, which the driver reads,
and the item, which stays where it was made until somebody who needs it fetches it.
"""

from __future__ import annotations

import logging
import pickle
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ray
from typing_extensions import override

from pipeflow.dsl.errors import ActorDiedError, EngineError
from pipeflow.lowering.engine import Actor, Call, Engine, Handle
from pipeflow.lowering.host import Answer, Host
from pipeflow.lowering.program import Reply, Status

_CLOSE_SECONDS = 5.0


class Ray(Engine):
    """Ray actors.

    Args:
        address: of a running cluster (``host:port``, ``ray://host:port``, or ``auto``); None joins the Ray that
            this process has started already, else starts one for the run and ends it with the run.
        num_cpus: cores to tell a Ray that is started here; None takes the machine's.
    """

    def __init__(self, address: str | None = None, num_cpus: int | None = None) -> None:
        self._address = address
        self._num_cpus = num_cpus
        self._started_ray = False

    @property
    @override
    def name(self) -> str:
        return "ray"

    @override
    def open(self) -> None:
        if ray.is_initialized():
            return
        try:
            if self._address is not None:
                ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR)
            else:
                ray.init(
                    address="local",
                    num_cpus=self._num_cpus,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
        except (ConnectionError, OSError, RuntimeError, ValueError, AssertionError) as error:
            where = self._address or "this machine"
            message = (
                f"Ray at {where} cannot be reached: {_first_line(error)}; check the address, or leave it out"
            )
            raise EngineError(message) from error
        self._started_ray = True

    @override
    def start(self, name: str, index: int, resources: dict[str, float]) -> Actor:
        custom = {key: value for key, value in resources.items() if key not in ("CPU", "GPU")}
        options: dict[str, Any] = {"resources": custom} if custom else {}
        if "CPU" in resources:
            options["num_cpus"] = resources["CPU"]
        if resources.get("GPU"):
            options["num_gpus"] = resources["GPU"]
        actor_class = ray.remote(_RemoteHost)
        return _RemoteActor(name, (actor_class.options(**options) if options else actor_class).remote(index))

    @override
    def submit(self, actor: Actor, method: Callable[..., Answer], *args: Any) -> Call:
        assert isinstance(actor, _RemoteActor)
        values = [arg.ref if isinstance(arg, _RemoteHandle) else arg for arg in args]
        answer, item = actor.remote_method(method)(*values)
        return _RemoteCall(actor, _RemoteHandle(item), answer)

    @override
    def wait(self, calls: Sequence[Call], timeout: float | None) -> Sequence[Call]:
        by_ref = {call.answer: call for call in calls if isinstance(call, _RemoteCall)}
        refs = list(by_ref)
        ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        if not ready:
            ready, _ = ray.wait(refs, num_returns=1, timeout=timeout)
        finished = [by_ref[ref] for ref in ready]
        try:
            replies: list[Reply] = ray.get(ready)
        except ray.exceptions.RayActorError as error:
            names = ", ".join(sorted({call.actor.name for call in finished}))
            message = f"an actor of the run died (one of {names}): {_first_line(error)}"
            raise ActorDiedError(message) from error
        for call, reply in zip(finished, replies, strict=True):
            call.reply = reply
        return finished

    @override
    def fetch(self, handle: Handle) -> object:
        assert isinstance(handle, _RemoteHandle)
        return ray.get(handle.ref)

    @override
    def duplicate(self, handle: Handle) -> Handle:
        return handle  # whoever fetches it gets a copy of its own, its arrays read-only

    @override
    def stop(self, actors: Sequence[Actor]) -> None:
        if not ray.is_initialized():
            return
        closing = [self.submit(actor, Host.close) for actor in actors]
        refs = [call.answer for call in closing if isinstance(call, _RemoteCall)]
        if refs:
            ray.wait(refs, num_returns=len(refs), timeout=_CLOSE_SECONDS)
        for actor in actors:
            assert isinstance(actor, _RemoteActor)
            ray.kill(actor.handle, no_restart=True)

    @override
    def close(self) -> None:
        if self._started_ray:
            self._started_ray = False
            ray.shutdown()

    @override
    def now(self) -> float:
        return time.perf_counter()


class _RemoteHandle(Handle):
    __slots__ = ("ref",)

    def __init__(self, ref: ray.ObjectRef[Any]) -> None:
        self.ref = ref


class _RemoteCall(Call):
    __slots__ = ("answer",)

    def __init__(self, actor: Actor, item: Handle, answer: ray.ObjectRef[Any]) -> None:
        super().__init__(actor, item)
        self.answer = answer


class _RemoteActor:
    """A handle on a Ray actor; its methods are looked up once."""

    def __init__(self, name: str, handle: Any) -> None:
        self.name = name
        self.handle = handle
        self._methods: dict[str, Any] = {}

    def remote_method(self, method: Callable[..., Answer]) -> Any:
        name = method.__name__
        found = self._methods.get(name)
        if found is None:
            found = self._methods[name] = getattr(self.handle, name).options(num_returns=2).remote
        return found


class _RemoteHost(Host):
    """A `Host` whose failures can travel: the exception as far as it can be pickled, its traceback as text."""

    @override
    def _run(self, key: int, call: Callable[..., Any], *args: object) -> Answer:
        return _portable(super()._run(key, call, *args))

    @override
    def _call(self, method: Callable[..., Any], *args: object, keep: bool) -> Answer:
        return _portable(super()._call(method, *args, keep=keep))

    @override
    def build(self, factory: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        return _portable(super().build(factory, args, kwargs))


def _portable(answer: Answer) -> Answer:
    reply, item = answer
    if reply.status is not Status.FAILED or reply.failure is None:
        return answer
    cause = reply.failure.cause
    trace = "".join(traceback.format_exception(cause))
    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:  # pickling runs the exception class's own code, which may raise anything
        cause = RuntimeError(f"{type(cause).__name__}: {cause}")
    return replace(reply, failure=replace(reply.failure, cause=cause, trace=trace)), item


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
