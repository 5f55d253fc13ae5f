"""Messages to actors that are part of a plan: weights to all workers or to one, and target networks.

Weights travel as a visible edge of the plan rather than as a side effect of a training step, and by reference:
the driver never holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, final, overload

from pipeflow.dsl import nodes
from pipeflow.dsl.actors import Actors
from pipeflow.dsl.checks import check_positive
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.expressions import Operator
from pipeflow.dsl.item_types import fits, name_of, returned_type, show, taken_type
from pipeflow.dsl.nodes import Group
from pipeflow.dsl.operands import expect_stream
from pipeflow.dsl.replies import check_sourced, reply_node
from pipeflow.dsl.sites import Site, call_site, operator_site
from pipeflow.dsl.sourced import Source, Sourced
from pipeflow.dsl.streams import Stream

T = TypeVar("T")
A = TypeVar("A")
W = TypeVar("W")
Weights = TypeVar("Weights")
Message = TypeVar("Message")
A_co = TypeVar("A_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)
W_co = TypeVar("W_co", covariant=True)
A_contra = TypeVar("A_contra", contravariant=True)
W_contra = TypeVar("W_contra", contravariant=True)
Wt_co = TypeVar("Wt_co", covariant=True)
Wt_contra = TypeVar("Wt_contra", contravariant=True)


class HasWeights(Protocol[Wt_co]):
    """A learner: answers with a snapshot of its weights, which nothing changes afterwards."""

    def weights(self) -> Wt_co:
        """The snapshot."""
        ...


class TakesWeights(Protocol[Wt_contra]):
    """A worker: acts with the weights that it was last given."""

    def set_weights(self, weights: Wt_contra, /) -> None:
        """Act with these weights from the next item on."""
        ...


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class SyncWeights(Operator):
    """See `sync_weights`."""

    learner: Group
    workers: Group
    get: Callable[..., object]
    set: Callable[..., object]
    every: int

    def __ror__(self, left: Stream[T], /) -> Stream[T]:
        stream: Stream[T] = expect_stream(left, self)
        site = operator_site(self.site)
        return Stream(
            nodes.SyncWeights(
                name=self.name,
                site=site,
                item_type=stream.node.item_type,
                input=stream.node,
                learner=self.learner,
                workers=self.workers,
                get=self.get,
                set=self.set,
                every=self.every,
            )
        )


def sync_weights(
    learner: Actors[HasWeights[Weights]], workers: Actors[TakesWeights[Weights]], *, every: int = 1
) -> SyncWeights:
    """Send the learner's weights to all workers, once at the start and then after every n-th item.

    The message is sent before the item is delivered. Behind a `gather_sync` it is hence applied before
    anything of the next round starts (laws 6 and 9).

    Args:
        learner: a group of one actor with ``weights()``.
        workers: actors with ``set_weights(weights)``.
        every: after how many items.

    Raises:
        PlanError: there are several learners, one of the two has not the method that it needs, or the workers
            take other weights than the learner has.
        ValueError: `every` is below 1.
    """
    sync = sync_groups(learner.group, workers.group, every)
    _check_weights(sync.learner, sync.get, sync.workers, sync.set, "sync_weights", sync.site)
    return sync


def sync_groups(learner: Group, workers: Group, every: int) -> SyncWeights:
    """As `sync_weights`, for a caller who knows that the workers take what it makes of the learner's weights."""
    check_positive(every, "sync_weights(every)")
    site = call_site()
    get = _weights_of(learner, "sync_weights", site)
    set_ = _method(workers, "set_weights", "sync_weights", site)
    suffix = f", every={every}" if every > 1 else ""
    return SyncWeights(
        name=f"sync_weights({learner.name}, {workers.name}{suffix})",
        site=site,
        learner=learner,
        workers=workers,
        get=get,
        set=set_,
        every=every,
    )


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class ReplyWeights(Operator, Generic[Wt_co]):
    """See `reply_weights`."""

    learner: Group
    get: Callable[..., object]
    every: int

    def __ror__(self, left: Stream[Sourced[T, TakesWeights[Wt_co]]], /) -> Stream[T]:
        stream, site = expect_stream(left, self), operator_site(self.site)
        check_sourced(stream.node, self.name, site)
        for group in nodes.producers_of(stream.node):
            set_ = _method(group, "set_weights", "reply_weights", site)
            _check_weights(self.learner, self.get, group, set_, "reply_weights", site)
        return Stream(
            nodes.ReplyWeights(
                name=self.name,
                site=site,
                item_type=stream.node.item_type,
                input=stream.node,
                learner=self.learner,
                get=self.get,
                set=_set_weights,
                every=self.every,
            )
        )


def reply_weights(learner: Actors[HasWeights[Weights]], *, every: int = 1) -> ReplyWeights[Weights]:
    """Send the learner's weights to just the workers that an item came from, and pass the plain item on (law 9).

    A worker gets them after every n-th item of its own, before the item is delivered, and all workers once at the
    start. The items must be `Sourced`: gather them with ``.with_source()``.

    Args:
        learner: a group of one actor with ``weights()``.
        every: after how many items of a worker.

    Raises:
        PlanError: there are several learners, one of the two has not the method that it needs, or the workers
            take other weights than the learner has.
        ValueError: `every` is below 1.
    """
    check_positive(every, "reply_weights(every)")
    get = _weights_of(learner.group, "reply_weights", call_site())
    suffix = f", every={every}" if every > 1 else ""
    name = f"reply_weights({learner.group.name}{suffix})"
    return ReplyWeights(name=name, learner=learner.group, get=get, every=every)


class SourcedFor(Protocol[A_co, W_co, T_co]):
    """A `Sourced` item of type `T` that a function of `A` takes, from actors that have the methods of `W`.

    As `TakenBy` does for streams: a message made by a function of a base class must not widen the items' type.
    """

    @property
    def item(self) -> T_co: ...

    @property
    def sources(self) -> tuple[Source[W_co], ...]: ...

    def map(self, function: Callable[[A_co], object], /) -> object: ...


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Reply(Operator, Generic[A_contra, W_contra]):
    """See `reply`."""

    method: Callable[..., object]
    message: Callable[[A_contra], object] | None

    def __ror__(self, left: Stream[SourcedFor[A_contra, W_contra, T]], /) -> Stream[T]:
        node, site = expect_stream(left, self).node, operator_site(self.site)
        return Stream(reply_node(node, self.method, self.message, site, self.name))


@overload
def reply(method: Callable[[W, A], object], /) -> Reply[A, W]: ...
@overload
def reply(method: Callable[[W, Message], object], message: Callable[[A], Message], /) -> Reply[A, W]: ...
# `Any`: the overloads state the types.
def reply(
    method: Callable[[Any, Any], object], message: Callable[[Any], object] | None = None, /
) -> Reply[Any, Any]:
    """Answer just the actors that each item came from, and pass the plain item on (law 9).

    With a lambda write ``stream.reply(method, lambda report: ...)``, where its parameter's type is inferred.

    Args:
        method: the method of the source's class that takes the message, such as ``Replay.update_priorities``.
        message: makes the message from the item; without it the item itself is sent.
    """
    name = f"reply({name_of(method)})"
    return Reply(name=name, site=call_site(), method=method, message=message)


class HasTarget(Protocol):
    """A learner with a target network."""

    def update_target(self) -> None:
        """Let the target network be what the network is now."""
        ...


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class UpdateTarget(Operator):
    """See `update_target`."""

    learner: Group
    method: Callable[..., object]
    every: int

    def __ror__(self, left: Stream[T], /) -> Stream[T]:
        stream: Stream[T] = expect_stream(left, self)
        site = operator_site(self.site)
        return Stream(
            nodes.Notify(
                name=self.name,
                site=site,
                item_type=stream.node.item_type,
                input=stream.node,
                group=self.learner,
                method=self.method,
                every=self.every,
            )
        )


def update_target(learner: Actors[HasTarget], *, every: int = 1) -> UpdateTarget:
    """Let the learner's target network follow, after every n-th item that passes (law 9).

    Args:
        learner: actors with ``update_target()``.
        every: after how many items, for instance updates.

    Raises:
        PlanError: the learner has no such method.
        ValueError: `every` is below 1.
    """
    check_positive(every, "update_target(every)")
    site = call_site()
    suffix = f", every={every}" if every > 1 else ""
    return UpdateTarget(
        name=f"update_target({learner.group.name}{suffix})",
        site=site,
        learner=learner.group,
        method=_method(learner.group, "update_target", "update_target", site),
        every=every,
    )


def _set_weights(worker: TakesWeights[Any], weights: object) -> None:
    worker.set_weights(weights)


def _weights_of(learner: Group, operator: str, site: Site) -> Callable[..., object]:
    """The method that answers with the one learner's weights."""
    get = _method(learner, "weights", operator, site)
    if learner.count != 1:
        message = (
            f"{site}: {operator} takes one learner's weights, but {learner.name} ({learner.site}) are "
            f"{learner.count} actors; make it actors(..., 1, ...)"
        )
        raise PlanError(message)
    return get


def _check_weights(
    learner: Group,
    get: Callable[..., object],
    workers: Group,
    set_: Callable[..., object],
    operator: str,
    site: Site,
) -> None:
    """Refuse workers that take other weights than the learner's."""
    given, taken = returned_type(get), taken_type(set_, 1)
    if not fits(given, taken):
        message = (
            f"{site}: {operator} sends {show(given)}, the weights of {learner.name} ({learner.site}), but "
            f"{workers.name} ({workers.site}) takes {show(taken)}; name the learner that these workers act for"
        )
        raise PlanError(message)


def _method(group: Group, name: str, operator: str, site: Site) -> Callable[..., object]:
    """The method that the protocols above ask for, as a function of the actor."""
    found: Callable[..., object] | None = getattr(group.factory, name, None)
    if not callable(found):
        message = f"{site}: {operator} needs {group.name} ({group.site}) to have a method {name}"
        raise PlanError(message)
    return found
