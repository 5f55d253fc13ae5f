"""Rules about ends of one fork or partition that meet again where they are read in turns, as a `zip` or a
`round_robin` does: who of them takes more items than the buffer of the other holds waits for ever.

How many items of the fork a branch takes for one of its own is read off its stages. Where that depends on the
items, as behind a `flat_map`, nothing is said.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from pipeflow.dsl import nodes
from pipeflow.dsl.findings import Finding, Rule
from pipeflow.dsl.gating import EveryNth, Filtering, Tapping
from pipeflow.dsl.gating import OncePerSteps as CountingSteps
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.structure_rules import gate_state
from pipeflow.dsl.trees import walk

UNEQUAL_TURNS = Rule("PF111", "error", "ends of a fork that are read in turns, one faster than the other")
SHORT_BUFFER = Rule("PF112", "error", "a fork whose buffer is too small for the turns of its readers")
PARTITION_IN_TURNS = Rule("PF113", "warning", "sides of a partition that are read in turns")


def turn_findings(root: Node) -> Iterator[Finding]:
    """Where ends of one fork or partition wait for one another."""
    for node in walk(root):
        if isinstance(node, nodes.Zip):
            yield from _in_turns(node, node.inputs, (1, 1))
        elif isinstance(node, nodes.Union) and node.policy == "round_robin":
            yield from _in_turns(node, node.branches, tuple(int(weight) for weight in node.weights))


@dataclass(frozen=True)
class _Reader:
    """How a branch reads one end of a fork: what it takes in a turn, and the stages that drop some of it."""

    outlet: nodes.Outlet
    taken: int
    droppers: tuple[Node, ...]

    @property
    def dropped(self) -> tuple[object, ...]:
        """What it drops, to be compared with what another reader does."""
        return tuple(gate_state(node) or id(node) for node in self.droppers)


def _in_turns(joined: Node, branches: tuple[Node, ...], weights: tuple[int, ...]) -> Iterator[Finding]:
    readers = [_readers(branch, weight) for branch, weight in zip(branches, weights, strict=True)]
    for left, right in itertools.combinations(readers, 2):
        for share in left.keys() & right.keys():
            yield from _compared(joined, left[share], right[share])


def _compared(joined: Node, left: _Reader, right: _Reader) -> Iterator[Finding]:
    share, buffer = left.outlet.input, left.outlet.input.buffer
    where = f"{share.name} ({share.site})"
    if share.predicate is not None:
        message = (
            f"{joined.name} reads both sides of {where} in turns, and waits for ever when more than "
            f"{buffer} items more go to one side; join them with & alone, which serves the side that has "
            "an item"
        )
        yield PARTITION_IN_TURNS.broken(joined.site, message)
        return
    turns = isinstance(joined, nodes.Union)
    dropping = [
        node
        for node in (*left.droppers, *right.droppers)
        if not (turns and isinstance(node, nodes.Gate) and node.passes_turn)
    ]
    if left.dropped != right.dropped and dropping:
        dropper = dropping[0]
        message = (
            f"{joined.name} reads two ends of {where} in turns, and {dropper.name} ({dropper.site}) drops "
            f"items of one: when it has dropped more than the buffer of {buffer} holds, both wait for "
            "ever; put it before the fork"
        )
        yield UNEQUAL_TURNS.broken(joined.site, message)
    elif left.taken != right.taken:
        message = (
            f"{joined.name} reads two ends of {where} in turns, but {left.taken} of one for {right.taken} "
            f"of the other: when more than the buffer of {buffer} are left, both wait for ever; take as "
            "many of each"
        )
        yield UNEQUAL_TURNS.broken(joined.site, message)
    elif turns and left.taken > buffer:
        message = (
            f"{joined.name} takes {left.taken} items of {where} in one turn, and its buffer holds {buffer} "
            f"for the other end meanwhile; write buffer={left.taken}"
        )
        yield SHORT_BUFFER.broken(joined.site, message)


def _readers(branch: Node, weight: int) -> dict[int, _Reader]:
    """The forks and partitions that a branch reads, by identity."""
    found: dict[int, _Reader] = {}
    node, taken, droppers = branch, weight, list[Node]()
    while True:
        match node:
            case nodes.Outlet():
                found[id(node.input)] = _Reader(node, taken, tuple(droppers))
                if node.input.predicate is not None:
                    return found
                node = node.input.input
                continue
            case nodes.Batch(size=size):
                taken *= size
            case nodes.Gate():
                state = gate_state(node)
                if state is None:
                    return found
                made, arguments = state
                if made is EveryNth and isinstance(arguments[0], int):
                    taken *= arguments[0]
                elif made is Filtering or made is CountingSteps:
                    droppers.append(node)
                elif made is not Tapping:
                    return found  # it ends the branch, which may be before anything waits
            case nodes.Pace(drops=True) | nodes.MaxLag(wait=False):
                droppers.append(node)
            case nodes.Expand() | nodes.Gather() | nodes.Scatter() | nodes.Share():
                return found
            case nodes.OneInput():
                pass
            case _:
                return found
        if node.parallel:
            return found
        (node,) = node.inputs
