"""What the checkers read off a trace: which cursor asks which, the shards of a gather, the story of every call.

Nothing in here judges; apart from the laws so that each of them is no longer than its statement.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Group, Node, Scatter
from pipeflow.dsl.trees import group_names, groups_of
from pipeflow.semantics import events
from pipeflow.semantics.events import Called, Delivered, Event, Outcome, Trace

E = TypeVar("E", bound=Event)


@dataclass(slots=True)
class CallFacts:
    """The story of one call.

    `index` is the event that issued it, `life` which start of its actor it went to (0 for the first), `settled`
    the event with which it came back or was lost, `delivered` the events in which its own node handed on what
    it made. `died` tells a call that was lost with its actor from one whose item was.
    """

    called: Called
    index: int
    life: int
    settled: int | None = None
    outcome: Outcome | None = None
    order: int = 0
    lost: bool = False
    died: bool = False
    delivered: list[int] = field(default_factory=list[int])

    @property
    def made_item(self) -> bool:
        """Whether it came back with an item."""
        return self.outcome == "item"

    def settled_by(self, index: int) -> bool:
        """Whether it had come back, or was known to be lost, before an event."""
        return self.settled is not None and self.settled < index

    def delivered_by(self, index: int) -> bool:
        """Whether its node had handed on what it made before an event."""
        return bool(self.delivered) and self.delivered[0] < index

    def open_at(self, index: int) -> bool:
        """Whether it was started and neither delivered nor known to have come to nothing before an event."""
        if not self.settled_by(index):
            return True
        return self.made_item and not self.delivered_by(index)


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """One shard of a gather as the plan has it: its actor, and the nodes that run there, the source first.

    `scatter` is the node that feeds it, where it has no source of its own.
    """

    actor: str
    nodes: tuple[int, ...]
    scatter: Scatter | None = None


class Facts:
    """Everything that the checkers look up more than once."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.nodes = trace.nodes
        self.root = len(trace.nodes) - 1
        self.names = group_names(trace.plan)
        self.groups: dict[str, Group] = {
            f"{self.names[id(group)]}[{index}]": group
            for group in groups_of(trace.plan)
            for index in range(group.count)
        }
        # The programs: their nodes, and the actor in which they are installed.
        self.programs: dict[int, events.Installed] = {}
        self.calls: dict[int, CallFacts] = {}
        # For gathers and placed stages, the calls that run their programs, in the order in which they were issued.
        self.runs: defaultdict[int, list[CallFacts]] = defaultdict(list)
        self.deliveries: defaultdict[int, list[tuple[int, Delivered]]] = defaultdict(list)
        # The first event in which a node was told to start nothing more, and in which it had ended.
        self.halted: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        # The events in which each actor was sent weights, and those in which something moved.
        # Events in which an actor that failed was given up, and what the driver keeps for actors.
        self.given_up: dict[str, int] = {}
        self.kept: list[tuple[int, events.Kept]] = []
        self._weights: defaultdict[str, list[int]] = defaultdict(list)
        self._movements: list[int] = []
        self._restarts: defaultdict[str, list[int]] = defaultdict(list)
        self._read()
        self.upstream: dict[int, tuple[int, ...]] = {}
        self.readers: defaultdict[int, list[int]] = defaultdict(list)
        self._connect(self.root)
        self.shards = {
            index: self._shards_of(node.input)
            for index, node in enumerate(self.nodes)
            if isinstance(node, nodes.Gather)
        }

    def name(self, node: int) -> str:
        """A node as messages name it."""
        return self.trace.name(node)

    def number(self, node: Node) -> int:
        """The number of a node."""
        return self.trace.number[id(node)]

    def actors_of(self, group: Group) -> list[str]:
        """The names of a group's actors."""
        return [f"{self.names[id(group)]}[{index}]" for index in range(group.count)]

    def shard_of(self, call: CallFacts) -> int | None:
        """Which shard of its gather a call is of."""
        program = self.programs.get(call.called.program)
        shards = enumerate(self.shards.get(call.called.node, ()))
        return next((index for index, shard in shards if program and runs_in(program, shard)), None)

    def by_shard(self, gather: int) -> list[list[CallFacts]]:
        """The calls of every shard of a gather, in the order in which they were issued."""
        found: list[list[CallFacts]] = [[] for _ in self.shards[gather]]
        for call in self.runs[gather]:
            shard = self.shard_of(call)
            if shard is not None:
                found[shard].append(call)
        return found

    def shard_ended(self, gather: int, shard: int, calls: Sequence[CallFacts], index: int) -> bool:
        """Whether a shard, with these calls, had nothing more to come before an event."""
        if self.given_up.get(self.shards[gather][shard].actor, index) < index:
            return not any(call.index < index and call.open_at(index) for call in calls)
        scatter = self.shards[gather][shard].scatter
        if scatter is None:
            return any(call.outcome == "ended" and call.settled_by(index) for call in calls)
        fed = self.ended.get(self.number(scatter.input), index) < index
        return fed and not any(call.index < index and call.open_at(index) for call in calls)

    def steps_of(self, call: CallFacts) -> tuple[Node, ...]:
        """The stages that a call runs."""
        program = self.programs.get(call.called.program)
        return () if program is None else tuple(self.nodes[node] for node in program.nodes)

    def share_of(self, node: int) -> nodes.Share | None:
        """The fork or partition that reads a node, if one does."""
        for reader in self.readers[node]:
            outlet = self.nodes[reader]
            if isinstance(outlet, nodes.Outlet):
                return outlet.input
        return None

    def lag(self, event: Delivered, index: int) -> int | None:
        """How many weights an item's actor was sent between being asked for it and an event; None if unknown."""
        calls = [self.calls[call] for call in event.calls if call in self.calls]
        if len(calls) != 1:
            return None
        sent = self._weights[calls[0].called.actor]
        return bisect_left(sent, index) - bisect_left(sent, calls[0].index)

    def life_at(self, actor: str, index: int) -> int:
        """Which start of an actor there was last before an event, 0 for the first."""
        return bisect_left(self._restarts[actor], index)

    def moved_between(self, start: int, end: int) -> bool:
        """Whether a call came to anything but `not_ready` between two events."""
        return bisect_left(self._movements, end) > bisect_left(self._movements, start)

    def complete(self) -> bool:
        """Whether the plan has ended and every one of its items is in the trace."""
        return self.root in self.ended

    def _read(self) -> None:
        lives: defaultdict[str, int] = defaultdict(int)
        for index, event in enumerate(self.trace):
            match event:
                case events.Spawned(actor=actor, restart=True):
                    lives[actor] += 1
                    self._restarts[actor].append(index)
                case events.Installed():
                    self.programs[event.program] = event
                case Called():
                    call = self.calls[event.call] = CallFacts(event, index, lives[event.actor])
                    if event.purpose in ("item", "end"):
                        self.runs[event.node].append(call)
                    if event.purpose == "weights":
                        self._weights[event.actor].append(index)
                case events.GivenUp(actor=actor):
                    self.given_up[actor] = index
                case events.Kept():
                    self.kept.append((index, event))
                    self._weights[event.actor].append(index)
                case events.Finished() if event.call in self.calls:
                    call = self.calls[event.call]
                    call.settled, call.outcome, call.order = index, event.outcome, event.order
                    if event.outcome != "not_ready":
                        self._movements.append(index)
                case events.Lost() if event.call in self.calls:
                    call = self.calls[event.call]
                    call.settled, call.lost, call.died = index, True, event.died
                    self._movements.append(index)
                case Delivered():
                    self.deliveries[event.node].append((index, event))
                    for number in event.calls:
                        known = self.calls.get(number)
                        if known is not None and known.called.node == event.node:
                            known.delivered.append(index)
                case events.Halted(node=node):
                    self.halted.setdefault(node, index)
                case events.Ended(node=node):
                    self.ended.setdefault(node, index)
                case _:
                    pass

    def _connect(self, node: int) -> None:
        """Note which node asks which, down from a node; what is fused into a placed stage asks nobody."""
        self.upstream[node] = self._inputs(node)
        for read in self.upstream[node]:
            self.readers[read].append(node)
            if read not in self.upstream:
                self._connect(read)

    def _inputs(self, node: int) -> tuple[int, ...]:
        match self.nodes[node]:
            case nodes.Gather():
                return tuple(self.number(scatter.input) for scatter in scatters_of(self.nodes[node]))
            case nodes.Outlet(input=share):
                return (self.number(share.input),)
            case nodes.Place() as place:
                first: Node = place
                for program in self.programs.values():
                    if program.nodes[-1:] == (node,) and not self.nodes[program.nodes[0]].parallel:
                        first = self.nodes[program.nodes[0]]
                return tuple(self.number(child) for child in first.inputs)
            case other:
                return tuple(self.number(child) for child in other.inputs)

    def _shards_of(self, node: Node) -> list[ShardFacts]:
        number = self.number(node)
        match node:
            case nodes.Produce(group=group):
                return [ShardFacts(actor, (number,)) for actor in self.actors_of(group)]
            case nodes.Scatter(group=group):
                return [ShardFacts(actor, (), node) for actor in self.actors_of(group)]
            case nodes.SelectShards(input=source, indices=indices):
                return [self._shards_of(source)[index] for index in indices]
            case nodes.ParallelUnion(branches=branches):
                return [shard for branch in branches for shard in self._shards_of(branch)]
            case other:
                (child,) = other.inputs
                shards = self._shards_of(child)
                return [replace(shard, nodes=(*shard.nodes, number)) for shard in shards]


def runs_in(program: events.Installed, shard: ShardFacts) -> bool:
    """Whether a program is that of a shard."""
    return (program.actor, program.nodes) == (shard.actor, shard.nodes)


def scatters_of(node: Node) -> list[nodes.Scatter]:
    """The scattered streams that feed shards of a gather, given the gather or a node before it."""
    if isinstance(node, nodes.Scatter):
        return [node]
    return [scatter for child in node.inputs for scatter in scatters_of(child)]


def facts_of(trace: Trace) -> Facts:
    """The facts of a trace, read once for all laws; events may be appended to a trace but not be changed."""
    return _facts(trace, len(trace))


@functools.lru_cache(maxsize=2)
def _facts(trace: Trace, length: int) -> Facts:
    return Facts(trace)


def of_type(trace: Trace, kind: type[E]) -> list[tuple[int, E]]:
    """The events of one kind with their places."""
    return [(index, event) for index, event in enumerate(trace) if isinstance(event, kind)]
