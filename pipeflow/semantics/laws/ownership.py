"""Laws 24 to 26: how old an item may be, which type it has, and whose it is."""

from __future__ import annotations

from typing import get_args, get_origin

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_linear
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.item_types import ItemType, fits, show
from pipeflow.dsl.sourced import Sourced
from pipeflow.semantics import events
from pipeflow.semantics.events import Delivered, Trace
from pipeflow.semantics.laws.facts import facts_of
from pipeflow.semantics.laws.law import Violation


def law_24(trace: Trace) -> list[Violation]:
    """`max_lag(n)` delivers no item whose actor was sent more than n weights since it was asked for the item.

    Older items are dropped and counted, or, with ``wait=True``, the faster shards wait. No other item is
    dropped.

    >>> from pipeflow import from_shards, gather_async, max_lag
    >>> run = (from_shards([[1, 2]]) | gather_async() | max_lag(1)).run(record=True)
    >>> list(run), law_24(run.trace)
    ([1, 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for node, stage in enumerate(facts.nodes):
        if not isinstance(stage, nodes.MaxLag):
            continue
        (read,) = facts.upstream[node]
        lags: dict[int, int | None] = {}
        for index, event in enumerate(trace):
            match event:
                case Delivered(node=here, uid=uid) if here == read:
                    lags[uid] = facts.lag(event, index)
                case Delivered(node=here, uid=uid) | events.Dropped(node=here, uid=uid) if here == node:
                    lag, delivered = lags.get(uid), isinstance(event, Delivered)
                    if lag is not None and delivered != (lag <= stage.limit):
                        does = "delivers" if delivered else "drops"
                        message = (
                            f"{facts.name(node)} {does} item {uid}, which is {lag} weights behind; the "
                            f"limit is {stage.limit}"
                        )
                        found.append(Violation(24, message, index))
                case _:
                    pass
    return found


def law_25(trace: Trace) -> list[Violation]:
    """Every item that a node delivers is an instance of the node's static item type.

    Checked for the items that the driver holds; an item that stays in an actor is seen where it is read.

    >>> from pipeflow import from_items
    >>> run = from_items([1, 2]).map(str).run(record=True)
    >>> list(run), law_25(run.trace)
    (['1', '2'], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for node, delivered in facts.deliveries.items():
        expected = facts.nodes[node].item_type
        known: dict[type, bool] = {}
        for index, event in delivered:
            made = event.item_type
            if made is None:
                continue
            if made not in known:
                known[made] = _is_instance(made, expected)
            if not known[made]:
                message = (
                    f"{facts.name(node)} delivers {show(made)}, item {event.uid}; expected {show(expected)}"
                )
                found.append(Violation(25, message, index))
    return found


def law_26(trace: Trace) -> list[Violation]:
    """A stream value feeds one place of a plan, and what fans out is immutable or copied.

    Using a stream twice is refused when the plan is built. No consumer of a fork, and no actor of a `broadcast`,
    sees what another writes into an item.

    >>> from pipeflow import from_items
    >>> left, right = from_items([[1], [2]]).fork(2, buffer=1)
    >>> run = (left & right).run(record=True)
    >>> list(run), law_26(run.trace)
    ([[1], [1], [2], [2]], [])
    """
    try:
        check_linear(trace.plan)
    except PlanError as error:
        return [Violation(26, str(error), 0)]
    return [
        Violation(
            26,
            f"{trace.name(event.node)} gives outlet {event.outlet} item {event.copy_of} itself; expected a copy",
            index,
        )
        for index, event in enumerate(trace)
        if isinstance(event, events.Shared) and event.aliased
    ]


def _is_instance(made: type, expected: ItemType) -> bool:
    """Whether an item fits; where some items of a stream are `Sourced`, their source travels apart from them."""
    if fits(made, expected):
        return True
    members = get_args(expected) or (expected,)
    return any(fits(made, get_args(member)[0]) for member in members if get_origin(member) is Sourced)
