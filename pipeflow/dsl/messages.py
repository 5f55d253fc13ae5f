"""Messages to actors that are part of a plan: `sync_weights`.

Weights travel as a visible edge of the plan rather than as a side effect of a training step, and by reference:
the driver never holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, final

from pipeflow.dsl import nodes
from pipeflow.dsl.actors import Actors
from pipeflow.dsl.checks import check_not_drained, check_positive
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.nodes import Group
from pipeflow.dsl.operands import expect_stream
from pipeflow.dsl.sites import call_site, operator_site
from pipeflow.dsl.streams import Operator, Stream

T = TypeVar("T")
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


Learner = TypeVar("Learner", bound=HasWeights[Any])
Worker = TypeVar("Worker", bound=TakesWeights[Any])


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
        check_not_drained(stream.node, self.name, site)
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


def sync_weights(learner: Actors[Learner], workers: Actors[Worker], *, every: int = 1) -> SyncWeights:
    """Send the learner's weights to all workers, once at the start and then after every n-th item.

    The message is sent before the item is delivered. Behind a `gather_sync` it is hence applied before
    anything of the next round starts (laws 6 and 9).

    Args:
        learner: a group of one actor with ``weights()``.
        workers: actors with ``set_weights(weights)``.
        every: after how many items.

    Raises:
        PlanError: there are several learners, or one of the two has not the method that it needs.
        ValueError: `every` is below 1.
    """
    check_positive(every, "sync_weights(every)")
    site = call_site()
    get, set_ = _method(learner.group, "weights", site), _method(workers.group, "set_weights", site)
    if learner.group.count != 1:
        name, count = learner.group.name, learner.group.count
        message = (
            f"{site}: sync_weights takes one learner's weights, but {name} ({learner.group.site}) are {count} "
            "actors; make it actors(..., 1, ...)"
        )
        raise PlanError(message)
    suffix = f", every={every}" if every > 1 else ""
    return SyncWeights(
        name=f"sync_weights({learner.group.name}, {workers.group.name}{suffix})",
        site=site,
        learner=learner.group,
        workers=workers.group,
        get=get,
        set=set_,
        every=every,
    )


def _method(group: Group, name: str, site: object) -> Callable[..., object]:
    """The method that the protocols above ask for, as a function of the actor."""
    found: Callable[..., object] | None = getattr(group.factory, name, None)
    if not callable(found):
        message = f"{site}: sync_weights needs {group.name} ({group.site}) to have a method {name}"
        raise PlanError(message)
    return found
