"""`Step`: one item of a run, and what every node did for it.

Apart from `stats`, whose figures it takes the difference of.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import Generic, TypeVar

from typing_extensions import override

from pipeflow.lowering.stats import NodeStats, RunStats

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class NodeStep:
    """What one node did in a step.

    Attributes:
        name: the node's name.
        site: ``file:line`` where it was written.
        items_in: items taken from its inputs.
        items_out: items delivered downstream.
        busy_seconds: time inside user code, summed over actors.
        queue_before: items that were finished or in flight and not yet delivered.
        queue_after: the same after the step.
        restarts: how often actors that it runs in were started again.
    """

    name: str
    site: str
    items_in: int
    items_out: int
    busy_seconds: float
    queue_before: int
    queue_after: int
    restarts: int = 0

    @override
    def __str__(self) -> str:
        parts = [f"{self.items_in} in"] if self.items_in else []
        parts.append(f"{self.items_out} out")
        if self.busy_seconds >= 0.0005:  # below that it would read as 0.000
            parts.append(f"busy {self.busy_seconds:.3f} s")
        if self.queue_before or self.queue_after:
            parts.append(f"queue {self.queue_before} to {self.queue_after}")
        if self.restarts:
            parts.append(f"{self.restarts} restart{'s' if self.restarts > 1 else ''}")
        return f"{self.name} ({PurePath(self.site).name}): {', '.join(parts)}"


@dataclass(frozen=True)
class Step(Generic[T_co]):
    """One item and how it came about. ``str`` of it is one line for the item and one for each node.

    Attributes:
        item: what the plan delivered.
        nodes: the nodes that did something, in the order of the data, sources first.
    """

    item: T_co
    nodes: tuple[NodeStep, ...]

    @override
    def __str__(self) -> str:
        return "\n".join([f"item: {_repr.repr(self.item)}", *(f"  {node}" for node in self.nodes)])


def step_between(before: RunStats, after: RunStats, item: T) -> Step[T]:
    """The step that led from some figures of a run to others."""
    pairs = zip(before.nodes, after.since(before).nodes, strict=True)
    nodes = [_node_step(then.queue, recent) for then, recent in pairs]
    return Step(item, tuple(node for node in nodes if node is not None))


def _node_step(queue_before: int, recent: NodeStats) -> NodeStep | None:
    """What a node did, of its figures since the step before; None if nothing."""
    step = NodeStep(
        recent.name,
        recent.site,
        recent.items_in,
        recent.items_out,
        recent.busy_seconds,
        queue_before,
        recent.queue,
        recent.restarts,
    )
    did = (step.items_in, step.items_out, step.busy_seconds, recent.queue - queue_before, step.restarts)
    return step if any(did) else None


# An item may be a batch of megabytes.
_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 80
