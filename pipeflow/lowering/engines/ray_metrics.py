"""A run's figures as Ray's own metrics, which Ray exports to Prometheus.

Apart from the engine, which only says when; with it and `ray_connection` the only module that imports Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ray.util.metrics import Counter, Gauge

from pipeflow.lowering.stats import NodeStats, RunStats

# A plan may have two nodes of one name on one line.
_TAGS = ("node", "site", "index")


S = TypeVar("S")


@dataclass(frozen=True)
class _Figure(Generic[S]):
    """Something that is counted of a node, or of the run. total: whether it only grows."""

    name: str
    what: str
    of: Callable[[S], float]
    total: bool

    def metric(self, tags: tuple[str, ...] = ()) -> Counter | Gauge:
        kind = Counter if self.total else Gauge
        return kind(f"pipeflow_{self.name}", self.what, tags)


_OF_NODES: Sequence[_Figure[NodeStats]] = (
    _Figure("items_in", "Items taken from its inputs.", lambda node: node.items_in, total=True),
    _Figure("items_out", "Items delivered.", lambda node: node.items_out, total=True),
    _Figure("busy_seconds", "Time in user code, of all actors.", lambda node: node.busy_seconds, total=True),
    _Figure("waiting_seconds", "Time until it had an item.", lambda node: node.waiting_seconds, total=True),
    _Figure("queue", "Items made or in flight, not yet delivered.", lambda node: node.queue, total=False),
    _Figure("mean_policy_lag", "Weights behind, on average.", lambda node: node.mean_lag, total=False),
    _Figure("max_policy_lag", "Weights behind, at most.", lambda node: node.max_lag, total=False),
)
_OF_RUN: Sequence[_Figure[RunStats]] = (
    _Figure("restarts", "How often actors were started again.", lambda stats: stats.restarts, total=True),
    _Figure("lost_calls", "Calls for an item that came to nothing.", lambda stats: stats.lost, total=True),
    _Figure("given_up_actors", "Actors given up.", lambda stats: len(stats.given_up), total=False),
)


class Metrics:
    """The metrics of one run: counters and gauges named ``pipeflow_...``, to which Ray adds its own labels.

    What is there when they are published first is not counted: a run that is resumed counted it before.
    """

    def __init__(self) -> None:
        self._nodes = [(figure, figure.metric(_TAGS)) for figure in _OF_NODES]
        self._run = [(figure, figure.metric()) for figure in _OF_RUN]
        self._before: dict[tuple[str, int], float] = {}

    def publish(self, stats: RunStats) -> None:
        """Publish the figures as they stand."""
        for index, node in enumerate(stats.nodes):
            tags = {"node": node.name, "site": node.site, "index": str(index)}
            for figure, metric in self._nodes:
                self._set(metric, figure.name, figure.of(node), index, tags)
        for of_run, metric in self._run:
            self._set(metric, of_run.name, of_run.of(stats), -1, {})

    def _set(
        self, metric: Counter | Gauge, name: str, value: float, index: int, tags: dict[str, str]
    ) -> None:
        if isinstance(metric, Gauge):
            metric.set(value, tags)
            return
        increase = value - self._before.get((name, index), value)
        self._before[name, index] = value
        if increase > 0:
            metric.inc(increase, tags)
