"""Law 2: what stages, pairs and scattered streams make of their input comes in its order."""

from __future__ import annotations

import itertools
from collections import deque

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Called, Trace
from pipeflow.semantics.laws.facts import Facts, facts_of, scatters_of
from pipeflow.semantics.laws.law import Violation

# One output for every input: the item itself, a new one that is made from it, or, at a gate, none.
_PASSING = (nodes.Send, nodes.SyncWeights, nodes.Notify, nodes.Gate, nodes.MaxLag, nodes.Pace)
_MAKING = (nodes.Apply, nodes.Reply, nodes.ReplyWeights)


def law_2(trace: Trace) -> list[Violation]:
    """A stage delivers ``f(x1), f(x2), ...`` in the order of its input, exactly one output for every input.

    Otherwise the run ends with an error that names the stage. A gate, a message and a lag limit pass the items
    themselves on, each once and in order, unless they drop them. A `zip` delivers the k-th items of both sides as
    one. A `scatter` gives item k to the shard of actor ``k % count``, a `broadcast` every item to each shard, and
    every shard is given its own in order.

    >>> from pipeflow import from_items
    >>> run = (from_items([1, -2]) | abs).run(record=True)
    >>> list(run), law_2(run.trace)
    ([1, 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for node, stage in enumerate(facts.nodes):
        if node in facts.upstream and isinstance(stage, (*_PASSING, *_MAKING)):
            found += _one_for_one(facts, node)
        elif node in facts.upstream and isinstance(stage, nodes.Place):
            found += _fed_in_order(facts, node)
        elif node in facts.upstream and isinstance(stage, nodes.Zip):
            found += _paired(facts, node)
    for gather in facts.shards:
        for scatter in scatters_of(facts.nodes[gather]):
            found += _scattered(facts, gather, scatter)
    for call in facts.calls.values():
        steps = facts.steps_of(call)
        exact = bool(steps) and not any(isinstance(step, nodes.Expand | nodes.Gate) for step in steps)
        if exact and call.called.purpose == "item" and call.outcome == "nothing":
            message = (
                f"call {call.called.call} made nothing of an item in {facts.name(call.called.node)}; each "
                "gives one"
            )
            found.append(Violation(2, message, call.settled or 0))
    return found


def _one_for_one(facts: Facts, node: int) -> list[Violation]:
    found: list[Violation] = []
    (read,) = facts.upstream[node]
    makes = isinstance(facts.nodes[node], _MAKING)
    owed: deque[int] = deque()
    for index, event in enumerate(facts.trace):
        match event:
            case events.Delivered(node=source, uid=uid) if source == read:
                owed.append(uid)
            case events.Delivered(node=here) if here == node:
                given = event.made_from if makes else (event.uid,)
                if len(given) != 1 or not owed or owed.popleft() != given[0]:
                    message = (
                        f"{facts.name(node)} delivers an item of {list(given)}; expected the next of its "
                        "input"
                    )
                    found.append(Violation(2, message, index))
                    owed.clear()
            case events.Dropped(node=here, uid=uid) if here == node:
                if makes or not owed or owed.popleft() != uid:
                    message = (
                        f"{facts.name(node)} drops item {uid}; expected to give one output for each, in order"
                    )
                    found.append(Violation(2, message, index))
                    owed.clear()
            case events.Asked(node=asked) if asked == read and owed:
                message = f"{facts.name(node)} asks for more and has given nothing for item {owed[0]}"
                found.append(Violation(2, message, index))
                owed.clear()
            case events.Ended(node=here) if here == node and owed:
                message = f"{facts.name(node)} has ended and has given nothing for item {owed[0]}"
                found.append(Violation(2, message, index))
                owed.clear()
            case _:
                pass
    return found


def _fed_in_order(facts: Facts, node: int) -> list[Violation]:
    """A placed stage hands each item to one actor, in the order of its input."""
    found: list[Violation] = []
    (read,) = facts.upstream[node]
    owed: deque[int] = deque()
    for index, event in enumerate(facts.trace):
        match event:
            case events.Delivered(node=source, uid=uid) if source == read:
                owed.append(uid)
            case Called(node=here, purpose="item", given=given) if here == node and given:
                if not owed or given != (owed.popleft(),):
                    message = (
                        f"{facts.name(node)} is given items {list(given)}; expected the next of its input"
                    )
                    found.append(Violation(2, message, index))
                    owed.clear()
            case events.Asked(node=asked) | events.Ended(node=asked) if asked in (read, node) and owed:
                if asked == read or isinstance(event, events.Ended):
                    message = (
                        f"{facts.name(node)} has lost item {owed[0]} of its input: no actor was given it"
                    )
                    found.append(Violation(2, message, index))
                    owed.clear()
            case _:
                pass
    return found


def _paired(facts: Facts, node: int) -> list[Violation]:
    """A zip makes its k-th item of the k-th of both sides; what it gives up at its end is law 18's."""
    found: list[Violation] = []
    held: dict[int, deque[int]] = {side: deque() for side in facts.upstream[node]}
    for index, event in enumerate(facts.trace):
        match event:
            case events.Delivered(node=side, uid=uid) if side in held:
                held[side].append(uid)
            case events.Asked(node=side) if held.get(side):
                message = (
                    f"{facts.name(node)} asks {facts.name(side)} and has not used item {held[side][0]} of it"
                )
                found.append(Violation(2, message, index))
                held[side].clear()
            case events.Delivered(node=here, made_from=made_from) if here == node:
                expected = tuple(held[side].popleft() for side in facts.upstream[node] if held[side])
                if made_from != expected:
                    message = (
                        f"{facts.name(node)} delivers a pair of {list(made_from)}; expected the next of both "
                        f"sides, {list(expected)}"
                    )
                    found.append(Violation(2, message, index))
            case _:
                pass
    return found


def _scattered(facts: Facts, gather: int, scatter: nodes.Scatter) -> list[Violation]:
    """A scatter hands every item to the actors that it is for, and their shards are given it in order."""
    found: list[Violation] = []
    trace, here, read = facts.trace.events, facts.number(scatter), facts.number(scatter.input)
    name, actors = facts.name(here), facts.actors_of(scatter.group)
    waiting: dict[str, deque[int]] = {actor: deque() for actor in actors}
    mine = {n for n, shard in enumerate(facts.shards[gather]) if shard.scatter is scatter}
    turn = latest = 0
    for index, event in enumerate(trace):
        match event:
            case events.Delivered(node=source, uid=uid) if source == read:
                after = itertools.takewhile(
                    lambda e: isinstance(e, events.Shared) and e.node == here, trace[index + 1 :]
                )
                given = [(e.outlet, e.copy_of or e.uid) for e in after if isinstance(e, events.Shared)]
                outlets = range(len(actors)) if scatter.to_all else [turn]
                wanted = [(outlet, uid) for outlet in outlets]
                cut = index + 1 + len(given)
                unfinished = cut == len(trace) or isinstance(trace[cut], events.Raised)
                if given != wanted and not (unfinished and given == wanted[: len(given)]):
                    message = (
                        f"{name} gives item {uid} to actors {[o for o, _ in given]}; expected {list(outlets)}"
                    )
                    found.append(Violation(2, message, index))
                turn, latest = (turn + 1) % len(actors), uid
            case events.Shared(node=node, outlet=outlet, uid=uid) if node == here and outlet < len(actors):
                waiting[actors[outlet]].append(uid)
                if (event.copy_of or uid) != latest:
                    message = (
                        f"{name} gives {actors[outlet]} item {uid}, which is not the latest of its input"
                    )
                    found.append(Violation(2, message, index))
            case Called(node=node, actor=actor, purpose="item", given=taken) if node == gather:
                if facts.shard_of(facts.calls[event.call]) in mine:
                    owed = waiting[actor]
                    if not owed or taken != (owed.popleft(),):
                        message = (
                            f"{name}: the shard of {actor} is given items {list(taken)}; expected its next"
                        )
                        found.append(Violation(2, message, index))
            case events.Ended(node=node) if node == gather:
                found += [
                    Violation(
                        2, f"{facts.name(gather)} has ended, but {actor} was not given item {owed[0]}", index
                    )
                    for actor, owed in waiting.items()
                    if owed
                ]
            case _:
                pass
    return found
