"""What is read off a whole expression tree: its nodes in order, its groups of actors and what they are called."""

from __future__ import annotations

from collections.abc import Iterator

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Group, Node


def walk(root: Node, *, through_drains: bool = True) -> Iterator[Node]:
    """Every node of the tree once, inputs before the nodes that read them.

    Without `through_drains`, those whose items come to the root: nothing of a branch that is drained does.
    """
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, entered = stack.pop()
        if entered:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend(
                (child, False) for child in reversed(node.inputs) if through_drains or not child.drained
            )


def shard_count(node: Node) -> int:
    """How many shards a parallel node has."""
    match node:
        case nodes.Produce(group=group) | nodes.Scatter(group=group):
            return group.count
        case nodes.SelectShards(indices=indices):
            return len(indices)
        case _:
            return sum(shard_count(child) for child in node.inputs)


def groups_of(root: Node) -> tuple[Group, ...]:
    """The actor groups of a plan in the order in which its nodes mention them."""
    found: dict[int, Group] = {}
    for node in walk(root):
        for group in node.groups:
            found.setdefault(id(group), group)
    return tuple(found.values())


def group_names(root: Node) -> dict[int, str]:
    """What the groups of a plan are called in a run, by identity; groups of one name are told apart by number."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for group in groups_of(root):
        name, number = group.name, 1
        while name in taken:
            number += 1
            name = f"{group.name}#{number}"
        taken.add(name)
        names[id(group)] = name
    return names
