"""The Ray engine: a host is a Ray actor, an item an object in Ray's store, on this machine or on a cluster.

With `ray_connection` and `ray_metrics` the only module that imports Ray. An item that the driver reads comes with
the reply, as one object. Every other is an object of its own, which stays where it was made until somebody who
needs it fetches it.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import ray
from ray import cloudpickle
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from typing_extensions import override

from pipeflow.dsl.errors import EngineError
from pipeflow.dsl.nodes import Group
from pipeflow.lowering.engine import Actor, Call, Engine, Handle, overdue
from pipeflow.lowering.engines.ray_connection import Connection, RuntimeEnvironment, checked, first_line
from pipeflow.lowering.engines.ray_metrics import Metrics
from pipeflow.lowering.engines.resources import not_up, refuse_impossible, reserved_by
from pipeflow.lowering.engines.watch import Watch
from pipeflow.lowering.host import Host
from pipeflow.lowering.program import Answer, Failure, Reply, Status, Tally
from pipeflow.lowering.stats import RunStats

# Calls that take less than this cost more to make than to run.
_SMALL_SECONDS = 0.0002
# Where several calls are needed, how long to wait for all of them before what else has finished is looked at.
_PATIENCE_SECONDS = 0.05
_STATUSES = {status.value: status for status in Status}
_CLOSE_SECONDS = 5.0


# A process has one, which ends with the last run that uses it.
_CONNECTION = Connection()


class Ray(Engine):
    """Ray actors.

    Args:
        address: of a running cluster (``host:port``, ``ray://host:port``, or ``auto``); None joins the Ray that
            this process has started already, else starts one for the run, which listens on this machine's loopback
            alone, and ends it with the run.
        num_cpus: cores to tell a Ray that is started here; None takes the machine's.
        start_limit: seconds that an actor may take to come up before the run ends with an `EngineError` which says
            what it wants and what the cluster has. Allow for the minutes that a cluster takes to grow. A Ray that
            was started here does not grow: what it cannot have is refused at once.
        runtime_env: what the workers need that their nodes lack, as Ray's runtime environment: ``working_dir`` or
            ``py_modules``, which are sent to them, ``env_vars``, ``pip``. None where everything is installed.
        metrics: publish every node's figures as Ray's own metrics, which Ray exports to Prometheus.

    Raises:
        ValueError: `runtime_env` is none.
    """

    def __init__(
        self,
        address: str | None = None,
        num_cpus: int | None = None,
        *,
        start_limit: float = 120.0,
        runtime_env: RuntimeEnvironment | None = None,
        metrics: bool = False,
    ) -> None:
        self._address = address
        self._num_cpus = num_cpus
        self._start_limit = start_limit
        self._runtime_env = None if runtime_env is None else checked(runtime_env)
        self._publishes = metrics
        # Made with the first figures: Ray's metrics are of a process that is connected.
        self._metrics: Metrics | None = None
        self._watch: Watch[ray.ObjectRef[Any]] = Watch(_finished, time.perf_counter)
        # What the actors of the run reserve, by their names.
        self._reserved: dict[str, Mapping[str, float]] = {}
        # Where the groups are placed that say how, an actor in the bundle of its index.
        self._placements: dict[Group, PlacementGroup] = {}
        # Whether what was waited for last had finished already, so that more may have.
        self._late = False

    @property
    @override
    def name(self) -> str:
        return "ray"

    @property
    @override
    def concurrent(self) -> bool:
        return True

    @override
    def open(self) -> None:
        _CONNECTION.open(self._address, self._num_cpus, self._runtime_env)

    @override
    def start(self, name: str, index: int, group: Group) -> Actor:
        resources = reserved_by(group)
        self._reserved[name] = resources
        if resources and _CONNECTION.is_own_ray:
            refuse_impossible(group, self._reserved.values(), ray.cluster_resources())
        custom = {key: value for key, value in resources.items() if key not in ("CPU", "GPU")}
        options: dict[str, Any] = {"resources": custom} if custom else {}
        if "CPU" in resources:
            options["num_cpus"] = resources["CPU"]
        if resources.get("GPU"):
            options["num_gpus"] = resources["GPU"]
        if group.placement is not None:
            options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(
                self._placement(group), placement_group_bundle_index=index
            )
        actor_class = ray.remote(_RemoteHost)
        handle = (actor_class.options(**options) if options else actor_class).remote(index)
        actor = _RemoteActor(name, handle, group.time_limit)
        self._watch.started(actor, handle.__ray_ready__.remote(), group)
        return actor

    @override
    def kill(self, actor: Actor) -> None:
        assert isinstance(actor, _RemoteActor)
        self._watch.ended(actor)
        ray.kill(actor.handle, no_restart=True)

    @override
    def submit(self, actor: Actor, method: Callable[..., Answer], *args: Any, apart: bool = False) -> Call:
        return self._submit(actor, method, *args, apart=apart)

    @override
    def submit_together(self, actor: Actor, count: int, apart: bool = False) -> Sequence[Call]:
        assert not apart  # items that stay apart are too large to be waited for together
        first = self._submit(actor, Host.advance_together)
        more = [_RemoteCall(actor, _RemoteHandle(actor.name), first.answer) for _ in range(count - 1)]
        first.bundle = (first, *more)
        return first.bundle

    @override
    def travels_together(self, actor: Actor, seconds: float) -> bool:
        return seconds < _SMALL_SECONDS

    # `Any`: see the protocol.
    def _submit(
        self, actor: Actor, method: Callable[..., Any], *args: Any, apart: bool = False
    ) -> _RemoteCall:
        assert isinstance(actor, _RemoteActor)
        values = [arg.travelling() if isinstance(arg, _RemoteHandle) else arg for arg in args]
        if apart:
            answer, item = actor.remote_method(method, 2)(*values)
            call = _RemoteCall(actor, _RemoteHandle(actor.name, item), answer)
            call.handle.answer = answer
        else:
            call = _RemoteCall(actor, _RemoteHandle(actor.name), actor.remote_method(method, 1)(*values))
        if args:
            handles = [arg for arg in args if isinstance(arg, _RemoteHandle)]
            call.given = tuple(handle.answer for handle in handles if handle.answer is not None)
        if actor.time_limit is not None:
            given = [arg.ref for arg in args if isinstance(arg, _RemoteHandle) and arg.ref is not None]
            self._watch.called(actor, call.answer, given)
        return call

    @override
    def wait(self, calls: Sequence[Call], timeout: float | None, needed: int = 1) -> Sequence[Call]:
        # Of calls that travel together the first stands for all.
        by_ref: _ByRef = {}
        for call in calls:
            assert isinstance(call, _RemoteCall)
            by_ref.setdefault(call.answer, call)
        late: Sequence[Call] = ()
        if self._watch.active:
            finished, late = self._watched(by_ref, timeout, needed)
        else:
            finished = self._ready(by_ref, timeout, needed)
        try:
            answers = ray.get([call.answer for call in finished])
        except ray.exceptions.RayError:  # of one of them; each is asked which
            return [*_flat([_settled(call) for call in finished]), *late]
        return [
            *_flat([call.answered(answer) for call, answer in zip(finished, answers, strict=True)]),
            *late,
        ]

    def _watched(
        self, by_ref: _ByRef, timeout: float | None, needed: int
    ) -> tuple[list[_RemoteCall], list[Call]]:
        """As `_ready`, and the calls that were ended for taking too long. Fails if an actor does not come up."""
        late: list[Call] = []
        end = math.inf if timeout is None else time.perf_counter() + timeout
        while True:
            left = max(end - time.perf_counter(), 0.0)
            ready = self._ready(by_ref, min(self._watch.rest, left) if left else 0, needed)
            for call in ready:
                self._watch.answered(call.actor, call.answer)
            for actor, ref, limit in self._watch.look():
                if ref in by_ref:
                    self.kill(actor)
                    late += by_ref[ref].unanswered(Reply(Status.DIED, failure=overdue(limit)))
            stuck = self._watch.not_up(self._start_limit)
            if stuck is not None:
                raise self._not_up(*stuck)
            if ready or late or time.perf_counter() >= end:
                return ready, late

    def _ready(self, by_ref: _ByRef, timeout: float | None, needed: int) -> list[_RemoteCall]:
        """Those that are finished, in the order given; it blocks until there is one, or for the timeout."""
        return _with_earlier(by_ref, self._answers(list(by_ref), timeout, needed))

    def _answers(
        self, refs: list[ray.ObjectRef[Any]], timeout: float | None, needed: int
    ) -> list[ray.ObjectRef[Any]]:
        """Those that are here, or at least one of them once it is, or none after the timeout."""
        ready: list[ray.ObjectRef[Any]] = []
        if timeout == 0 or self._late:
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
            if ready or timeout == 0:
                return ready
        if len(refs) == 1 and timeout is None:
            return refs  # reading it waits for it
        asked = time.perf_counter()
        if needed > 1:
            ready, _ = ray.wait(refs, num_returns=min(needed, len(refs)), timeout=_PATIENCE_SECONDS)
        if not ready:
            ready, _ = ray.wait(refs, num_returns=1, timeout=timeout)
        # What did not have to be waited for is seldom alone: the next look is for all.
        self._late = time.perf_counter() - asked < _SMALL_SECONDS
        return ready

    @override
    def complete(self, calls: Sequence[Call]) -> None:
        while waiting := [call for call in calls if call.reply is None]:
            self.wait(waiting, None, len(waiting))

    @override
    def hold(self, value: object) -> Handle:
        return _RemoteHandle("driver", ray.put(value))

    @override
    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    @override
    def fetch(self, handle: Handle) -> object:
        assert isinstance(handle, _RemoteHandle)
        if handle.ref is None:
            return handle.value
        try:
            return ray.get(handle.ref)
        except ray.exceptions.RayError as error:
            raise _unreadable(handle.made_in, error) from error

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
            return _flat([_settled(closings[ref]) for ref in ready])
        finally:  # also after a second Ctrl-C
            for actor in actors:
                self.kill(actor)

    @override
    def close(self) -> None:
        if ray.is_initialized():
            for placement in self._placements.values():
                remove_placement_group(placement)
        self._placements.clear()
        self._reserved.clear()
        _CONNECTION.close()

    @override
    def now(self) -> float:
        return time.perf_counter()

    @property
    @override
    def publishes(self) -> bool:
        return self._publishes

    @override
    def publish(self, stats: RunStats) -> None:
        if ray.is_initialized():
            self._metrics = self._metrics or Metrics()
            self._metrics.publish(stats)

    def _placement(self, group: Group) -> PlacementGroup:
        placement = self._placements.get(group)
        if placement is None:
            place = {key: count for key, count in reserved_by(group).items() if count}
            placement = self._placements[group] = placement_group(
                [place] * group.count, "SPREAD" if group.placement == "spread" else "PACK"
            )
        return placement

    def _not_up(self, actor: Actor, group: Group) -> EngineError:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        return not_up(actor, group, self._start_limit, nodes, ray.available_resources())


class _RemoteHandle(Handle):
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


class _RemoteCall(Call):
    """A call, or the first of a `bundle` of calls that were made as one."""

    __slots__ = ("answer", "bundle", "given", "handle")

    def __init__(self, actor: Actor, handle: _RemoteHandle, answer: ray.ObjectRef[Any]) -> None:
        super().__init__(actor, handle)
        self.answer = answer
        self.handle = handle
        self.bundle: tuple[_RemoteCall, ...] = ()
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


class _RemoteActor:
    """A handle on a Ray actor; its methods are looked up once."""

    def __init__(self, name: str, handle: Any, time_limit: float | None = None) -> None:
        self.name = name
        self.handle = handle
        self.time_limit = time_limit
        self._methods: dict[tuple[str, int], Any] = {}

    # `Any`: Ray's handles on methods have no types.
    def remote_method(self, method: Callable[..., Any], returns: int) -> Any:
        key = method.__name__, returns
        found = self._methods.get(key)
        if found is None:
            found = getattr(self.handle, method.__name__).options(num_returns=returns).remote
            self._methods[key] = found
        return found


class _RemoteHost(Host):
    """A `Host` whose answers can travel.

    A reply is a list of plain values, which Ray need not pickle; the item is its last member where the driver
    reads it, else an object apart. An exception goes as far as it can be pickled, its traceback as text.
    """

    @override
    # `Any`: a list of the engine's own in place of an answer.
    def _inside(self, work: Callable[..., Answer], *args: object, apart: bool = False) -> Any:
        reply, item = _portable(super()._inside(work, *args, apart=apart))
        return (_encoded(reply), item) if reply.apart else [*_encoded(reply), item]


# Outstanding calls by their answers, in the order of submission.
_ByRef: TypeAlias = dict[ray.ObjectRef[Any], _RemoteCall]


def _encoded(reply: Reply) -> list[Any]:
    tallies = [value for tally in reply.tallies for value in (tally.taken, tally.made, tally.busy)]
    return [reply.status.value, reply.more, reply.order, tallies, reply.failure]


def _decoded(answer: list[Any]) -> Reply:
    status, more, order, tallies, failure = answer[:5]
    pairs = tuple(Tally(*tallies[index : index + 3]) for index in range(0, len(tallies), 3))
    return Reply(_STATUSES[status], more=more, tallies=pairs, failure=failure, order=order)


def _settled(call: _RemoteCall) -> Sequence[Call]:
    """Set the reply of one call, which may have come back without one."""
    try:
        answer = ray.get(call.answer)
    except ray.exceptions.RayActorError as error:
        # Raised in a living actor where it was given an item that a dead one was to make.
        if isinstance(error, ray.exceptions.RayTaskError):
            return call.unanswered(Reply(Status.LOST))
        return call.unanswered(Reply(Status.DIED, failure=Failure(-1, -1, error)))
    except ray.exceptions.RaySystemError as error:
        raise _unreadable(call.actor.name, error) from error  # the item that came along
    except ray.exceptions.RayError as error:
        return call.unanswered(_untravelled(error))
    return call.answered(answer)


def _finished(refs: Sequence[ray.ObjectRef[Any]]) -> list[ray.ObjectRef[Any]]:
    """Which are finished, without waiting."""
    return ray.wait(list(refs), num_returns=len(refs), timeout=0)[0] if refs else []


def _with_earlier(by_ref: _ByRef, ready: Sequence[ray.ObjectRef[Any]]) -> list[_RemoteCall]:
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
        found.update(ray.wait(earlier, num_returns=len(earlier), timeout=_PATIENCE_SECONDS)[0])
    return [call for ref, call in by_ref.items() if ref in found]


def _flat(groups: Sequence[Sequence[Call]]) -> Sequence[Call]:
    return [call for group in groups for call in group]


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


def _unreadable(made_in: str, error: ray.exceptions.RayError) -> EngineError:
    return EngineError(f"an item that was made in {made_in} cannot be read here: {first_line(error)}")


def _untravelled(error: ray.exceptions.RayError) -> Reply:
    """The reply to a call whose item or answer could not be pickled, or its argument not be unpickled."""
    cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
    return Reply(Status.FAILED, failure=Failure(-1, -1, cause, str(error)))
