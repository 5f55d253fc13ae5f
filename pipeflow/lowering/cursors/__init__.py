"""Cursors: every node that acts on the driver while a plan runs, as something that can be polled.

`cursor.py` has what all share, the other modules one role each: sources and transforms on the driver, gathers and
their shards, stages placed on actors, messages, joining, sharing, pacing. `cursor_of` makes the cursor of a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Node
from pipeflow.lowering.cursors.cursor import Cursor as Cursor
from pipeflow.lowering.cursors.driver import (
    ApplyCursor,
    BatchCursor,
    ExpandCursor,
    ItemsCursor,
    MaxLagCursor,
)
from pipeflow.lowering.cursors.driver import GateCursor as GateCursor
from pipeflow.lowering.cursors.gathers import AsyncGatherCursor, SyncGatherCursor
from pipeflow.lowering.cursors.joining import (
    AsyncUnionCursor,
    ByStepsCursor,
    DrainCursor,
    PrioritisedCursor,
    RoundRobinCursor,
    UnionCursor,
    ZipCursor,
)
from pipeflow.lowering.cursors.messages import (
    NotifyCursor,
    ReplyCursor,
    ReplyWeightsCursor,
    SendCursor,
    SyncWeightsCursor,
)
from pipeflow.lowering.cursors.pacing import BufferCursor as BufferCursor
from pipeflow.lowering.cursors.pacing import PaceCursor
from pipeflow.lowering.cursors.placement import PlaceCursor
from pipeflow.lowering.cursors.shards import shards_on
from pipeflow.lowering.cursors.sharing import OutletCursor, Sharing
from pipeflow.lowering.fusion import consumer_of, shards_of

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


_UNIONS: dict[nodes.UnionPolicy, type[UnionCursor]] = {
    "async": AsyncUnionCursor,
    "round_robin": RoundRobinCursor,
    "by_steps": ByStepsCursor,
    "prioritised": PrioritisedCursor,
}


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
            case nodes.Batch():
                return BatchCursor(executor, node, self.cursor(node.input))
            case nodes.Expand():
                return ExpandCursor(executor, node, self.cursor(node.input))
            case nodes.Gate():
                return GateCursor(executor, node, self.cursor(node.input))
            case nodes.Gather():
                shards, feeding = shards_on(
                    executor, node, shards_of(node.input, executor.number), self.cursor
                )
                kind = AsyncGatherCursor if node.mode == "async" else SyncGatherCursor
                return kind(executor, node, shards, feeding)
            case nodes.MaxLag():
                gather = self.cursor(node.input)
                if node.wait and isinstance(gather, AsyncGatherCursor):
                    gather.max_lag = node.limit
                return MaxLagCursor(executor, node, gather)
            case nodes.Buffer():
                return BufferCursor(executor, node, self.cursor(node.input))
            case nodes.Pace():
                return PaceCursor(executor, node, self.cursor(node.input))
            case nodes.Place():
                program, upstream = consumer_of(node, executor.number)
                return PlaceCursor(executor, node, self.cursor(upstream), program)
            case nodes.Send():
                return SendCursor(executor, node, self.cursor(node.input))
            case nodes.SyncWeights():
                return SyncWeightsCursor(executor, node, self.cursor(node.input))
            case nodes.Notify():
                return NotifyCursor(executor, node, self.cursor(node.input))
            case nodes.ReplyWeights():
                return ReplyWeightsCursor(executor, node, self.cursor(node.input))
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
                return _UNIONS[node.policy](executor, node, branches)
            case nodes.Zip():
                return ZipCursor(executor, node, self.cursor(node.left), self.cursor(node.right))
            case _:
                message = f"{node.name} has no place on the driver"
                raise AssertionError(message)
