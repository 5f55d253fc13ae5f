"""What the page shows of one moment of a run, made from the run's counters.

Apart from the recording, which says when a snapshot is taken and keeps it: here are the figures and how they are
worked out. Rates are those of a window of the latest seconds, since a run changes and a page shows the present.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """The node that holds the run up, and what to try.

    node: its place in the plan; None where nothing was busy. busy: the share of the time in which its actors were
    busy with all stages that they run.
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


@dataclass(frozen=True)
class Window:
    """The latest part of a run: its seconds, the counters of the whole run, and those of this part alone."""

    seconds: float
    total: RunStats
    recent: RunStats


def window_between(before: Reading, now: Reading) -> Window:
    """What happened between two readings."""
    elapsed = max(now.seconds - before.seconds, 0.0)
    return Window(elapsed, now.stats, now.stats.since(before.stats))


def figures(window: Window) -> tuple[NodeFigures, ...]:
    """The figures of every node of the plan, with the rates of a window."""
    recent = window.recent
    pairs = zip(window.total.nodes, recent.nodes, strict=True)
    return tuple(_node_figures(total, node, window.seconds, recent.busy_share(node)) for total, node in pairs)


def bottleneck(window: Window) -> Bottleneck:
    """The node that held the run up in a window, by the rule of `RunStats.bottleneck`."""
    found = window.recent.bottleneck
    if found is None:
        return Bottleneck(None, 0.0, "No stage was busy.")
    return Bottleneck(
        window.recent.nodes.index(found.node), min(found.busy_share, 1.0), f"Try {found.advice}."
    )


def _node_figures(total: NodeStats, recent: NodeStats, elapsed: float, busy: float) -> NodeFigures:
    def rate(amount: float) -> float:
        return max(amount, 0.0) / elapsed if elapsed else 0.0

    return NodeFigures(
        total.items_in,
        total.items_out,
        per_second=rate(recent.items_out),
        # A call that outlasts the window is counted when it ends.
        busy=min(max(busy, 0.0), 1.0),
        waiting=min(rate(recent.waiting_seconds), 1.0),
        waiting_seconds=total.waiting_seconds,
        queue=total.queue,
        mean_lag=total.mean_lag,
        max_lag=total.max_lag,
    )
