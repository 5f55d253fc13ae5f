"""From the logical tree to programs: which stages run together in one actor (law 3).

Only stages that run in the same place are fused. Everything between a source and its gather is one program of
the shard's actor. Plain callables and expansions between a gather and a stage that is placed on one actor run
in that actor, on references, so that the driver never reads their items. What acts on the driver (gates, taps,
unions, callables pinned with ``here=True``) and what could split a state over several actors is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Group, Node
from pipeflow.dsl.trees import walk
from pipeflow.lowering.program import Program, Step


@dataclass(frozen=True)
class ShardProgram:
    """The program of one shard: the actor it runs in, by group and index.

    `scatter` is what feeds it, where it has no source of its own.
    """

    group: Group
    index: int
    program: Program
    scatter: nodes.Scatter | None = None


def shards_of(node: Node, number: Mapping[int, int]) -> list[ShardProgram]:
    """The shards of a parallel node, in shard order.

    Args:
        node: the node before a gather.
        number: the plan's numbering of nodes, by identity.
    """
    key = number[id(node)]
    match node:
        case nodes.Produce(group=group, method=method):
            program = Program(source=Step(key, method=method))
            return [ShardProgram(group, index, program) for index in range(group.count)]
        case nodes.Scatter(group=group):
            return [ShardProgram(group, index, Program(), node) for index in range(group.count)]
        case nodes.SelectShards(input=upstream, indices=indices):
            shards = shards_of(upstream, number)
            return [shards[index] for index in indices]
        case nodes.ParallelUnion(branches=branches):
            return [shard for branch in branches for shard in shards_of(branch, number)]
        case nodes.OneInput(input=upstream):
            step = _step(node, key)
            return [
                replace(shard, program=replace(shard.program, steps=(*shard.program.steps, step)))
                for shard in shards_of(upstream, number)
            ]
        case _:
            message = f"{node.name} cannot run in a shard"
            raise AssertionError(message)


def places_of(root: Node) -> list[tuple[Group, ...]]:
    """For every node, in the order of `walk`, the groups that it runs in; none where it is the driver."""
    order = list(walk(root))
    number = {id(node): index for index, node in enumerate(order)}
    places: list[tuple[Group, ...]] = [() for _ in order]
    for index, node in enumerate(order):
        if isinstance(node, nodes.Scatter):
            continue  # the driver spreads the items
        if node.parallel:
            places[index] = tuple(dict.fromkeys(nodes.producers_of(node)))
        elif isinstance(node, nodes.Place):
            program, _ = consumer_of(node, number)
            for step in program.steps:
                places[step.node] = (node.group,)
    return places


def consumer_of(place: nodes.Place, number: Mapping[int, int]) -> tuple[Program, Node]:
    """The program of a placed stage with what is fused into it, and the node that feeds the program."""
    steps = [_step(place, number[id(place)])]
    upstream = place.input
    while place.group.count == 1 and _moves(upstream):
        steps.insert(0, _step(upstream, number[id(upstream)]))
        upstream = upstream.inputs[0]
    return Program(steps=tuple(steps)), upstream


def _moves(node: Node) -> bool:
    """Whether a driver-side node can run in the actor that consumes its items.

    A callable on a `Sourced` stream stays: it is given the source, which only the driver knows.
    """
    match node:
        case nodes.Apply(here=here, input=upstream):
            return not here and not upstream.partly_sourced
        case nodes.Batch(input=upstream):
            return _moves(upstream)  # else the driver makes the list, of references
        case nodes.Concat():
            return True  # its items stay apart from their sources
        case nodes.Expand(input=upstream):
            return not upstream.partly_sourced
        case _:
            return False


def _step(node: Node, key: int) -> Step:
    match node:
        case nodes.Apply(function=function):
            return Step(key, function=function)
        case nodes.Expand(factory=factory):
            return Step(key, expansion=factory)
        case nodes.Gate(factory=factory):
            return Step(key, gating=factory)
        case nodes.Place(method=method):
            return Step(key, method=method)
        case _:
            message = f"{node.name} cannot run in an actor"
            raise AssertionError(message)
