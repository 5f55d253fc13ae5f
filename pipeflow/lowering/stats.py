"""What a run counts for every node of its plan: items, busy and waiting seconds, queue length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from pipeflow.dsl.nodes import Node
from pipeflow.lowering.program import Tally

if TYPE_CHECKING:
    from pipeflow.lowering.actors import RunningActors


@dataclass(slots=True)
class Meter:
    """The live counters of one node."""

    taken: int = 0
    made: int = 0
    busy: float = 0.0
    waiting: float = 0.0
    lag_sum: int = 0
    lag_max: int = 0

    def add(self, tally: Tally) -> None:
        """Add what an actor reports of the node."""
        self.taken += tally.taken
        self.made += tally.made
        self.busy += tally.busy

    def add_lag(self, lag: int) -> None:
        """Note the policy lag of an item that a gather delivers."""
        self.lag_sum += lag
        self.lag_max = max(self.lag_max, lag)


@dataclass(frozen=True)
class NodeStats:
    """One node's figures.

    Attributes:
        name: the node's name.
        site: ``file:line`` where it was written.
        items_in: items taken from its inputs.
        items_out: items delivered downstream.
        busy_seconds: time inside user code, summed over actors.
        waiting_seconds: time between being asked for an item and having one.
        queue: items that are finished or in flight and not yet delivered.
        mean_lag: how many weights the actor of a gather's item was sent between being asked for it and its
            delivery, on average; 0 for other nodes.
        max_lag: the largest.
    """

    name: str
    site: str
    items_in: int
    items_out: int
    busy_seconds: float
    waiting_seconds: float
    queue: int
    mean_lag: float = 0.0
    max_lag: int = 0


@dataclass(frozen=True)
class RunStats:
    """The figures of a run; nodes in the order of the data, sources first. ``str`` of it is a table.

    Attributes:
        engine: the engine's name.
        nodes: the figures of every node.
        restarts: how often actors were started again.
        given_up: the names of the actors that were given up.
        lost: how many calls for an item came to nothing, since their actor died or code in it raised.
    """

    engine: str
    nodes: tuple[NodeStats, ...]
    restarts: int = 0
    given_up: tuple[str, ...] = ()
    lost: int = 0

    def __getitem__(self, name: str) -> NodeStats:
        """The one node of that name.

        Raises:
            KeyError: there is none, or several.
        """
        found = [node for node in self.nodes if node.name == name]
        if len(found) != 1:
            message = f"{len(found)} nodes are named {name!r}; the names are {[n.name for n in self.nodes]}"
            raise KeyError(message)
        return found[0]

    @override
    def __str__(self) -> str:
        head = ("node", "in", "out", "busy s", "waiting s", "queue", "written at")
        rows = [
            (
                node.name,
                str(node.items_in),
                str(node.items_out),
                f"{node.busy_seconds:.3f}",
                f"{node.waiting_seconds:.3f}",
                str(node.queue),
                node.site,
            )
            for node in self.nodes
        ]
        widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
        lines = [
            "  ".join(
                cell.ljust(width) if column in (0, 6) else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in [head, *rows]
        ]
        return "\n".join(lines)


def run_stats(
    engine: str,
    nodes: Sequence[Node],
    meters: Sequence[Meter],
    queues: Mapping[int, int],
    running: RunningActors,
    lost: int,
) -> RunStats:
    """The figures of a run, from its live counters."""
    figures = tuple(
        NodeStats(
            node.name,
            str(node.site),
            meter.taken,
            meter.made,
            meter.busy,
            meter.waiting,
            queues.get(index, 0),
            meter.lag_sum / meter.made if meter.made else 0.0,
            meter.lag_max,
        )
        for index, (node, meter) in enumerate(zip(nodes, meters, strict=True))
    )
    return RunStats(engine, figures, sum(running.restarted.values()), tuple(running.given_up), lost)
