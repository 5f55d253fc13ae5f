"""A plan as nodes and edges, the part of the page that stays the same for the whole run.

Apart from `pipeflow.dsl.explain`, which makes pictures as text: here is what a page needs to draw one itself, and
where each stage runs, which the lowering decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pipeflow.dsl import nodes
from pipeflow.dsl.item_types import show
from pipeflow.dsl.nodes import Group, Node
from pipeflow.dsl.trees import group_names, shard_count, walk
from pipeflow.lowering.fusion import consumer_of

Kind: TypeAlias = Literal["shard", "actor", "driver"]
"""Where a stage runs: in every shard before a gather, in the actors that it was placed on, or in the driver."""


@dataclass(frozen=True)
class GraphNode:
    """A stage.

    name: as in `RunStats`. kind: where it runs. actors: the group whose actors run it, "driver" for the driver.
    count: how many of them. site: ``file:line`` where it was written. item_type: the stream that it makes.
    """

    name: str
    kind: Kind
    actors: str
    count: int
    site: str
    item_type: str


@dataclass(frozen=True)
class GraphEdge:
    """Items, or weights, that go from one node to another; both are places in `PlanGraph.nodes`.

    label: the type of the items. weights: whether it is weights that go there, beside the stream.
    """

    source: int
    target: int
    label: str
    weights: bool = False


@dataclass(frozen=True)
class PlanGraph:
    """A plan; its nodes are in the order of `RunStats.nodes`."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


def plan_graph(root: Node) -> PlanGraph:
    """The graph of a plan, given its last node."""
    order = list(walk(root))
    number = {id(node): index for index, node in enumerate(order)}
    names = group_names(root)
    hosts = _hosts(order, number)
    return PlanGraph(
        tuple(_graph_node(node, hosts.get(index), names) for index, node in enumerate(order)),
        (*_item_edges(order, number), *_weight_edges(order, number)),
    )


def _hosts(order: list[Node], number: Mapping[int, int]) -> dict[int, Group]:
    """The group that each placed stage runs on, and each stage that is fused into one."""
    hosts: dict[int, Group] = {}
    for node in order:
        if isinstance(node, nodes.Place):
            program, _ = consumer_of(node, number)
            hosts |= {step.node: node.group for step in program.all_steps}
    return hosts


def _graph_node(node: Node, host: Group | None, names: Mapping[int, str]) -> GraphNode:
    site, item_type = str(node.site), node.type_name
    if node.parallel:
        groups = dict.fromkeys(names[id(group)] for group in nodes.producers_of(node))
        return GraphNode(node.name, "shard", ", ".join(groups), shard_count(node), site, item_type)
    if host is not None:
        return GraphNode(node.name, "actor", names[id(host)], host.count, site, item_type)
    return GraphNode(node.name, "driver", "driver", 1, site, item_type)


def _item_edges(order: list[Node], number: Mapping[int, int]) -> Iterator[GraphEdge]:
    for node in order:
        for child in node.inputs:
            label = "" if child.drained else show(child.item_type)
            yield GraphEdge(number[id(child)], number[id(node)], label)


def _weight_edges(order: list[Node], number: Mapping[int, int]) -> Iterator[GraphEdge]:
    """From the nodes that send weights to the sources whose actors get them."""
    for node in order:
        match node:
            case nodes.SyncWeights(workers=workers):
                readers: tuple[Group, ...] = (workers,)
            case nodes.ReplyWeights(input=upstream):
                readers = nodes.producers_of(upstream)
            case _:
                continue
        for other in order:
            if isinstance(other, nodes.Produce | nodes.Scatter) and other.group in readers:
                yield GraphEdge(number[id(node)], number[id(other)], "weights", weights=True)
