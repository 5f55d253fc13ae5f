"""Which items the driver reads: they come to it with the replies, while all others stay where they were made.

Apart from the cursors, since it is known before anything runs.
"""

from __future__ import annotations

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Node
from pipeflow.lowering.fusion import consumer_of


def read_on_driver(root: Node, number: dict[int, int]) -> set[int]:
    """The gathers and placed stages, by identity, every item of which the driver reads and nobody else.

    Args:
        root: the plan's last node, whose items the consumer gets.
        number: the plan's numbering of nodes, by identity.
    """
    found: set[int] = set()

    def visit(node: Node, read: bool) -> None:
        if read and isinstance(node, nodes.Gather | nodes.Place):
            found.add(id(node))
        match node:
            case nodes.Place():
                visit(consumer_of(node, number)[1], read=False)
            case nodes.Batch():
                visit(node.input, read)  # the driver makes the list, of references
            case nodes.Apply() | nodes.Expand() | nodes.Reply() | nodes.Zip():
                for upstream in node.inputs:
                    visit(upstream, read=True)
            # A drain wants nothing, an outlet shares with others, and the rest hand references to actors.
            case nodes.Drain() | nodes.Share() | nodes.Send() | nodes.Scatter():
                for upstream in node.inputs:
                    visit(upstream, read=False)
            case _:
                for upstream in node.inputs:
                    visit(upstream, read)

    visit(root, read=True)
    return found
