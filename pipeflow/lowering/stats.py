"""What a run counts for every node of its plan: items, busy and waiting seconds, queue length.

Apart from `bottleneck`, which judges the figures, and from `stats_table`, which prints them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from typing_extensions import override

from pipeflow.dsl import nodes as plan
from pipeflow.dsl.nodes import Node
from pipeflow.lowering.bottleneck import Bottleneck, bottleneck_of
from pipeflow.lowering.program import Tally
from pipeflow.lowering.stats_table import table

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


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


@dataclass(slots=True)
class Stopwatch:
    """The wall seconds of a run: while it was asked for an item, and while whoever reads it did something else.

    It stands still before the first item is asked for and after the run has ended. Of the seconds in which an item
    was asked for, `starting` passed while actors were first started.
    """

    asked: float = 0.0
    reading: float = 0.0
    starting: float = 0.0
    reads: bool = False
    since: float | None = None

    def ask(self) -> None:
        """An item is asked for."""
        self._turn(reads=False)

    def deliver(self) -> None:
        """An item is there: what follows is the reader's time."""
        self._turn(reads=True)

    def stop(self) -> None:
        """The run has ended."""
        self._turn(self.reads)
        self.since = None

    def started(self, constructing: float, *, concurrent: bool) -> None:
        """An actor was started, whose constructor took so long; those that start at once wait for the last."""
        self.starting = self.seconds()[0] if concurrent else self.starting + constructing

    def seconds(self) -> tuple[float, float]:
        """Both, so far."""
        elapsed = 0.0 if self.since is None else time.perf_counter() - self.since
        return (self.asked, self.reading + elapsed) if self.reads else (self.asked + elapsed, self.reading)

    def stopped(self) -> Stopwatch:
        """One that stands still where this is."""
        return Stopwatch(*self.seconds(), self.starting)

    def _turn(self, reads: bool) -> None:
        now = time.perf_counter()
        if self.since is not None:
            if self.reads:
                self.reading += now - self.since
            else:
                self.asked += now - self.since
        self.reads, self.since = reads, now


Role = Literal["shard", "stage", "barrier", "driver"]
"""What a node is in the flow: work in the shards before a gather; work in actors that a stream is given to; a
gather in rounds, which holds its shards up until a round is consumed; or anything else, which the driver does."""


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
        role: what it is in the flow.
        groups: the names of the actor groups that it runs in; none where it runs on the driver.
        restarts: how often actors of these groups were started again.
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
    role: Role = "driver"
    groups: tuple[str, ...] = ()
    restarts: int = 0


@dataclass(frozen=True)
class GroupStats:
    """The figures of a group of actors.

    Attributes:
        name: the group's name.
        actors: how many actors it has.
        busy_seconds: time inside stages, summed over its actors. Constructors, messages such as weights, and
            pickling are not in it.
        restarts: how often actors of it were started again.
    """

    name: str
    actors: int
    busy_seconds: float
    restarts: int = 0


@dataclass(frozen=True)
class RunStats:
    """The figures of a run; nodes in the order of the data, sources first.

    ``str`` of it is a table with the busy share of every node, in which the bottleneck is marked, and what to try.

    Attributes:
        engine: the engine's name.
        nodes: the figures of every node.
        restarts: how often actors were started again.
        given_up: the names of the actors that were given up.
        lost: how many calls for an item came to nothing, since their actor died or code in it raised.
        groups: the figures of every group of actors.
        wall_seconds: since the first item was asked for, until the run ended.
        reading_seconds: how many of them passed between two items, with whoever reads the run.
        starting_seconds: how many of them passed while the actors were first started: on Ray until the last
            was, in one process in constructors.
        concurrent: whether actors work at the same time, as they do on Ray.
    """

    engine: str
    nodes: tuple[NodeStats, ...]
    restarts: int = 0
    given_up: tuple[str, ...] = ()
    lost: int = 0
    groups: tuple[GroupStats, ...] = ()
    wall_seconds: float = 0.0
    reading_seconds: float = 0.0
    concurrent: bool = False
    starting_seconds: float = 0.0

    @property
    def bottleneck(self) -> Bottleneck | None:
        """The node that limits throughput, and what to try; None while no node was busy."""
        return bottleneck_of(self)

    @property
    def driver_seconds(self) -> float:
        """Time inside user code on the driver."""
        return sum(node.busy_seconds for node in self.nodes if not node.groups)

    def busy_share(self, node: NodeStats) -> float:
        """What part of the time of its actors a node was busy, from 0 to 1; in one process, of the wall time."""
        return self.share(node.busy_seconds, node.groups)

    def share(self, busy_seconds: float, groups: Sequence[str]) -> float:
        """What part of all that some groups could have worked so many seconds are; no groups are the driver."""
        workers = 1
        if self.concurrent and groups:
            workers = sum(group.actors for group in self.groups if group.name in groups)
        whole = self.wall_seconds * workers
        return busy_seconds / whole if whole else 0.0

    def since(self, earlier: RunStats) -> RunStats:
        """What happened after the earlier figures of the same run; queues and policy lags are those of now."""

        def node_since(now: NodeStats, then: NodeStats) -> NodeStats:
            return replace(
                now,
                items_in=now.items_in - then.items_in,
                items_out=now.items_out - then.items_out,
                busy_seconds=now.busy_seconds - then.busy_seconds,
                waiting_seconds=now.waiting_seconds - then.waiting_seconds,
                restarts=now.restarts - then.restarts,
            )

        def group_since(now: GroupStats, then: GroupStats) -> GroupStats:
            busy, restarts = now.busy_seconds - then.busy_seconds, now.restarts - then.restarts
            return replace(now, busy_seconds=busy, restarts=restarts)

        return replace(
            self,
            nodes=tuple(node_since(*pair) for pair in zip(self.nodes, earlier.nodes, strict=True)),
            groups=tuple(group_since(*pair) for pair in zip(self.groups, earlier.groups, strict=True)),
            restarts=self.restarts - earlier.restarts,
            lost=self.lost - earlier.lost,
            wall_seconds=self.wall_seconds - earlier.wall_seconds,
            reading_seconds=self.reading_seconds - earlier.reading_seconds,
            starting_seconds=self.starting_seconds - earlier.starting_seconds,
        )

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
        return table(self)


def run_stats(executor: Executor, queues: Mapping[int, int]) -> RunStats:
    """The figures of a run, from its live counters; `queues` are how long each node's is."""
    running = executor.running
    names = running.group_names
    restarted = running.restarted
    groups = {
        group: GroupStats(
            names[id(group)],
            group.count,
            sum(executor.busy.get(actor, 0.0) for actor in running.actor_names(group)),
            sum(restarted[actor] for actor in running.actor_names(group)),
        )
        for group in running.groups
    }
    asked, reading = executor.stopwatch.seconds()
    return RunStats(
        executor.engine.name,
        tuple(
            _node_stats(node, meter, queues.get(index, 0), [groups[group] for group in places])
            for index, (node, meter, places) in enumerate(
                zip(executor.nodes, executor.meters, executor.places, strict=True)
            )
        ),
        sum(restarted.values()),
        tuple(running.given_up),
        executor.lost,
        tuple(groups.values()),
        asked + reading,
        reading,
        executor.engine.concurrent,
        executor.stopwatch.starting,
    )


def _node_stats(node: Node, meter: Meter, queue: int, groups: Sequence[GroupStats]) -> NodeStats:
    return NodeStats(
        node.name,
        str(node.site),
        meter.taken,
        meter.made,
        meter.busy,
        meter.waiting,
        queue,
        meter.lag_sum / meter.made if meter.made else 0.0,
        meter.lag_max,
        _role(node, bool(groups)),
        tuple(group.name for group in groups),
        sum(group.restarts for group in groups),
    )


def _role(node: Node, in_actors: bool) -> Role:
    if in_actors:
        return "shard" if node.parallel else "stage"
    return "barrier" if isinstance(node, plan.Gather) and node.mode != "async" else "driver"
