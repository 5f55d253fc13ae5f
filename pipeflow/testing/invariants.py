"""Invariants that many plans share. An invariant is a function of a trace; a user's own need nothing from here."""

from __future__ import annotations

from collections.abc import Callable

from pipeflow.dsl import nodes
from pipeflow.semantics.events import Delivered, Trace


def policy_lag_at_most(versions: int) -> Callable[[Trace], str | None]:
    """The invariant that no gather delivers an item which is more than so many weights behind.

    Where a `max_lag` stands behind the gather, what it lets pass is judged: what it drops trains nobody. The lag
    of an item is how many weights its actor was sent between being asked for it and its delivery: 0 in a plan that
    is on-policy. It counts weights that were sent, not updates: weights that are sent too seldom, or before the
    update, have no lag however old they are. `pipeflow check --on-policy` finds these.
    """

    def invariant(trace: Trace) -> str | None:
        # An item keeps its lag on its way, so it is looked at once, where it leaves the gather or its limit.
        limited = {id(node.input) for node in trace.nodes if isinstance(node, nodes.MaxLag)}
        judged = {
            index
            for index, node in enumerate(trace.nodes)
            if isinstance(node, nodes.Gather | nodes.MaxLag) and id(node) not in limited
        }
        for position, event in enumerate(trace):
            if isinstance(event, Delivered) and event.node in judged and (event.lag or 0) > versions:
                return (
                    f"the policy lag is {event.lag} where at most {versions} is allowed: event {position}, "
                    f"item {event.uid} of {trace.name(event.node)}"
                )
        return None

    invariant.__name__ = f"policy_lag_at_most({versions})"
    return invariant
