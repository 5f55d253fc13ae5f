"""The Ray engine: a host is a Ray actor, an item an object in Ray's store, on this machine or on a cluster.

The only module that imports Ray. A host's answer comes as two objects: the small reply, which the driver reads,
and the item, which stays where it was made until somebody who needs it fetches it.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray import cloudpickle
from typing_extensions import override

from pipeflow.dsl.errors import EngineError
from pipeflow.lowering.engine import Actor, Call, Engine, Handle
from pipeflow.lowering.host import Answer, Host
from pipeflow.lowering.program import Failure, Reply, Status

_CLOSE_SECONDS = 5.0
_PROBE_SECONDS = 5.0
# How a connection in HTTP/2 begins, with an empty frame of settings, and the type of frame that answers it.
_HTTP2_SETTINGS = b"\x04"
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00" + _HTTP2_SETTINGS + bytes(5)


@dataclass
class _Connection:
    """The process's connection to Ray, of which there is one: it ends with the last run that uses it."""

    address: str | None = None
    users: int = 0
    ours: bool = False


_CONNECTION = _Connection()


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

    @property
    @override
    def name(self) -> str:
        return "ray"

    @override
    def open(self) -> None:
        if ray.is_initialized():
            self._join()
            return
        try:
            if self._address is not None:
                _check_greeting(self._address)
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
        _CONNECTION.address = self._address
        _CONNECTION.users = 1
        _CONNECTION.ours = True

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
        return self._submit(actor, method, *args)

    # `Any`: see the protocol.
    def _submit(self, actor: Actor, method: Callable[..., Answer], *args: Any) -> _RemoteCall:
        assert isinstance(actor, _RemoteActor)
        values = [arg.ref if isinstance(arg, _RemoteHandle) else arg for arg in args]
        answer, item = actor.remote_method(method)(*values)
        return _RemoteCall(actor, _RemoteHandle(item, actor.name), answer)

    @override
    def wait(self, calls: Sequence[Call], timeout: float | None) -> Sequence[Call]:
        by_ref = {call.answer: call for call in calls if isinstance(call, _RemoteCall)}
        refs = list(by_ref)
        ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        if not ready and timeout != 0:
            ready, _ = ray.wait(refs, num_returns=1, timeout=timeout)
        finished = [by_ref[ref] for ref in ready]
        try:
            replies = ray.get(ready)
        except ray.exceptions.RayError:  # of one of them; each is asked which
            return self._settled(finished)
        for call, reply in zip(finished, replies, strict=True):
            call.reply = reply
        return finished

    def _settled(self, finished: Sequence[_RemoteCall]) -> Sequence[Call]:
        """Set the replies one by one where not every call came back with one."""
        for call in finished:
            try:
                call.reply = ray.get(call.answer)
            except ray.exceptions.RayActorError as error:
                # Raised in a living actor where it was given an item that a dead one was to make.
                if isinstance(error, ray.exceptions.RayTaskError):
                    call.reply = Reply(Status.LOST)
                else:
                    call.reply = Reply(Status.DIED, failure=Failure(-1, -1, error))
            except ray.exceptions.RayError as error:
                call.reply = _untravelled(error)
        return finished

    @override
    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    @override
    def fetch(self, handle: Handle) -> object:
        assert isinstance(handle, _RemoteHandle)
        try:
            return ray.get(handle.ref)
        except ray.exceptions.RayError as error:
            message = f"an item that was made in {handle.made_in} cannot be read here: {_first_line(error)}"
            raise EngineError(message) from error

    @override
    def duplicate(self, handle: Handle) -> Handle:
        return handle  # whoever fetches it gets a copy of its own, its arrays read-only

    @override
    def stop(self, actors: Sequence[Actor]) -> Sequence[Call]:
        if not ray.is_initialized():
            return ()
        try:
            closings = {call.answer: call for call in (self._submit(actor, Host.close) for actor in actors)}
            refs = list(closings)
            ready = ray.wait(refs, num_returns=len(refs), timeout=_CLOSE_SECONDS)[0] if refs else []
            return self._settled([closings[ref] for ref in ready])
        finally:  # also after a second Ctrl-C
            for actor in actors:
                assert isinstance(actor, _RemoteActor)
                ray.kill(actor.handle, no_restart=True)

    @override
    def close(self) -> None:
        _CONNECTION.users -= 1
        if _CONNECTION.ours and _CONNECTION.users <= 0:
            _CONNECTION.ours = False
            ray.shutdown()

    @override
    def now(self) -> float:
        return time.perf_counter()

    def _join(self) -> None:
        """Use the connection that the process has."""
        connected = ray.get_runtime_context().gcs_address
        if self._address not in (None, "auto", "local", connected, _CONNECTION.address):
            message = (
                f"this process is connected to Ray at {connected} already and cannot use the one at "
                f"{self._address} as well; call ray.shutdown() before, or leave the address out"
            )
            raise EngineError(message)
        _CONNECTION.users += 1


class _RemoteHandle(Handle):
    __slots__ = ("made_in", "ref")

    def __init__(self, ref: ray.ObjectRef[Any], made_in: str) -> None:
        self.ref = ref
        self.made_in = made_in


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
    def _inside(self, work: Callable[..., Answer], *args: object) -> Answer:
        return _portable(super()._inside(work, *args))


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


def _untravelled(error: ray.exceptions.RayError) -> Reply:
    """The reply to a call whose item or answer could not be pickled, or its argument not be unpickled."""
    cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
    return Reply(Status.FAILED, failure=Failure(-1, -1, cause, str(error)))


def _check_greeting(address: str) -> None:
    """Raise `OSError` where nobody listens, or not in HTTP/2 as Ray does: Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or os.environ.get("RAY_USE_TLS") == "1":
        return
    with socket.create_connection((host, int(port)), timeout=_PROBE_SECONDS) as probe:
        probe.sendall(_HTTP2_PREFACE)
        answer = probe.recv(9)
    if answer[3:4] != _HTTP2_SETTINGS:
        message = "what listens there is not Ray; its dashboard, for one, has another port"
        raise ConnectionError(message)


def _first_line(error: BaseException) -> str:
    if isinstance(error, ray.exceptions.RayTaskError):  # whose own text begins with Ray's internals
        error = error.cause
    return (str(error).strip() or type(error).__name__).splitlines()[0]
