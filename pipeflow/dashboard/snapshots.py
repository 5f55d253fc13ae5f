"""What the page shows of one moment of a run, made from the run's counters.

Apart from the recording, which says when a snapshot is taken and keeps it: here are the figures and how they are
worked out. Rates are those of a window of the latest seconds, since a run changes and a page shows the present.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeflow.dashboard.plan_graph import GraphNode, PlanGraph
from pipeflow.lowering.stats import NodeStats, RunStats


@dataclass(frozen=True)
class NodeFigures:
    """One node's figures; shares are of the window's time, an actor's for `busy`, 0 to 1.

    items_in, items_out: since the run started. per_second: items delivered. busy: share of the time of the actors
    that run the node in which its code ran. waiting: share of the time in which whoever reads the node waited for
    its items. waiting_seconds: the same, in seconds since the run started. queue: items that are finished or in
    flight and not delivered. mean_lag, max_lag: policy lag of what a gather delivered, in weights.
    """

    items_in: int
    items_out: int
    per_second: float
    busy: float
    waiting: float
    waiting_seconds: float
    queue: int
    mean_lag: float
    max_lag: int


@dataclass(frozen=True)
class Bottleneck:
    """The node whose actors are the busiest, and what to try.

    node: its place in the plan; None where nothing is busy enough to hold the others up. busy: the share of the
    time in which its actors, or else the busiest ones, were busy with all stages that they run.
    """

    node: int | None
    busy: float
    advice: str


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment.

    seconds: since the run started. steps: environment steps so far, 0 where nothing says so. nodes: the figures in
    the plan's order. curves: numbers by name, such as losses; those of which nothing is known are left out.
    restarts, given_up, lost: as in `RunStats`.
    """

    seconds: float
    steps: int
    nodes: tuple[NodeFigures, ...]
    bottleneck: Bottleneck
    curves: Mapping[str, float] = field(default_factory=dict[str, float])
    restarts: int = 0
    given_up: tuple[str, ...] = ()
    lost: int = 0


@dataclass(frozen=True)
class Reading:
    """The counters of a run, and when they were read, in seconds since the run started."""

    seconds: float
    stats: RunStats


def figures(graph: PlanGraph, before: Reading, now: Reading) -> tuple[NodeFigures, ...]:
    """The figures of every node of the plan, with the rates between two readings."""
    elapsed = max(now.seconds - before.seconds, 0.0)
    pairs = zip(graph.nodes, before.stats.nodes, now.stats.nodes, strict=True)
    engine = now.stats.engine
    return tuple(
        _node_figures(earlier, later, elapsed, _width(node, engine)) for node, earlier, later in pairs
    )


def bottleneck(graph: PlanGraph, nodes: Sequence[NodeFigures], engine: str) -> Bottleneck:
    """What holds the run up: the busiest actors, and of what they run the stage with the largest share."""
    load: dict[str, float] = {}
    for node, figure in zip(graph.nodes, nodes, strict=True):
        load[node.actors] = load.get(node.actors, 0.0) + figure.busy
    busiest = max(load, key=load.__getitem__)
    # In one process the actors take turns: together they are what the run waits for.
    busy = sum(load.values()) if _is_one_process(engine) else load[busiest]
    if busy < _BUSY:
        return Bottleneck(None, busy, _IDLE_ALONE if _is_one_process(engine) else _IDLE)
    mine = [index for index, node in enumerate(graph.nodes) if node.actors == busiest]
    found = max(mine, key=lambda index: nodes[index].busy)
    return Bottleneck(found, min(load[busiest], 1.0), _advice(graph.nodes[found], engine))


# Below half of its time, an actor is not what the others wait for.
_BUSY = 0.5
_IDLE = (
    "No stage is busy for half of the time: the run waits for rounds, messages or the consumer of its items. Try "
    "gather_async in place of rounds, more items in flight (num_async, max_in_flight), or a buffer."
)

_IDLE_ALONE = (
    "The stages' code runs for less than half of the time; the rest goes to the loop that reads the items and to "
    "the run itself. Try larger items, or less work in the loop."
)


def _advice(node: GraphNode, engine: str) -> str:
    match node.kind:
        case _ if _is_one_process(engine):
            # What else is written here would not help: all actors share this process.
            where = "environment" if node.kind == "shard" else "stage"
            return (
                f"All actors share one process. Make this {where} cheaper, or use the Ray engine, where every "
                "actor has a process of its own."
            )
        case "shard":
            return (
                f"More {node.actors} actors, more environments in each, or a cheaper stage before the gather."
            )
        case "actor":
            return (
                f"Give {node.actors} less to do for an item (larger batches, fewer epochs, a GPU), or move what "
                "needs no state of it before the gather."
            )
        case "driver":
            return "This runs in the driver. Move it before the gather, or place it on actors of its own."


def _is_one_process(engine: str) -> bool:
    return engine == "inline" or engine.startswith("sim(")


def _width(node: GraphNode, engine: str) -> int:
    """How many seconds of a node's code can run in a second."""
    return 1 if _is_one_process(engine) else max(node.count, 1)


def _node_figures(before: NodeStats, now: NodeStats, elapsed: float, width: int) -> NodeFigures:
    def rate(earlier: float, later: float) -> float:
        return max(later - earlier, 0.0) / elapsed if elapsed else 0.0

    return NodeFigures(
        now.items_in,
        now.items_out,
        per_second=rate(before.items_out, now.items_out),
        # A call that outlasts the window is counted when it ends.
        busy=min(rate(before.busy_seconds, now.busy_seconds) / width, 1.0),
        waiting=min(rate(before.waiting_seconds, now.waiting_seconds), 1.0),
        waiting_seconds=now.waiting_seconds,
        queue=now.queue,
        mean_lag=now.mean_lag,
        max_lag=now.max_lag,
    )
