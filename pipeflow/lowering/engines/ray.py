"""The Ray engine: a host is a Ray actor, an item an object in Ray's store, on this machine or on a cluster.

With `ray_calls`, `ray_connection` and `ray_metrics` the only module that imports Ray.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from typing_extensions import override

from pipeflow.dsl.errors import EngineError
from pipeflow.dsl.nodes import Group
from pipeflow.lowering.engine import Actor, Call, Engine, Handle, overdue
from pipeflow.lowering.engines.ray_calls import (
    PATIENCE_SECONDS,
    ByRef,
    RemoteActor,
    RemoteCall,
    RemoteHandle,
    RemoteHost,
    settled,
    unreadable,
    with_earlier,
)
from pipeflow.lowering.engines.ray_connection import Connection, RuntimeEnvironment, checked
from pipeflow.lowering.engines.ray_metrics import Metrics
from pipeflow.lowering.engines.resources import not_up, refuse_impossible, reserved_by
from pipeflow.lowering.engines.watch import Watch
from pipeflow.lowering.host import Host
from pipeflow.lowering.program import Answer, Reply, Status
from pipeflow.lowering.stats import RunStats

# Calls that take less than this cost more to make than to run.
_SMALL_SECONDS = 0.0002
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
        actor_class = ray.remote(RemoteHost)
        handle = (actor_class.options(**options) if options else actor_class).remote(index)
        actor = RemoteActor(name, handle, group.time_limit)
        self._watch.started(actor, handle.__ray_ready__.remote(), group)
        return actor

    @override
    def kill(self, actor: Actor) -> None:
        assert isinstance(actor, RemoteActor)
        self._watch.ended(actor)
        ray.kill(actor.handle, no_restart=True)

    @override
    def submit(self, actor: Actor, method: Callable[..., Answer], *args: Any, apart: bool = False) -> Call:
        return self._submit(actor, method, *args, apart=apart)

    @override
    def submit_together(self, actor: Actor, count: int, apart: bool = False) -> Sequence[Call]:
        assert not apart  # items that stay apart are too large to be waited for together
        first = self._submit(actor, Host.advance_together)
        more = [RemoteCall(actor, RemoteHandle(actor.name), first.answer) for _ in range(count - 1)]
        first.bundle = (first, *more)
        return first.bundle

    @override
    def travels_together(self, actor: Actor, seconds: float) -> bool:
        return seconds < _SMALL_SECONDS

    # `Any`: see the protocol.
    def _submit(
        self, actor: Actor, method: Callable[..., Any], *args: Any, apart: bool = False
    ) -> RemoteCall:
        assert isinstance(actor, RemoteActor)
        values = [arg.travelling() if isinstance(arg, RemoteHandle) else arg for arg in args]
        if apart:
            answer, item = actor.remote_method(method, 2)(*values)
            call = RemoteCall(actor, RemoteHandle(actor.name, item), answer)
            call.handle.answer = answer
        else:
            call = RemoteCall(actor, RemoteHandle(actor.name), actor.remote_method(method, 1)(*values))
        if args:
            handles = [arg for arg in args if isinstance(arg, RemoteHandle)]
            call.given = tuple(handle.answer for handle in handles if handle.answer is not None)
        if actor.time_limit is not None:
            given = [arg.ref for arg in args if isinstance(arg, RemoteHandle) and arg.ref is not None]
            self._watch.called(actor, call.answer, given)
        return call

    @override
    def wait(self, calls: Sequence[Call], timeout: float | None, needed: int = 1) -> Sequence[Call]:
        # Of calls that travel together the first stands for all.
        by_ref: ByRef = {}
        for call in calls:
            assert isinstance(call, RemoteCall)
            by_ref.setdefault(call.answer, call)
        late: Sequence[Call] = ()
        if self._watch.active:
            finished, late = self._watched(by_ref, timeout, needed)
        else:
            finished = self._ready(by_ref, timeout, needed)
        try:
            answers = ray.get([call.answer for call in finished])
        except ray.exceptions.RayError:  # of one of them; each is asked which
            return [*_flat([settled(call) for call in finished]), *late]
        return [
            *_flat([call.answered(answer) for call, answer in zip(finished, answers, strict=True)]),
            *late,
        ]

    def _watched(
        self, by_ref: ByRef, timeout: float | None, needed: int
    ) -> tuple[list[RemoteCall], list[Call]]:
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

    def _ready(self, by_ref: ByRef, timeout: float | None, needed: int) -> list[RemoteCall]:
        """Those that are finished, in the order given; it blocks until there is one, or for the timeout."""
        return with_earlier(by_ref, self._answers(list(by_ref), timeout, needed))

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
            ready, _ = ray.wait(refs, num_returns=min(needed, len(refs)), timeout=PATIENCE_SECONDS)
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
        return RemoteHandle("driver", ray.put(value))

    @override
    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    @override
    def fetch(self, handle: Handle) -> object:
        assert isinstance(handle, RemoteHandle)
        if handle.ref is None:
            return handle.value
        try:
            return ray.get(handle.ref)
        except ray.exceptions.RayError as error:
            raise unreadable(handle.made_in, error) from error

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
            return _flat([settled(closings[ref]) for ref in ready])
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


def _finished(refs: Sequence[ray.ObjectRef[Any]]) -> list[ray.ObjectRef[Any]]:
    """Which are finished, without waiting."""
    return ray.wait(list(refs), num_returns=len(refs), timeout=0)[0] if refs else []


def _flat(groups: Sequence[Sequence[Call]]) -> Sequence[Call]:
    return [call for group in groups for call in group]
