"""The rules that a plan must keep, checked while it is built: types that fit, one consumer a stream.

mypy refuses most of these before anything runs. Here they are refused again, with both sides and the line
named, for those who do not run mypy, and for the rules that types cannot state.
"""

from __future__ import annotations

import inspect
import sys

from pipeflow.dsl import nodes
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.item_types import ItemType, fits, may_have, name_of, show
from pipeflow.dsl.nodes import Function, Group, Node, producers_of
from pipeflow.dsl.sites import Site
from pipeflow.dsl.trees import groups_of, walk


def check_fits(
    upstream: Node, wanted: ItemType, stage: str, site: Site, *, source_apart: bool = False
) -> None:
    """Refuse a stage that takes another type than the stream before it delivers.

    Args:
        upstream: the node before the stage.
        wanted: the type that the stage takes.
        stage: the stage's name.
        site: where it was written.
        source_apart: the stage takes the item of a `Sourced` stream itself, as one in an actor does.

    Raises:
        PlanError: names the stage, what it takes, the stream and what that delivers.
    """
    check_not_drained(upstream, stage, site)
    given = upstream.item_type if source_apart else upstream.delivered_type
    if not fits(given, wanted):
        message = (
            f"{site}: {stage} takes {show(wanted)}, but {upstream.name} ({upstream.site}) delivers "
            f"{show(given)}; put a stage between them that makes {show(wanted)}"
        )
        earlier = _place_before(upstream, wanted, in_actors=source_apart)
        if earlier is not None:
            message += f", or put this one before {earlier.name}, which is given {show(wanted)}"
        raise PlanError(message)


def _place_before(node: Node, wanted: ItemType, *, in_actors: bool) -> Node | None:
    """The nearest node up to this one that is given just what is wanted; in_actors: on its side of a gather."""
    while isinstance(node, nodes.OneInput):
        before = node.input
        if in_actors and before.parallel is not node.parallel:
            return None
        if before.item_type == wanted and not before.sourced and not isinstance(before, nodes.Share):
            return node
        node = before
    return None


def check_not_drained(upstream: Node, stage: str, site: Site) -> None:
    """Refuse a stage after `drain`, which delivers nothing (a hole of the types: `Never` fits everything)."""
    if upstream.drained:
        message = (
            f"{site}: {stage} would never get an item, since {upstream.name} ({upstream.site}) is drained; "
            "put it before the drain"
        )
        raise PlanError(message)


def check_positive(value: int, what: str) -> None:
    """Refuse a size or count below one.

    Raises:
        ValueError: names the argument and the value.
    """
    if value < 1:
        message = f"{what} must be at least 1, got {value}"
        raise ValueError(message)


def check_method(group: Group, method: object, site: Site) -> None:
    """Refuse a method of another class than the group's actors are of, and what is no method."""
    if not callable(method):
        actor = name_of(group.factory)
        named = isinstance(method, str) and callable(getattr(group.factory, method, None))
        right = f"{actor}.{method}, the method itself" if named else f"a method of {actor}"
        message = f"{site}: {method!r} is no method of {group.name} ({group.site}); pass {right}"
        raise PlanError(message)
    owner = _owner(method)
    if owner is not None and inspect.isclass(group.factory) and not issubclass(group.factory, owner):
        message = (
            f"{site}: {name_of(method)} is a method of {owner.__name__}, but {group.name} ({group.site}) "
            f"are actors of {group.factory.__name__}; pass a method of {group.factory.__name__}"
        )
        raise PlanError(message)


def check_constructed(group: Group) -> None:
    """Refuse arguments that the constructor of a group's actors does not take."""
    try:
        signature = inspect.signature(group.factory)
    except (TypeError, ValueError):  # of some that are written in C nothing is known
        return
    try:
        signature.bind(*group.args, **group.kwargs)
    except TypeError as error:
        name = name_of(group.factory)
        message = f"{group.site}: {name} cannot be made of these arguments: {error}; it is {name}"
        message += _plain(signature)
        raise PlanError(message) from None


def _plain(signature: inspect.Signature) -> str:
    """The parameters and their defaults."""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()
    ]
    return str(inspect.Signature(bare))


def check_own_shards(upstream: Node, group: Group, stage: str, site: Site) -> None:
    """Refuse a method of one group as a stage in the shards of another, even of the same class."""
    for other in producers_of(upstream) if upstream.parallel else ():
        if other is not group:
            message = (
                f"{site}: {stage} runs in {group.name} ({group.site}), but the shards of {upstream.name} "
                f"({upstream.site}) are in other actors, {other.name} ({other.site}); gather them first"
            )
            raise PlanError(message)


def check_counts(branch: Node, stage: str, site: Site) -> None:
    """Refuse a stage that counts steps where the items, drained ones too, are known to have none."""
    for counted in _consumed(branch):
        if not may_have(counted.item_type, "steps"):
            message = (
                f"{site}: {stage} counts the steps of items, but {counted.name} ({counted.site}) delivers "
                f"{show(counted.item_type)}, which has none; put a stage before it that makes batches"
            )
            raise PlanError(message)


def _consumed(branch: Node) -> list[Node]:
    """The nodes whose items a branch delivers or drains."""
    if not branch.drained:
        return [branch]
    if isinstance(branch, nodes.Drain):
        return [branch.input]
    return [node for inner in branch.inputs for node in _consumed(inner)]


def check_rounds(upstream: Node, mode: nodes.GatherMode, gather: str, site: Site) -> None:
    """Refuse a gather of a scattered stream that is not in rounds, or for which some items may give no output."""
    steps: list[Node] = []
    node = upstream
    while isinstance(node, nodes.OneInput) and not isinstance(node, nodes.Scatter):
        steps.append(node)
        node = node.input
    if isinstance(node, nodes.ParallelUnion):
        for branch in node.branches:
            check_rounds(branch, mode, gather, site)
    if not isinstance(node, nodes.Scatter):
        return
    if mode == "async":
        message = (
            f"{site}: {gather} would part the shards of {node.name} ({node.site}); gather them in rounds"
        )
        raise PlanError(message)
    for step in steps:
        if not isinstance(step, nodes.Apply | nodes.Place):
            message = (
                f"{site}: {step.name} ({step.site}) may give no output for an item of {node.name} ({node.site}), "
                "and the shards would wait for one another; put it behind the gather"
            )
            raise PlanError(message)


def _owner(method: Function) -> type | None:
    """The class in whose body the function was written, or None where that cannot be told."""
    path = getattr(method, "__qualname__", "").rpartition(".")[0]
    if not path or path.endswith("<locals>"):
        return None
    found: object = sys.modules.get(getattr(method, "__module__", None) or "")
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def check_complete(root: Node) -> None:
    """Refuse a plan in which an end of a fork or a partition feeds nothing: its buffer would fill for ever.

    Raises:
        PlanError: names the end.
    """
    used: dict[int, set[int]] = {}
    for node in walk(root):
        if isinstance(node, nodes.Outlet):
            used.setdefault(id(node.input), set()).add(node.index)
    for node in walk(root):
        if isinstance(node, nodes.Share) and len(used[id(node)]) < node.outlets:
            unused = min(set(range(node.outlets)) - used[id(node)])
            message = (
                f"{node.name}[{unused}] ({node.site}) feeds nothing in this plan; put it into the plan, through "
                "| drain if only for its side effects, or write .filter instead of a partition"
            )
            raise PlanError(message)


def check_linear(root: Node) -> None:
    """Refuse a stream that feeds two places of the plan (law 26).

    Raises:
        PlanError: names the stream and both places.
    """
    reader: dict[int, Node] = {}
    for node in walk(root):
        for child in node.inputs:
            if isinstance(child, nodes.Share):
                continue
            other = reader.setdefault(id(child), node)
            if other is not node or node.inputs.count(child) > 1:
                message = (
                    f"{child.name} ({child.site}) is used twice, by {other.name} ({other.site}) and by "
                    f"{node.name} ({node.site}); a stream feeds one place: share its items with .fork(n, "
                    "buffer=...), or make an independent stream with a second produce"
                )
                raise PlanError(message)
    outlets: dict[tuple[int, int], Node] = {}
    for node in walk(root):
        if (
            isinstance(node, nodes.Outlet)
            and outlets.setdefault((id(node.input), node.index), node) is not node
        ):
            message = f"{node.site}: an outlet of {node.input.name} ({node.input.site}) is used twice"
            raise PlanError(message)


def check_policies(root: Node) -> None:
    """Refuse policies for errors (`Actors.on_error`) that could never do what they say.

    Raises:
        PlanError: names the group, and the stage for which its actors are needed where that is why.
    """
    for group in groups_of(root):
        if group.on_error == "restart" and group.restarts == 0:
            message = f'{group.name} ({group.site}): on_error("restart") needs restarts; add .restarts(n)'
            raise PlanError(message)
        if group.on_error == "drop_shard" and group.count == 1:
            message = (
                f'{group.name} ({group.site}): on_error("drop_shard") would leave no actor of a group of one; '
                'use "restart", or more actors'
            )
            raise PlanError(message)
    for node in walk(root):
        for group in _needed_whole(node):
            if group.on_error == "drop_shard":
                message = (
                    f'{group.name} ({group.site}): on_error("drop_shard") is for actors that are shards, but '
                    f'{node.name} ({node.site}) needs all of them; use "restart"'
                )
                raise PlanError(message)


def _needed_whole(node: Node) -> tuple[Group, ...]:
    """The groups that a node needs every actor of."""
    match node:
        case nodes.Place(group=group) if not node.parallel:
            return (group,)
        case nodes.Scatter(group=group):
            return (group,)
        case nodes.SyncWeights(learner=learner) | nodes.ReplyWeights(learner=learner):
            return (learner,)
        case _:
            return ()
