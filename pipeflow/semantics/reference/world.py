"""What the generators of the reference interpreter share: items, signals, actors, and what is left open.

Apart from the generators, which say what the nodes mean.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pipeflow.dsl import nodes
from pipeflow.dsl.dispatch import dispatched
from pipeflow.dsl.nodes import Group, Node
from pipeflow.dsl.signals import Ended, NotReady, enter_shard, leave_shard
from pipeflow.dsl.sourced import Source, Sourced
from pipeflow.dsl.trees import groups_of, walk
from pipeflow.semantics.reference.choices import Choices

T = TypeVar("T")


class Signal(enum.Enum):
    """What a node says instead of an item; of several, the first of these counts."""

    PASS = enum.auto()
    """Something moved and no item came of it: ask again, before anybody else is served."""
    REJECTED = enum.auto()
    """A filter rejected an item, and may wait for what others do: ask again, but a union passes the turn."""
    WAIT = enum.auto()
    """What is under way is not there yet; a union that serves in turns stays with the branch."""
    NOT_READY = enum.auto()
    """Nothing until something else moves; a union passes the turn."""


# An actor that an item came from.
Origin = tuple[Group, int]


@dataclass(frozen=True)
class Item:
    """An item, the actors it came from on a `Sourced` stream, and how many weights behind it is."""

    value: object
    origins: tuple[Origin, ...] = ()
    lag: int = 0

    @property
    def delivered(self) -> object:
        """As functions on the driver see it."""
        if not self.origins:
            return self.value
        return Sourced(self.value, tuple(Source(group.name, index) for group, index in self.origins))


@dataclass(frozen=True)
class Drained:
    """Items were consumed for good; it counts as the branch's turn."""

    items: tuple[Item, ...]


class StageFailed(Exception):
    """User code of a node raised. `unheard` if it was a message, whose result nobody waits for."""

    def __init__(self, node: Node, unheard: bool = False) -> None:
        super().__init__(node.name)
        self.node, self.unheard = node, unheard


Found = Item | Signal | Drained
Answers = Iterator[Found]
# A shard by where its items come from: what is produced or scattered, and the actor's index.
Shard = tuple[nodes.Produce | nodes.Scatter, int]


class World(ABC):
    """One way of one run: its actors, and what is left open in it."""

    @abstractmethod
    def stream(self, node: Node, shard: Shard | None = None) -> Answers:
        """The items of a node; of one shard where it is before a gather."""
        ...

    @abstractmethod
    def stop(self, node: Node) -> None:
        """Start nothing more behind a node; what was started is still delivered (law 13)."""
        ...

    def __init__(self, root: Node, choices: Choices) -> None:
        self.choose = choices.choose
        self.moved = self.waited = False
        self.stopped: set[int] = set()
        # How many weights every actor was sent, by its group and index.
        self.sent: Counter[tuple[int, int]] = Counter()
        self.failures: list[StageFailed] = []
        self.actors: dict[int, list[Any]] = {}
        self._priorities = any(isinstance(n, nodes.Union) and n.policy == "prioritised" for n in walk(root))
        users = [id(group) for node in walk(root) for group in node.groups]
        # Where a plan's parts depend on one another, one can tell whether what was started is delivered at once.
        self.patient = (
            len(users) > len(set(users)) or self._priorities or any(_depends(node) for node in walk(root))
        )
        for group in groups_of(root):
            owner = Node(name=f"actors({group.name}, {group.count})", site=group.site)
            self.actors[id(group)] = [
                self.inside(index, owner, group.factory, *shard, *group.args, **group.kwargs)
                for index in range(group.count)
                for shard in [() if group.shards is None else (group.shards[index],)]
            ]

    # What is left open

    def waits(self) -> bool:
        """Whether what is asked for, though it was started, is not there yet."""
        waits = self.patient and self.choose(2) == 1
        self.waited |= waits
        return waits

    def late(self) -> bool:
        """Whether it is not known yet that nothing comes of what was started; only priorities ask."""
        return self._priorities and self.waits()

    def fails(self, failed: StageFailed) -> None:
        """Code raised in an actor: the run ends now, or when somebody sees it."""
        if self.choose(2) == 1:
            raise failed
        self.failures.append(failed)

    def may_fail(self) -> None:
        """End the run with one of the failures in actors, or go on for now."""
        chosen = self.choose(len(self.failures) + 1)
        if chosen:
            raise self.failures[chosen - 1]

    def must_fail(self) -> None:
        """End the run with one of the failures in actors, if there are any."""
        if self.failures:
            raise self.failures[self.choose(len(self.failures))]

    def settle(self) -> None:
        """The items have ended: every message still takes effect (law 20), other calls may go unseen."""
        if any(failed.unheard for failed in self.failures):
            self.must_fail()
        self.may_fail()

    # User code

    def call(self, node: Node, function: Callable[..., T], *args: object) -> T:
        """What a function returns; whatever it raises is the node's failure."""
        try:
            return function(*args)
        except Exception as error:
            raise StageFailed(node) from error

    def output(self, node: Node, function: Callable[..., object], *args: object) -> Item:
        """The one output of a stage (law 2)."""
        made = self.call(node, function, *args)
        if isinstance(made, NotReady | Ended):
            raise StageFailed(node)
        self.moved = True
        return Item(made)

    def inside(
        self, index: int, node: Node, function: Callable[..., T], *args: object, **kwargs: object
    ) -> T:
        """A call in the actor of an index."""
        token = enter_shard(index)
        try:
            return self.call(node, lambda: function(*args, **kwargs))
        finally:
            leave_shard(token)

    def message(
        self, node: Node, group: Group, index: int, method: Callable[..., object], *args: object
    ) -> Any:
        """A call whose result the run does not wait for."""
        self.moved = True
        try:
            actor = self.actors[id(group)][index]
            return self.inside(index, node, dispatched(method, actor), actor, *args)
        except StageFailed:
            self.fails(StageFailed(node, unheard=True))


def _depends(node: Node) -> bool:
    """Whether what a plan makes may depend on when a node was asked, as with replies, forks and buffers."""
    match node:
        case nodes.Reply() | nodes.ReplyWeights() | nodes.Share() | nodes.Buffer():
            return True
        case nodes.Place(max_in_flight=count, group=group):
            return count > 1 and group.count > 1
        case nodes.Union(policy="by_steps"):
            # A branch whose filter rejected is asked again while the union waits for the one that came after it.
            return any(isinstance(stage, nodes.Gate) for stage in walk(node))
        case _:
            return False
