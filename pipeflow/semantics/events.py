"""The events of a run: what a trace is made of, and what the laws speak about.

Events stand in the order in which the driver saw them. An actor runs one call at a time, so the order of what an
actor did is one number, `Finished.order`, which the actor itself counts; across actors only this holds: a call was
issued before it finished, and finished before its item was delivered.

Nodes are named by their number in `pipeflow.dsl.walk`, -1 for what belongs to none; actors by the names of
`pipeflow.dsl.group_names`; programs, calls and items (`uid`) by numbers of their own. An item keeps its
number wherever it passes unchanged. The trace of a resumed run begins with the events before its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pipeflow.dsl.nodes import Node
from pipeflow.dsl.trees import walk

Purpose = Literal["item", "end", "message", "weights", "setup", "ask"]
"""Why an actor was called: for an item; to tell a stage that its input ended; with a message; with weights; to
build it, install a program in it or give it weights of before; or because the run's user asks it."""


Outcome = Literal["item", "nothing", "not_ready", "ended", "failed"]
"""What a call came to: an item, none yet, none until something else moves, none ever more, an exception."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run."""


@dataclass(frozen=True, slots=True)
class Spawned(Event):
    """An actor was started; `restart` if one of that name had died."""

    actor: str
    restart: bool = False


@dataclass(frozen=True, slots=True)
class GivenUp(Event):
    """An actor failed and is not started again: its shards end."""

    actor: str


@dataclass(frozen=True, slots=True)
class Kept(Event):
    """A node's weights wait with the driver until the next call of an actor, in which enough of them wait.

    They count as sent. `given` is the item; newer weights of the node take its place.
    """

    node: int
    actor: str
    given: int


@dataclass(frozen=True, slots=True)
class Installed(Event):
    """Nodes were fused into one program of an actor; `program` is its number."""

    actor: str
    nodes: tuple[int, ...]
    program: int = 0


@dataclass(frozen=True, slots=True)
class Asked(Event):
    """The consumer of a node wants its next item."""

    node: int


@dataclass(frozen=True, slots=True)
class Called(Event):
    """The driver issued a call to an actor on behalf of a node.

    `given` are the items that the call takes along, weights among them. `version` counts the weights that this
    actor was sent, up to and with this call. `program` is the program that the call runs, 0 where it runs none.
    """

    call: int
    node: int
    actor: str
    purpose: Purpose
    given: tuple[int, ...] = ()
    version: int = 0
    program: int = 0


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """A call came back. `order` counts the calls of this actor in the order in which they ran in it."""

    call: int
    actor: str
    order: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Lost(Event):
    """A call will never come back: its actor died, or, if not `died`, an item that it was given was lost."""

    call: int
    actor: str
    died: bool = True


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """A node handed an item downstream.

    `calls` are those that made it, where the node called for it; `made_from` the items that the driver made it
    of, where it is a new one. `item_type` is the item's class and `identity` tells objects of one moment apart,
    both only where the driver holds the item. `lag` counts the weights sent to its actor since it was asked for.
    """

    node: int
    uid: int
    calls: tuple[int, ...] = ()
    made_from: tuple[int, ...] = ()
    item_type: type | None = None
    identity: int | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """A node gave an item up: a gate that does not admit it, a drain that consumed it, a lag limit."""

    node: int
    uid: int


@dataclass(frozen=True, slots=True)
class Counted(Event):
    """A union by steps (`node`) counted the steps of an item that it took from one of its branches."""

    node: int
    branch: int
    uid: int
    steps: float


@dataclass(frozen=True, slots=True)
class Timed(Event):
    """A node that goes by the clock decided about an item; `time` is the engine's clock, in seconds."""

    node: int
    uid: int
    time: float


@dataclass(frozen=True, slots=True)
class Shared(Event):
    """A fork or a partition (`node`) put an item into the buffer of an outlet, or a scatter into that of an actor.

    `copy_of` is the item that it is a copy of, 0 where it is the item itself. `aliased` says that both are one
    object and that it can be written to.
    """

    node: int
    outlet: int
    uid: int
    copy_of: int = 0
    aliased: bool = False


@dataclass(frozen=True, slots=True)
class Drained(Event):
    """A node that delivers nothing consumed an item: its turn is over."""

    node: int


@dataclass(frozen=True, slots=True)
class NothingReady(Event):
    """A node has nothing, or rejected what it had, maybe until something else moves; a union passes its turn."""

    node: int


@dataclass(frozen=True, slots=True)
class Halted(Event):
    """A node was told to start nothing more and to deliver what it has in flight."""

    node: int


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """A node will deliver nothing more."""

    node: int


@dataclass(frozen=True, slots=True)
class Raised(Event):
    """The run ended with an error: the name of its class, and what it says."""

    error: str
    message: str


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """An actor of the run is gone, as the run wanted it."""

    actor: str


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """The run is closed: nothing of it is left."""


@dataclass(eq=False)
class Trace:
    """The plan of a run and its events."""

    plan: Node
    events: list[Event] = field(default_factory=list[Event])

    def __post_init__(self) -> None:
        self.nodes = list(walk(self.plan))
        self.number = {id(node): index for index, node in enumerate(self.nodes)}

    def __deepcopy__(self, memo: dict[int, object]) -> Trace:
        """A trace that goes on by itself: the plan and the events up to here are immutable, and shared."""
        return Trace(self.plan, list(self.events))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def name(self, node: int) -> str:
        """A node as messages name it: its name and where it was written."""
        return f"{self.nodes[node].name} ({self.nodes[node].site})" if node >= 0 else "the run"
