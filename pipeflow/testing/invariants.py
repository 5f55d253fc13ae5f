"""Invariants that many plans share. An invariant is a function of a trace; a user's own need nothing from here."""

from __future__ import annotations

from collections.abc import Callable

from pipeflow.dsl import nodes
from pipeflow.semantics.events import Delivered, Trace


def policy_lag_at_most(versions: int) -> Callable[[Trace], str | None]:
    """The invariant that no gather delivers an item which is more than so many weights behind.

    The lag of an item is how many weights its actor was sent between being asked for it and its delivery: 0 in a
    plan that is on-policy.
    """

    def invariant(trace: Trace) -> str | None:
        # An item keeps its lag on its way, so only the gather's own deliveries are looked at.
        gathers = {index for index, node in enumerate(trace.nodes) if isinstance(node, nodes.Gather)}
        for position, event in enumerate(trace):
            if isinstance(event, Delivered) and event.node in gathers and (event.lag or 0) > versions:
                return (
                    f"the policy lag is {event.lag} where at most {versions} is allowed: event {position}, "
                    f"item {event.uid} of {trace.name(event.node)}"
                )
        return None

    invariant.__name__ = f"policy_lag_at_most({versions})"
    return invariant
