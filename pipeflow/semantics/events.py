"""The events of a run: what a trace is made of and what the laws speak about.

Events of the driver stand in the order in which they happened, and so do those of any one actor. Across actors
only this holds: a message was sent before it was applied, an item was asked for before it was started, started
before it was finished, and finished before it was delivered.

Nodes are named by their number in `pipeflow.dsl.nodes.walk`, actors by their names (``RolloutWorker[2]``), items
by a number of their own, `uid`, which they keep wherever they pass unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeflow.dsl.item_types import ItemType
from pipeflow.dsl.nodes import Node, walk


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run."""


# In the driver


@dataclass(frozen=True, slots=True)
class Asked(Event):
    """The consumer of a node wants its next item."""

    node: int


@dataclass(frozen=True, slots=True)
class Requested(Event):
    """The driver asked an actor for an item of a shard, or fed it one: call number `k` of this actor and node.

    `uids` are the items that it was fed, none for a source.
    """

    node: int
    actor: str
    k: int
    uids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """A node handed an item downstream.

    `actor` and `k` name the call that finished it, where one did; `made_from` the items that it was made of, where
    it is not one that the node was given. `item_type` is the class of the item where the driver holds it, and
    `identity` tells objects apart that live at the same time.
    """

    node: int
    uid: int
    actor: str | None = None
    k: int | None = None
    made_from: tuple[int, ...] = ()
    item_type: type | None = None
    identity: int | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """An item, or the call that would have made it, was given up: by a gate, a lag limit, or a crash."""

    node: int
    why: str
    uid: int | None = None
    actor: str | None = None
    k: int | None = None


@dataclass(frozen=True, slots=True)
class Sent(Event):
    """A message was issued to an actor. `version` counts the broadcasts of weights; None for other messages."""

    node: int
    message: int
    actor: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class NothingReady(Event):
    """A node has nothing until something else moves; a union passes its turn."""

    node: int


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """A node will deliver nothing more."""

    node: int


@dataclass(frozen=True, slots=True)
class Died(Event):
    """An actor was found to be gone."""

    actor: str


@dataclass(frozen=True, slots=True)
class Restarted(Event):
    """An actor was started again."""

    actor: str


@dataclass(frozen=True, slots=True)
class Installed(Event):
    """The nodes of one program, fused into an actor."""

    actor: str
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spawned(Event):
    """An actor was started for the run."""

    actor: str


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """An actor of the run is gone, as the run wanted it."""

    actor: str


@dataclass(frozen=True, slots=True)
class Raised(Event):
    """The run ended with an error: its class, and the node that it names."""

    error: str
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Checkpointed(Event):
    """The state of the run was taken."""


@dataclass(frozen=True, slots=True)
class Resumed(Event):
    """The run goes on from a checkpoint; what follows are the events after it."""


# In an actor


@dataclass(frozen=True, slots=True)
class Started(Event):
    """An actor began call number `k` of a node."""

    node: int
    actor: str
    k: int


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """An actor finished call number `k` of a node; `made` says whether an item came of it."""

    node: int
    actor: str
    k: int
    made: bool = True


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """User code raised in call number `k` of a node in this actor, or in the driver."""

    node: int
    actor: str
    k: int


@dataclass(frozen=True, slots=True)
class Applied(Event):
    """A message took effect in an actor."""

    message: int
    actor: str


@dataclass
class Trace:
    """The plan of a run and its events."""

    plan: Node
    events: list[Event] = field(default_factory=list[Event])

    @property
    def nodes(self) -> list[Node]:
        """The nodes by number."""
        return list(walk(self.plan))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)


__all__ = [
    "Applied",
    "Asked",
    "Checkpointed",
    "Delivered",
    "Died",
    "Dropped",
    "Ended",
    "Event",
    "Failed",
    "Finished",
    "Installed",
    "ItemType",
    "NothingReady",
    "Raised",
    "Requested",
    "Restarted",
    "Resumed",
    "Sent",
    "Spawned",
    "Started",
    "Stopped",
    "Trace",
]
