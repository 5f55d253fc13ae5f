"""Laws 17 and 18: nothing runs that nobody asked for, and a finite plan ends with nothing left."""

from __future__ import annotations

import functools
import math

from pipeflow.dsl import nodes
from pipeflow.dsl.gating import EveryNth, Taking
from pipeflow.semantics import events
from pipeflow.semantics.events import Called, Delivered, Trace
from pipeflow.semantics.laws.facts import Facts, facts_of
from pipeflow.semantics.laws.law import Violation


def law_17(trace: Trace) -> list[Violation]:
    """Building a plan starts nothing, and a run starts no more than what it is asked for needs.

    A node is asked, calls an actor and delivers only while its consumer is asking it; what a buffer reads is asked
    too while the plan waits. What runs ahead is bounded and stated: at most `max_in_flight` items are in a placed
    stage, law 7 bounds the shards and law 16 the buffers. A gate that takes the first n items asks for no other.
    A `throttle` drops nothing and lets an item pass only when its seconds have gone by since the last; an
    `every_seconds` drops what comes before.

    >>> from pipeflow import from_items, take
    >>> run = (from_items([1, 2, 3]) | take(2)).run(record=True)
    >>> list(run), law_17(run.trace)
    ([1, 2], [])
    >>> sum(isinstance(event, Delivered) and event.node == 0 for event in run.trace)
    2
    """
    facts = facts_of(trace)
    found = _unasked(facts)
    for node, stage in enumerate(facts.nodes):
        if node in facts.upstream and isinstance(stage, nodes.Place):
            for place, call in enumerate(facts.runs[node]):
                ahead = sum(earlier.open_at(call.index) for earlier in facts.runs[node][:place])
                if ahead >= stage.max_in_flight:
                    message = (
                        f"{facts.name(node)} has {ahead + 1} items in flight; expected at most "
                        f"{stage.max_in_flight}"
                    )
                    found.append(Violation(17, message, call.index))
        elif node in facts.upstream and isinstance(stage, nodes.Gate):
            found += _wrong_gate(facts, node, stage)
        elif node in facts.upstream and isinstance(stage, nodes.Pace):
            found += _wrong_pace(facts, node, stage)
    return found


def law_18(trace: Trace) -> list[Violation]:
    """A finite plan ends: when its sources have ended, every item was delivered or counted as dropped.

    A node ends after what it reads has ended, or when it was told to stop, with no call under way and no item
    left in it. A placed stage that may hold items back is told of the end, and partial batches are delivered. The
    actors are stopped only when every message to them has been applied. A `zip` ends when one side does, and what
    it then holds of the other counts as dropped.

    >>> from pipeflow import batch, from_items
    >>> run = (from_items([1, 2, 3]) | batch(2)).run(record=True)
    >>> list(run), law_18(run.trace)
    ([[1, 2], [3]], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for node, end in facts.ended.items():
        name, stage = facts.name(node), facts.nodes[node]
        found += [
            Violation(18, f"{name} delivers item {event.uid} after it has ended", index)
            for index, event in facts.deliveries[node]
            if index > end
        ]
        if facts.halted.get(node, end) >= end:
            found += [
                Violation(18, f"{name} has ended before {facts.name(read)}, which it reads", end)
                for read in facts.upstream[node]
                if facts.ended.get(read, end) >= end
            ]
        found += [
            Violation(18, f"{name} has ended, but call {call.called.call} has not come to its end", end)
            for call in facts.runs[node]
            if call.index < end and call.open_at(end)
        ]
        if isinstance(stage, nodes.Gather) and facts.halted.get(node, end) >= end:
            for shard, calls in enumerate(facts.by_shard(node)):
                if not facts.shard_ended(node, shard, calls, end):
                    found.append(Violation(18, f"{name} has ended, but its shard {shard} has not", end))
        elif isinstance(stage, nodes.Place):
            found += _not_told(facts, node, end)
        elif isinstance(stage, nodes.Zip):
            found += _unpaired(facts, node, end)
        elif isinstance(stage, nodes.Expand) and _keeps_everything(stage):
            found += _kept_back(facts, node, end)
    return found + _unapplied(facts)


def _unasked(facts: Facts) -> list[Violation]:
    """What happens in a node while its consumer is not asking it: the polls of a run are nested like its nodes."""
    found: list[Violation] = []
    asking: list[int] = []
    for index, event in enumerate(facts.trace):
        match event:
            case events.Asked(node=node) if node == facts.root:
                asking = [node]
            case events.Asked(node=node):
                while asking and asking[-1] not in facts.readers[node]:
                    asking.pop()
                buffered = any(
                    isinstance(facts.nodes[reader], nodes.Buffer) for reader in facts.readers[node]
                )
                if not asking and not buffered:
                    found.append(
                        Violation(17, f"{facts.name(node)} is asked though no consumer of it is", index)
                    )
                asking.append(node)
            case Called(node=node, purpose="item" | "end" | "message" | "weights") if node not in asking:
                message = f"{facts.name(node)} calls {event.actor} ({event.purpose}) though nobody asks it"
                found.append(Violation(17, message, index))
            case Delivered(node=node) | events.Ended(node=node) | events.NothingReady(node=node):
                if node in asking:
                    del asking[asking.index(node) :]
                elif isinstance(event, Delivered):
                    found.append(
                        Violation(17, f"{facts.name(node)} delivers item {event.uid} unasked", index)
                    )
            case _:
                pass
    return found


def _wrong_gate(facts: Facts, node: int, stage: nodes.Gate) -> list[Violation]:
    """A gate that only counts, compared with what it should admit."""
    made_by = _made_by(stage.factory)
    if made_by is not Taking and made_by is not EveryNth:
        return []
    state = stage.factory()
    (read,) = facts.upstream[node]
    admitted = False
    for index, event in enumerate(facts.trace):
        match event:
            case events.Asked(node=here) if here == read and state.closed:
                return [
                    Violation(17, f"{facts.name(node)} asks for more though it needs no further item", index)
                ]
            case Delivered(node=here) if here == read:
                admitted = state.admit(None)
            case Delivered(node=here) | events.Dropped(node=here) if here == node:
                if admitted != isinstance(event, Delivered):
                    did = "drops" if admitted else "delivers"
                    return [
                        Violation(
                            17, f"{facts.name(node)} {did} item {event.uid}; expected the contrary", index
                        )
                    ]
            case _:
                pass
    return []


def _wrong_pace(facts: Facts, node: int, stage: nodes.Pace) -> list[Violation]:
    """What a gate that goes by the clock lets pass or drops, by the times at which it looked."""
    found: list[Violation] = []
    earliest = -math.inf
    # What it has looked at the clock for and not decided on.
    open_: events.Timed | None = None
    for index, event in enumerate(facts.trace):
        message = ""
        match event:
            case Delivered(node=here, uid=uid) | events.Dropped(node=here, uid=uid) if here == node:
                passes = isinstance(event, Delivered)
                does = f"{facts.name(node)} {'delivers' if passes else 'drops'} item {uid}"
                if open_ is None or open_.uid != uid:
                    message = f"{does} without looking at the clock"
                elif passes != (open_.time >= earliest) or not (passes or stage.drops):
                    message = f"{does} at {open_.time:.4f} s; the next may pass from {earliest:.4f} s on"
                if passes and open_ is not None:
                    earliest = open_.time + stage.seconds
                open_ = None
            case events.Raised():
                open_ = None
            case _:
                if open_ is not None:
                    message = f"{facts.name(node)} neither delivers nor drops item {open_.uid} when it looks"
                open_ = event if isinstance(event, events.Timed) and event.node == node else None
        if message:
            found.append(Violation(17, message, index))
    return found


def _unapplied(facts: Facts) -> list[Violation]:
    """Messages that are still under way when a run that came to its end stops its actors."""
    stop = next((index for index, event in enumerate(facts.trace) if isinstance(event, events.Stopped)), None)
    cut = any(isinstance(event, events.Raised) for event in facts.trace)
    if stop is None or cut or facts.ended.get(facts.root, stop) >= stop:
        return []
    return [
        Violation(18, f"{call.called.actor} is stopped before message {call.called.call} was applied", stop)
        for call in facts.calls.values()
        if call.called.purpose in ("message", "weights") and not call.settled_by(stop)
    ]


def _not_told(facts: Facts, node: int, end: int) -> list[Violation]:
    """A placed stage that can hold items back and was not told that its input has ended."""
    holding = any(isinstance(step, nodes.Expand) for program in _programs(facts, node) for step in program)
    told = any(call.called.purpose == "end" for call in facts.runs[node])
    if holding and not told:
        return [
            Violation(18, f"{facts.name(node)} has ended and what was held back in it was not asked for", end)
        ]
    return []


def _unpaired(facts: Facts, node: int, end: int) -> list[Violation]:
    """A zip that has ended before both sides, or that holds an item of which nothing came."""
    name, sides = facts.name(node), facts.upstream[node]
    found: list[Violation] = []
    if all(facts.ended.get(side, end) >= end for side in sides):
        found.append(Violation(18, f"{name} has ended and neither of its sides has", end))
    taken = {event.uid for side in sides for index, event in facts.deliveries[side] if index < end}
    paired = {uid for _, event in facts.deliveries[node] for uid in event.made_from}
    given_up = {e.uid for e in facts.trace if isinstance(e, events.Dropped) and e.node == node}
    if taken != paired | given_up or paired & given_up:
        wrong = sorted((taken ^ (paired | given_up)) | (paired & given_up))
        message = f"{name} has ended with items {wrong}; expected each in one pair or dropped"
        found.append(Violation(18, message, end))
    return found


def _programs(facts: Facts, node: int) -> list[list[nodes.Node]]:
    return [
        [facts.nodes[step] for step in program.nodes]
        for program in facts.programs.values()
        if program.nodes[-1:] == (node,)
    ]


def _keeps_everything(stage: nodes.Expand) -> bool:
    """Whether every input is in exactly one output, as in `batch` and `concat`."""
    return isinstance(stage, nodes.Batch | nodes.Concat)


def _made_by(factory: object) -> object:
    return factory.func if isinstance(factory, functools.partial) else None


def _kept_back(facts: Facts, node: int, end: int) -> list[Violation]:
    (read,) = facts.upstream[node]
    taken = [event.uid for _, event in facts.deliveries[read]]
    given = [uid for _, event in facts.deliveries[node] for uid in event.made_from]
    if taken == given:
        return []
    missing = [uid for uid in taken if uid not in given]
    what = f"without items {missing}" if missing else "with items out of order"
    return [Violation(18, f"{facts.name(node)} has ended {what}; expected every item in one output", end)]
