"""Rules about what of a plan can ever run.

Ends that nobody reads, branches that are never served, sources that never have anything, and what was written and
then left out.
"""

from __future__ import annotations

import functools
import itertools
import operator
import typing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipeflow.dsl import nodes
from pipeflow.dsl.actors import Actors
from pipeflow.dsl.expressions import Expression
from pipeflow.dsl.findings import Finding, Rule
from pipeflow.dsl.gating import Taking, Tapping
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.signals import NotReady
from pipeflow.dsl.trees import groups_of, walk

UNREAD_OUTLET = Rule("PF101", "error", "an end of a fork or a partition that feeds nothing")
NOTHING_PASSES = Rule("PF102", "error", "a stage that lets nothing pass")
DELIVERS_NOTHING = Rule("PF103", "warning", "a plan whose every branch is drained")
NEVER_SERVED = Rule("PF104", "error", "a branch that is never reached")
NEVER_READY = Rule("PF105", "warning", "a source that waits for what no stage brings")
LEFT_OUT = Rule("PF106", "warning", "a stream that was built and is not part of the plan")
UNUSED_ACTORS = Rule("PF107", "warning", "actors that are described and not used")
NO_EFFECT = Rule("PF108", "warning", "an end that is drained before anything is done with its items")


def structure_findings(root: Node) -> Iterator[Finding]:
    """What of a plan can never run."""
    if root.drained:
        yield DELIVERS_NOTHING.broken(
            root.site,
            f"the plan delivers nothing, since {_drained(root)}: its run says nothing before it ends; join "
            "it with & to a branch that delivers",
        )
    yield from _unread_outlets(root)
    for node in walk(root):
        if gate_state(node) == (Taking, (0,)):
            message = (
                f"{node.name} lets nothing pass, and nothing before it is asked for an item; take 1 or more"
            )
            yield NOTHING_PASSES.broken(node.site, message)
        elif isinstance(node, nodes.Union) and node.policy == "prioritised":
            yield from _never_served(node)
        elif isinstance(node, nodes.Produce):
            yield from _never_ready(node, root)
        elif isinstance(node, nodes.Drain):
            yield from _no_effect(node)


def gate_state(node: Node) -> tuple[object, tuple[object, ...]] | None:
    """What a gate does and with which arguments, such as ``(Taking, (3,))``; None for what is no gate."""
    if isinstance(node, nodes.Gate) and isinstance(node.factory, functools.partial):
        return node.factory.func, node.factory.args
    return None


@dataclass(frozen=True)
class Part:
    """A stream or actors that a name stood for while plans were built."""

    name: str
    # `Any`: actors of any class; `Actors` is invariant.
    value: Expression | Actors[Any]


def left_out(parts: Iterable[Part], roots: Sequence[Node]) -> Iterator[Finding]:
    """What has a name and is part of no plan; a stage is known by its kind and line, actors by their call."""
    stages = {(type(node), node.site) for root in roots for node in walk(root)}
    # Every description that was derived from one call of `actors` has the very same keywords.
    calls = {id(group.kwargs) for root in roots for group in groups_of(root)}
    for part in parts:
        if isinstance(part.value, Actors):
            group = part.value.group
            if id(group.kwargs) not in calls:
                message = (
                    f"{part.name}: no stage of the plan uses the actors {group.name}; use or delete them"
                )
                yield UNUSED_ACTORS.broken(group.site, message)
        elif not any((type(node), node.site) in stages for node in _ends(part.value.node)):
            node = part.value.node
            message = f"{part.name}: nothing reads {node.name}; join it to the plan with &, or delete it"
            yield LEFT_OUT.broken(node.site, message)


def _ends(node: Node) -> tuple[Node, ...]:
    """The nodes by which a stream is found in a plan: one end of a fork stands for the fork."""
    return (node, node.input) if isinstance(node, nodes.Outlet) else (node,)


def _drained(root: Node) -> str:
    branches = root.inputs if isinstance(root, nodes.Union) else ()
    return "all of its branches are drained" if branches else "it ends in a drain"


def _unread_outlets(root: Node) -> Iterator[Finding]:
    read = {(id(node.input), node.index) for node in walk(root) if isinstance(node, nodes.Outlet)}
    for node in walk(root):
        if not isinstance(node, nodes.Share):
            continue
        for index in range(node.outlets):
            if (id(node), index) in read:
                continue
            instead = "" if node.predicate is None else ", or write .filter instead of a partition"
            message = (
                f"{node.name}[{index}] feeds nothing, so once its buffer of {node.buffer} is full, nothing "
                f"goes on; put it into the plan, through | drain if only for its side effects{instead}"
            )
            yield UNREAD_OUTLET.broken(node.site, message)


def _no_effect(drain: nodes.Drain) -> Iterator[Finding]:
    """A drained end of a fork or a partition between which and the drain no code of the user's runs."""
    node = drain.input
    # A throttle is not among them: through the buffer it sets the pace of the other ends.
    while isinstance(node, nodes.Batch | nodes.Concat | nodes.Buffer) or (
        isinstance(node, nodes.Gate) and not node.reads
    ):
        node = node.input
    if isinstance(node, nodes.Outlet):
        share = node.input
        instead = "fork into fewer" if share.predicate is None else "write .filter instead of the partition"
        message = (
            f"{drain.name} ends {share.name}[{node.index}] ({share.site}) before anything is done with its "
            f"items; put a stage with an effect before it, or {instead}"
        )
        yield NO_EFFECT.broken(drain.site, message)


def _never_served(union: nodes.Union) -> Iterator[Finding]:
    for index, first in enumerate(union.branches[:-1]):
        if _always_ready(first):
            for starved in union.branches[index + 1 :]:
                message = (
                    f"{starved.name} is never reached: {first.name} ({first.site}) comes before it in "
                    "prioritised() and always has an item; put what may have to wait first, or write "
                    ".round_robin()"
                )
                yield NEVER_SERVED.broken(starved.site, message)
            return


def _always_ready(node: Node) -> bool:
    """Whether the branch reads an endless iterator in the driver, waits for nothing and drops nothing."""
    while isinstance(node, nodes.Apply | nodes.Batch | nodes.Drain) or _is_tap(node):
        (node,) = node.inputs
    return isinstance(node, nodes.FromItems) and _endless(node.items)


def _is_tap(node: Node) -> bool:
    state = gate_state(node)
    return state is not None and state[0] is Tapping


def _endless(items: Iterable[object]) -> bool:
    if isinstance(items, itertools.repeat):
        return operator.length_hint(items, -1) < 0
    return isinstance(items, itertools.count | itertools.cycle)


def _never_ready(source: nodes.Produce, root: Node) -> Iterator[Finding]:
    if not _may_be_unready(source.method):
        return
    group = source.group
    if not any(_feeds(node, source) for node in walk(root)):
        message = (
            f"{source.name} may return NotReady, and no stage gives {group.name} ({group.site}) anything "
            f"that could change it; put a stage of {group.name} that stores items into the plan, in a "
            "branch of a union"
        )
        yield NEVER_READY.broken(source.site, message)


def _feeds(node: Node, source: nodes.Produce) -> bool:
    """Whether the node brings the source's actors something without first waiting for an item of the source."""
    if source.group not in node.groups or isinstance(node, nodes.Produce):
        return False
    return isinstance(node, nodes.SyncWeights) or source not in walk(node)


def _may_be_unready(method: nodes.Function) -> bool:
    try:
        returned = typing.get_type_hints(method).get("return")
    except Exception:  # annotations are arbitrary expressions: whatever they raise, nothing is known
        return False
    return NotReady in (returned, *typing.get_args(returned))
