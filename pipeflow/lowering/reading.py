"""Reading items on the driver, and which it reads: they come with the replies, all others stay where they are.

Apart from the cursors, since it is known before anything runs, and the same for all of them.
"""

from __future__ import annotations

import copy

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.sourced import Source, Sourced
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.fusion import consumer_of
from pipeflow.lowering.items import Item


class Reader:
    """Items as values of this process, whatever engine they lie in."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def value(self, item: Item) -> object:
        """The item itself; fetched once where it is remote."""
        if item.parts is not None:
            return [self.value(part) for part in item.parts]
        if item.handle is not None:
            item.value, item.handle = self._engine.fetch(item.handle), None
        return item.value

    def argument(self, item: Item) -> object:
        """The item as an argument of a call: by reference where it is remote; only a list is read for it."""
        return item.argument if item.parts is None else self.value(item)

    def delivered(self, item: Item) -> object:
        """The item as its stream's type says: together with its source where the stream is `Sourced`."""
        value = self.value(item)
        if not item.origins:
            return value
        return Sourced(value, tuple(Source(origin.group.name, origin.index) for origin in item.origins))

    def copied(self, item: Item) -> Item:
        """The same item for another branch, sharing nothing writable with this one (law 26)."""
        if item.parts is not None:
            return Item(parts=tuple(self.copied(part) for part in item.parts), origins=item.origins)
        if item.handle is not None:
            return Item(handle=self._engine.duplicate(item.handle), origins=item.origins)
        return Item(copy.deepcopy(item.value), origins=item.origins)


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
