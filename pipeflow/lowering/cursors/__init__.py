"""Cursors: every node that acts on the driver while a plan runs, as something that can be polled.

`cursor.py` has what all share, the other modules one role each: sources and transforms on the driver,
gathers, stages placed on actors and messages, concurrency. `cursor_of` makes the cursor of a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Node
from pipeflow.lowering.cursors.concurrency import (
    AsyncUnionCursor,
    DrainCursor,
    OutletCursor,
    RoundRobinCursor,
    Sharing,
)
from pipeflow.lowering.cursors.cursor import Cursor as Cursor
from pipeflow.lowering.cursors.driver import ApplyCursor, ExpandCursor, GateCursor, ItemsCursor, MaxLagCursor
from pipeflow.lowering.cursors.gathers import AsyncGatherCursor, SyncGatherCursor
from pipeflow.lowering.cursors.messages import ReplyCursor, SendCursor, SyncWeightsCursor
from pipeflow.lowering.cursors.placement import PlaceCursor
from pipeflow.lowering.fusion import consumer_of, shards_of

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


def cursor_of(executor: Executor, node: Node) -> Cursor:
    """The cursor of a node, with the cursors of all that it reads; programs are installed on the way."""
    return _Builder(executor).cursor(node)


class _Builder:
    """Keeps the state of forks while a tree is built, since several outlets read one input."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._shared: dict[int, Sharing] = {}

    def cursor(self, node: Node) -> Cursor:
        made = self._made(node)
        self._executor.cursors[self._executor.number[id(node)]] = made
        return made

    def _made(self, node: Node) -> Cursor:
        executor = self._executor
        match node:
            case nodes.FromItems():
                return ItemsCursor(executor, node)
            case nodes.Apply():
                return ApplyCursor(executor, node, self.cursor(node.input))
            case nodes.Expand():
                return ExpandCursor(executor, node, self.cursor(node.input))
            case nodes.Gate():
                return GateCursor(executor, node, self.cursor(node.input))
            case nodes.Gather():
                shards = shards_of(node.input, executor.number)
                kind = AsyncGatherCursor if node.mode == "async" else SyncGatherCursor
                return kind(executor, node, shards)
            case nodes.MaxLag():
                gather = self.cursor(node.input)
                if node.wait and isinstance(gather, AsyncGatherCursor):
                    gather.max_lag = node.limit
                return MaxLagCursor(executor, node, gather)
            case nodes.Place():
                program, upstream = consumer_of(node, executor.number)
                return PlaceCursor(executor, node, self.cursor(upstream), program)
            case nodes.Send():
                return SendCursor(executor, node, self.cursor(node.input))
            case nodes.SyncWeights():
                return SyncWeightsCursor(executor, node, self.cursor(node.input))
            case nodes.Reply():
                return ReplyCursor(executor, node, self.cursor(node.input))
            case nodes.Drain():
                return DrainCursor(executor, node, self.cursor(node.input))
            case nodes.Outlet():
                sharing = self._shared.get(id(node.input))
                if sharing is None:
                    sharing = Sharing(executor, node.input, self.cursor(node.input.input))
                    self._shared[id(node.input)] = sharing
                return OutletCursor(executor, node, sharing)
            case nodes.Union():
                branches = [self.cursor(branch) for branch in node.branches]
                kind_ = AsyncUnionCursor if node.policy == "async" else RoundRobinCursor
                return kind_(executor, node, branches)
            case _:
                message = f"{node.name} has no place on the driver"
                raise AssertionError(message)
