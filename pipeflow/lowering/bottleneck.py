"""The bottleneck of a run: the node that limits its throughput, judged by the figures, and what to try.

Apart from `stats`, which counts and judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from pipeflow.lowering.stats import NodeStats, RunStats

# From this share of its time on, more of a resource is all that helps; up to here, not waiting helps as well.
_SATURATED = 0.8
# Below this share of their time, what is called waits for the calls.
_IDLE = 0.5

_LARGER_ITEMS = "larger items, so that one call does more"
_MORE_IN_FLIGHT = "more items in flight, gather_async(n) and max_in_flight(n)"


@dataclass(frozen=True)
class Bottleneck:
    """The node that limits throughput. ``str`` of it is two lines.

    Attributes:
        node: the node.
        place: where it runs, such as ``RolloutWorker × 4`` or ``the driver``.
        busy_share: what part of its time that place was busy, with all nodes that run there, from 0 to 1.
        advice: what to try, such as ``more actors in RolloutWorker (it has 4)``.
    """

    node: NodeStats
    place: str
    busy_share: float
    advice: str

    @override
    def __str__(self) -> str:
        where = f"{self.node.name} ({_short(self.node.site)})"
        return f"bottleneck: {where}, {self.place} busy {self.busy_share:.0%}\ntry: {self.advice}"


@dataclass(frozen=True)
class _Place:
    """Where nodes run, and what part of its time it was busy. size: its actors; 0 for the driver."""

    name: str
    size: int
    share: float
    nodes: Sequence[NodeStats]

    @property
    def node(self) -> NodeStats:
        """The node with the largest part in it."""
        return max(self.nodes, key=lambda node: node.busy_seconds)

    @property
    def label(self) -> str:
        return f"{self.name} × {self.size}" if self.size else "the driver"


def bottleneck_of(stats: RunStats) -> Bottleneck | None:
    """The node that limits a run's throughput; None while no node was busy.

    What can be busy is a place: a group of actors, or the driver. Stages that are fused into one program share
    their place, so it is places that are compared, and of the busiest the node with the largest part is named. A
    place's busy share is its seconds in stages over the wall seconds times its actors; in one process, where one
    actor works at a time, over the wall seconds alone.

    The advice depends on why the busiest place is not busier, or cannot be:

    - the actors took more time to start than it was busy: figures of a longer run say more;
    - the time between two items, which is the reader's, is more than its share: the plan waits for its reader;
    - it is busy at least 80 % of its time: it needs to be more, or to do less;
    - it is busy less, and a gather in rounds lets shards and stages take turns, which together are busy at least
      half of the time: they could overlap;
    - it is busy at least half of its time: as for 80 %;
    - none is busy half of its time: what waits is the calls.

    In one process nothing can overlap, so there it is the busiest place itself, unless all together are busy less
    than half of the time.
    """
    places = [place for place in _places(stats) if place.share > 0]
    if not places:
        return None
    busiest = max(places, key=lambda place: place.share)
    return Bottleneck(busiest.node, busiest.label, busiest.share, _advice(stats, places, busiest))


def _places(stats: RunStats) -> list[_Place]:
    groups = [
        _Place(
            group.name,
            group.actors,
            stats.share(group.busy_seconds, (group.name,)),
            [node for node in stats.nodes if group.name in node.groups],
        )
        for group in stats.groups
    ]
    driver = [node for node in stats.nodes if not node.groups]
    return [*groups, _Place("driver", 0, stats.share(stats.driver_seconds, ()), driver)]


def _advice(stats: RunStats, places: Sequence[_Place], busiest: _Place) -> str:
    starting = stats.starting_seconds / stats.wall_seconds
    reading = stats.reading_seconds / stats.wall_seconds
    if starting > busiest.share:
        return f"a longer run, to judge by: {starting:.0%} of the time went into starting the actors"
    if reading > busiest.share:
        return f"less work between two items, where whoever reads the run spends {reading:.0%} of the time"
    if not stats.concurrent:
        if sum(place.share for place in places) < _IDLE:
            return f"{_LARGER_ITEMS}: most of the time goes into passing them and messages on"
        return _alone(busiest)
    if busiest.share >= _SATURATED:
        return _more(busiest)
    shards = _busiest(places, "shard")
    stage = _busiest(places, "stage")
    barriers = [node for node in stats.nodes if node.role == "barrier"]
    if barriers and shards and stage and shards is not stage and shards.share + stage.share >= _IDLE:
        barrier = max(barriers, key=lambda node: node.waiting_seconds)
        where = f"{barrier.name} ({_short(barrier.site)})"
        turns = f"{shards.name} waits while {stage.name} works"
        return f"gather_async() for {where}, where {turns}; its items may be of older weights"
    if busiest.share >= _IDLE:
        return _more(busiest)
    if barriers:
        return f"{_LARGER_ITEMS}; or, where items may be of older weights, {_MORE_IN_FLIGHT}"
    return f"{_MORE_IN_FLIGHT}, or {_LARGER_ITEMS}"


def _busiest(places: Sequence[_Place], role: str) -> _Place | None:
    """The busiest of the places whose largest node has that role."""
    found = [place for place in places if place.node.role == role]
    return max(found, key=lambda place: place.share, default=None)


def _more(place: _Place) -> str:
    """What to try where a place is busy all the time."""
    if not place.size:
        return "place it on an actor, actors(...).stage(...): on the driver everything waits for it"
    more = f"more actors in {place.name} (it has {place.size})"
    if place.node.role == "shard":
        return f"{more}, or more environments in each"
    if place.size > 1:
        return more
    return f"larger minibatches, fewer epochs, a GPU for {place.name}, or more learners than one"


def _alone(place: _Place) -> str:
    """The same in one process, where more actors would not help."""
    if not place.size:
        return 'make it cheaper; on engine "ray", place it on an actor'
    if place.node.role == "shard":
        at_once = f'engine "ray", where {place.size} actors work at once, or ' if place.size > 1 else ""
        return f"{at_once}more environments an actor"
    return f"larger minibatches, fewer epochs, or a GPU for {place.name}"


def _short(site: str) -> str:
    """A site without its folders."""
    return PurePath(site).name
