"""Every outcome that the laws admit of a small plan, and whether one that was seen is among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeflow.dsl.nodes import Node
from pipeflow.dsl.streams import Stream
from pipeflow.semantics.reference.choices import Choices, every_way
from pipeflow.semantics.reference.interpreter import Interpreter
from pipeflow.semantics.reference.world import Item, StageFailed


@dataclass(frozen=True)
class Outcome:
    """What a consumer sees of a run: the items in order, and how it ended.

    `end` is ``ended``, ``cut`` where the consumer wanted no more, ``DeadlockError``, or ``StageError`` with the
    stage's name.
    """

    items: tuple[object, ...]
    end: str = "ended"


# `Any`, here and below: a plan of items of any type.
def every_outcome(plan: Stream[Any], *, first: int | None = None, limit: int = 10_000) -> list[Outcome]:
    """Every outcome that the laws admit, each once.

    >>> from pipeflow.dsl import from_items, from_shards, gather_async, gather_sync
    >>> shards = from_shards([[1, 2], [10]])
    >>> every_outcome(shards | gather_sync())
    [Outcome(items=(1, 10, 2), end='ended')]
    >>> sorted(outcome.items for outcome in every_outcome(shards | gather_async()))
    [(1, 2, 10), (1, 10, 2), (10, 1, 2)]

    Args:
        plan: a small plan.
        first: how many items the consumer takes; None means all of a plan that ends.
        limit: how many ways may be tried.

    Raises:
        TooManyWays: the plan can go in more ways than `limit`.
    """
    found: list[Outcome] = []
    for outcome in every_way(lambda choices: _outcome(plan.node, choices, first), limit):
        if outcome is not None and outcome not in found:
            found.append(outcome)
    return found


def admits(plan: Stream[Any], outcome: Outcome, *, limit: int = 10_000) -> bool:
    """Whether the laws admit an outcome of a plan.

    Args:
        plan: the plan.
        outcome: what was seen; with the end ``cut``, as many items as there are were wanted.
        limit: how many ways may be tried. Ways that begin with other items are given up early.

    Raises:
        TooManyWays: after so many, none had shown it and some were left.
    """
    first = len(outcome.items) if outcome.end == "cut" else None
    ways = every_way(lambda choices: _outcome(plan.node, choices, first, outcome.items), limit)
    return any(found == outcome for found in ways)


def _outcome(
    root: Node, choices: Choices, first: int | None, wanted: Sequence[object] | None = None
) -> Outcome | None:
    """One way in which the plan can go; None where it delivers other items than wanted, or shows nothing new."""
    items: list[object] = []
    try:
        world = Interpreter(root, choices)
        source = world.stream(root)
        while first is None or len(items) < first:
            world.may_fail()
            world.moved = world.waited = False
            found = next(source, None)
            if found is None:
                world.settle()
                return Outcome(tuple(items))
            if isinstance(found, Item):
                items.append(found.delivered)
                if wanted is not None and items != list(wanted[: len(items)]):
                    return None
                continue
            world.run_ahead()
            if not world.moved:
                if world.waited:
                    return None  # the same as not to have asked
                world.must_fail()
                return Outcome(tuple(items), "DeadlockError")
    except StageFailed as failed:
        return Outcome(tuple(items), f"StageError: {failed.node.name}")
    return Outcome(tuple(items), "cut")
