"""Actors: what keeps state (a rollout worker, a learner, a replay buffer), described before anything starts.

A method is passed unbound, ``learner.stage(PPOLearner.update)``, so the checker sees the actor's class, the
method's input and its output; no string names a method.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, Self, TypeVar, final, get_args, overload

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_constructed, check_fits, check_method, check_own_shards, check_positive
from pipeflow.dsl.expressions import Operator
from pipeflow.dsl.item_types import name_of, returned_type, taken_type
from pipeflow.dsl.nodes import Group, OnError, Placement
from pipeflow.dsl.operands import TakenBy, expect_either, expect_stream, grown, regrown
from pipeflow.dsl.sharding import Scatter
from pipeflow.dsl.signals import Ended, NotReady
from pipeflow.dsl.sites import call_site, operator_site
from pipeflow.dsl.sourced import Sourced
from pipeflow.dsl.streams import ParallelStream, Stream
from pipeflow.dsl.trees import groups_of

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")
V = TypeVar("V")
W = TypeVar("W")
A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)
W_co = TypeVar("W_co", covariant=True)
W_contra = TypeVar("W_contra", contravariant=True)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Placed(Operator, Generic[A_contra, B_co, W_contra]):
    """A method of an actor group as a stage. Made by `Actors.stage`.

    On a `Stream` it runs in the group, which delivers in the order of its input whatever finishes first
    (law 4). On the group's own `ParallelStream` it runs inside each shard. It is no callable, so that a stage
    of a foreign group cannot be mistaken for a function that runs in the shards.
    """

    group: Group
    # `Any`: the actor itself, whose class `Actors.stage` has compared with the method's.
    method: Callable[[Any, A_contra], B_co]
    in_flight: int = 1
    ordered: bool = True
    times: int = 1

    @overload
    def __ror__(self, left: Stream[Sourced[A_contra, V]], /) -> Stream[Sourced[B_co, V]]: ...
    @overload
    def __ror__(self, left: Stream[A_contra], /) -> Stream[B_co]: ...
    @overload
    def __ror__(self, left: ParallelStream[A_contra, W_contra], /) -> ParallelStream[B_co, W_contra]: ...
    def __ror__(self, left: Any, /) -> Any:
        site = operator_site(self.site)
        stream = expect_either(left, self)
        check_own_shards(stream.node, self.group, self.name, site)
        node, takes = stream.node, taken_type(self.method, 1)
        for turn in range(1, self.times + 1):
            check_fits(node, takes, self.name, site, source_apart=True)
            node = nodes.Place(
                name=self.name if self.times == 1 else f"{self.name} {turn}/{self.times}",
                site=site,
                item_type=returned_type(self.method),
                input=node,
                group=self.group,
                method=self.method,
                max_in_flight=self.in_flight,
                ordered=self.ordered,
            )
        return grown(stream, node)

    # Where it makes another type than it takes, mypy says so at the `|`, of a `Placed[Never, Never, W]`.
    def repeat(self: Placed[A, A, W], times: int, /) -> Placed[A, A, W]:
        """So many of these stages in a row, each taking what the one before it made: an inner loop.

        Raises:
            ValueError: `times` is below 1.
        """
        check_positive(times, "repeat(times)")
        return dataclasses.replace(self, times=self.times * times)

    def max_in_flight(self, count: int, /) -> Self:
        """Let `count` items be in the actors at once; the default of 1 keeps a barrier upstream exact.

        Raises:
            ValueError: `count` is below 1.
        """
        check_positive(count, "max_in_flight(count)")
        return dataclasses.replace(self, in_flight=count)

    def unordered(self) -> Self:
        """Deliver what finishes first; nothing is overtaken by more than `max_in_flight` items (law 4)."""
        return dataclasses.replace(self, ordered=False)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Send(Operator, Generic[A_contra]):
    """Passes items on and sends each to all actors of a group. Made by `Actors.send`."""

    group: Group
    # `Any`: as in `Placed`.
    method: Callable[[Any, A_contra], object]

    def __ror__(self, left: TakenBy[A_contra, S] | TakenBy[Sourced[A_contra, object], S], /) -> S:
        site = operator_site(self.site)
        upstream = expect_stream(left, self).node
        check_fits(upstream, taken_type(self.method, 1), self.name, site, source_apart=True)
        return regrown(
            left,
            nodes.Send(
                name=self.name,
                site=site,
                item_type=upstream.item_type,
                input=upstream,
                group=self.group,
                method=self.method,
            ),
        )


@final
@dataclass(frozen=True, repr=False)
class Actors(Generic[W_co]):
    """A description of `count` identical actors of class `W_co`. Made by `actors`; a run starts them."""

    group: Group

    def produce(self, method: Callable[[W_co], T | NotReady | Ended], /) -> ParallelStream[T, W_co]:
        """One shard an actor: what the method returns, again and again.

        A method may return `NotReady` when it has nothing yet and `Ended` when it has nothing more; neither
        is in the stream's type. Every call of `produce` makes an independent stream.
        """
        site = call_site()
        check_method(self.group, method, site)
        return ParallelStream(
            nodes.Produce(
                name=f"{self.group.name}.produce({name_of(method)})",
                site=site,
                item_type=returned_type(method),
                group=self.group,
                method=method,
            )
        )

    def stage(self, method: Callable[[W_co, A], B], /) -> Placed[A, B, W_co]:
        """A method of the actors as a stage: see `Placed`."""
        site = call_site()
        check_method(self.group, method, site)
        return Placed(
            name=f"{self.group.name}.stage({name_of(method)})", site=site, group=self.group, method=method
        )

    def scatter(self) -> Scatter[W_co]:
        """Spread a stream over the actors, item k to actor ``k % count``, where it goes on as their shards.

        With ``gather_rounds() | group.broadcast()`` it is how learners share the work of an update::

            batches | learners.scatter() | learners.stage(Learner.gradients)
            | gather_rounds() | learners.broadcast() | Gradients.mean | learners.stage(Learner.apply)
            | gather_rounds()

        What follows up to the gather, which is one in rounds, gives one output for every input.
        """
        name = f"{self.group.name}.scatter()"
        return Scatter(name=name, site=call_site(), group=self.group, to_all=False)

    def broadcast(self) -> Scatter[W_co]:
        """Give every item of a stream to all of the actors, where it goes on as their shards; see `scatter`.

        ``gather_rounds() | group.broadcast() | mean`` is an all-reduce: the driver hands references around and
        reads none of the data.
        """
        name = f"{self.group.name}.broadcast()"
        return Scatter(name=name, site=call_site(), group=self.group, to_all=True)

    def send(self, method: Callable[[W_co, A], object], /) -> Send[A]:
        """Pass items on, and send each to all actors; messages take effect in the order sent (law 9)."""
        site = call_site()
        check_method(self.group, method, site)
        return Send(
            name=f"{self.group.name}.send({name_of(method)})", site=site, group=self.group, method=method
        )

    def named(self, name: str) -> Actors[W_co]:
        """The same description under a name of the user's."""
        return Actors(dataclasses.replace(self.group, name=name))

    def resources(self, *, cpus: float = 1.0, gpus: float = 0.0, **custom: float) -> Actors[W_co]:
        """What each actor reserves where an engine places actors by resources.

        Args:
            cpus: processor cores, fractions allowed.
            gpus: accelerators, a fraction of one or a whole number.
            custom: resources that the cluster's nodes declare by name, such as ``learner=1``, or
                ``**{"node:10.0.0.7": 0.001}`` for the node of that address.

        Raises:
            ValueError: an amount is negative or not finite, or between whole numbers of accelerators, or `custom`
                names what has an argument of its own, or memory.
        """
        wanted = {"CPU": cpus, "GPU": gpus, **custom}
        _check_resources(gpus, wanted, custom)
        return Actors(dataclasses.replace(self.group, resources=MappingProxyType(wanted)))

    def placement(self, strategy: Placement, /) -> Actors[W_co]:
        """How the actors of the group share the nodes of a cluster; without it the cluster decides for each alone.

        The places of all are reserved together, and no actor starts before there is room for every one. A place is
        what `resources` says, a core where it says nothing. It is kept for an actor that is started again; if its
        node is lost, another is reserved elsewhere. In one process it means nothing.

        Args:
            strategy: ``"spread"``: on as many nodes as possible. ``"pack"``: on as few as possible.

        Raises:
            ValueError: there is no such strategy.
        """
        if strategy not in get_args(Placement):
            message = f"placement(strategy) must be one of {', '.join(get_args(Placement))}, got {strategy!r}"
            raise ValueError(message)
        return Actors(dataclasses.replace(self.group, placement=strategy))

    def restarts(self, count: int, /) -> Actors[W_co]:
        """Let dead actors of the group be started again, `count` times in all (law 19); see `on_error` as well.

        A restarted actor gets the weights that were last sent to its group before its first new item. What it had
        in flight is lost.

        Raises:
            ValueError: `count` is negative.
        """
        if count < 0:
            message = f"restarts(count) must be at least 0, got {count}"
            raise ValueError(message)
        return Actors(dataclasses.replace(self.group, restarts=count))

    def on_error(self, policy: OnError, /) -> Actors[W_co]:
        """What it means that code raises in an actor of the group, or that one dies with no restart left.

        Args:
            policy: ``"raise"``, the default: the run ends with the error (law 20). ``"restart"``: the actor is
                started again, which counts against `restarts`; the item that failed and what else was in flight
                are lost (law 19), and when no restart is left, the run ends with the error. ``"drop_shard"``: the
                actor is given up and its shards end, while the others go on; the last actor of the group is not
                given up, its error ends the run. Every error that does not end the run is logged as a warning.

        Raises:
            ValueError: there is no such policy. A run refuses a plan in which the policy makes no sense, with
                `PlanError`: ``"restart"`` without restarts; ``"drop_shard"`` for one actor alone, or for actors
                that are not only shards: a stage on a stream, a learner whose weights are sent, a scatter.
        """
        if policy not in get_args(OnError):
            message = f"on_error(policy) must be one of {', '.join(get_args(OnError))}, got {policy!r}"
            raise ValueError(message)
        return Actors(dataclasses.replace(self.group, on_error=policy))

    def time_limit(self, seconds: float, /) -> Actors[W_co]:
        """Let a call in an actor take no longer; if one does, the actor is ended as if its process had died.

        `restarts` and `on_error` say what then. Without it a call may take as long as it likes: an environment
        step may be slow for good reasons, and only its author knows what is too long. Waiting for others, for
        resources or for a process to start does not count. On Ray the actor is ended within a second of the limit,
        as soon as the driver waits for items. Inline nothing can interrupt a call: it is judged, and its result
        thrown away, when it returns. In `Sim` the clock is the simulation's.

        Raises:
            ValueError: `seconds` is not positive.
        """
        if not seconds > 0:
            message = f"time_limit(seconds) must be positive, got {seconds}"
            raise ValueError(message)
        return Actors(dataclasses.replace(self.group, time_limit=seconds))

    @override
    def __repr__(self) -> str:
        return f"<Actors[{name_of(self.group.factory)}] {self.group.count} {self.group.name} at {self.group.site}>"


def actors(factory: Callable[P, W], count: int, /, *args: P.args, **kwargs: P.kwargs) -> Actors[W]:
    """Describe `count` identical actors; nothing starts before a run does.

    Args:
        factory: the actors' class. Its methods need nothing special.
        count: how many.
        *args: the class's constructor arguments, checked by the type checker.
        **kwargs: likewise. All actors get the same; `current_shard` tells them apart.

    Raises:
        ValueError: `count` is below 1.
        PlanError: the constructor does not take these arguments, or needs more.
    """
    check_positive(count, "actors(count)")
    group = Group(
        factory=factory,
        count=count,
        args=args,
        kwargs=MappingProxyType(kwargs),
        name=name_of(factory),
        site=call_site(),
    )
    check_constructed(group)
    return Actors(group)


def groups_with(plan: Stream[Any], actor_class: type[W]) -> tuple[Actors[W], ...]:
    """The groups of a plan whose actors are of a class, in the order in which the plan mentions them.

    `Any`: which items the plan delivers does not matter here.
    """
    groups = groups_of(plan.node)
    return tuple(
        Actors(g) for g in groups if isinstance(g.factory, type) and issubclass(g.factory, actor_class)
    )


def group_of(plan: Stream[Any], actor_class: type[W]) -> Actors[W]:
    """The one group of a plan whose actors are of a class, for instance to ask its learner for its state.

    `Any`: as in `groups_with`.

    Raises:
        LookupError: the plan has no such group, or several.
    """
    found = groups_with(plan, actor_class)
    if len(found) != 1:
        known = ", ".join(group.name for group in groups_of(plan.node)) or "none"
        message = f"the plan has {len(found)} groups of {actor_class.__name__}; its groups are: {known}"
        raise LookupError(message)
    return found[0]


def _check_resources(gpus: float, wanted: Mapping[str, float], custom: Mapping[str, float]) -> None:
    arguments = {"CPU": "cpus", "GPU": "gpus"}
    for name in custom:
        if name in arguments:
            message = f"resources({name}=...) is written resources({arguments[name]}=...)"
            raise ValueError(message)
        if name in ("memory", "object_store_memory"):
            message = f"resources({name}=...) cannot be reserved; reserve what the nodes declare by name"
            raise ValueError(message)
    for name, amount in wanted.items():
        if not 0 <= amount < math.inf:
            argument = arguments.get(name, name)
            message = f"resources({argument}=...) must be at least 0 and finite, got {amount}"
            raise ValueError(message)
    if gpus > 1 and gpus != int(gpus):
        message = f"resources(gpus=...) must be below 1 or a whole number, got {gpus}"
        raise ValueError(message)
