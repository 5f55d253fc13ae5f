"""Laws 1 to 4: what is delivered from one shard, one stage or one group of actors comes in its order."""

from __future__ import annotations

import itertools
from collections import deque

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Called, Trace
from pipeflow.semantics.laws.facts import CallFacts, Facts, ShardFacts, facts_of
from pipeflow.semantics.laws.law import Violation
from pipeflow.semantics.laws.names import compared

# One output for every input: the item itself, a new one that is made from it, or, at a gate, none.
_PASSING = (nodes.Send, nodes.SyncWeights, nodes.Gate, nodes.MaxLag)
_MAKING = (nodes.Apply, nodes.Reply)


def law_1(trace: Trace) -> list[Violation]:
    """What a gather delivers from one shard is what the shard produced, in that order.

    No item is lost, none comes twice, none is invented; what a dead actor had in flight is law 19's.

    >>> from pipeflow import from_shards, gather_async
    >>> run = (from_shards([[1, 2], [3]]) | gather_async(2)).run(record=True)
    >>> list(run), law_1(run.trace)
    ([1, 2, 3], [])
    >>> twice = Trace(run.trace.plan, [e for e in run.trace for _ in range(1 + isinstance(e, events.Delivered))])
    >>> print(law_1(twice)[0].message.partition(" (")[0])
    call 5 is delivered twice by gather_async(2)
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for gather in facts.shards:
        found += _delivered_in_order(facts, gather, 1)
    return found


def law_2(trace: Trace) -> list[Violation]:
    """A stage delivers ``f(x1), f(x2), ...`` in the order of its input, exactly one output for every input.

    Otherwise the run ends with an error that names the stage. A gate, a message and a lag limit pass the items
    themselves on, each once and in order, unless they drop them.

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


def law_3(trace: Trace) -> list[Violation]:
    """Only stages that run in the same place are fused, and fusing changes neither concurrency nor resources.

    Every program is the chain of stages of one shard, in the shard's actor, or the stages right before a stage
    that is placed on a group of one, in that actor. `law_3_same` compares two runs: ``s | f | g`` and ``s | (f
    then g)`` deliver the same items, whatever was fused.

    >>> from pipeflow import from_shards, gather_sync
    >>> run = (from_shards([[1, -2]]) | abs | gather_sync()).run(record=True)
    >>> list(run), law_3(run.trace)
    ([1, 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for index, event in enumerate(trace):
        if isinstance(event, events.Installed):
            wrong = _misfused(facts, event)
            if wrong:
                found.append(Violation(3, wrong, index))
    return found


def law_3_same(trace: Trace, other: Trace) -> list[Violation]:
    """Law 3 for two runs of plans that differ only in how their stages are grouped or where they run.

    Args:
        trace: the one run.
        other: the other; both of plans without asynchronous operators, or one schedule of them.
    """
    return compared(trace, other, 3)


def law_4(trace: Trace) -> list[Violation]:
    """A stage that is placed on actors delivers in the order of its input, whatever finishes first.

    With ``unordered()`` it delivers a permutation in which no item is overtaken by more than `max_in_flight`
    others.

    >>> from pipeflow import actors, from_items
    >>> run = (from_items([1, 2]) | actors(list[int], 2).stage(lambda state, item: item)).run(record=True)
    >>> list(run), law_4(run.trace)
    ([1, 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for node, stage in enumerate(facts.nodes):
        if node in facts.upstream and isinstance(stage, nodes.Place):
            found += _delivered_in_order(facts, node, 4) if stage.ordered else _overtaken(facts, node, stage)
    return found


def _delivered_in_order(facts: Facts, node: int, number: int) -> list[Violation]:
    """Of each shard of a gather, or of a placed stage, each item once and in the order of the calls."""
    found: list[Violation] = []
    name = facts.name(node)
    whole = number == 4
    position: dict[int, int] = {}
    ordered: dict[int, list[CallFacts]] = {}
    for run in facts.runs[node]:
        ordered.setdefault(0 if whole else run.called.program, []).append(run)
    place = {id(call): index for calls in ordered.values() for index, call in enumerate(calls)}
    last_order: dict[tuple[int, int], int] = {}
    for index, event in facts.deliveries[node]:
        if not event.calls:
            found.append(Violation(number, f"{name} delivers item {event.uid}, which no call made", index))
        for made in event.calls:
            call = facts.calls.get(made)
            if call is None or id(call) not in place or not call.made_item or not call.settled_by(index):
                message = f"{name} delivers what call {made} made, which made no item for it"
                found.append(Violation(number, message, index))
                continue
            if call.delivered[0] < index:
                message = f"call {made} is delivered twice by {name}, item {event.uid}"
                found.append(Violation(number, message, index))
                continue
            key = 0 if whole else call.called.program
            here, before = place[id(call)], position.get(key, 0)
            if here < before:
                message = f"{name} delivers call {made} after a later one; expected the order of the calls"
                found.append(Violation(number, message, index))
                continue
            position[key] = here + 1
            for skipped in ordered[key][before:here]:
                if not skipped.settled_by(index) or skipped.made_item:
                    message = (
                        f"{name} delivers call {made} before call {skipped.called.call}, which was issued "
                        "before"
                    )
                    found.append(Violation(number, message, index))
            if not whole:
                life = (call.called.program, call.life)
                if call.order <= last_order.get(life, 0):
                    message = (
                        f"{name} delivers call {made} later than its shard made it ({call.called.actor})"
                    )
                    found.append(Violation(number, message, index))
                last_order[life] = call.order
    return found + _left_over(facts, node, number)


def _left_over(facts: Facts, node: int, number: int) -> list[Violation]:
    """The calls of a node that has ended whose items were never delivered."""
    end = facts.ended.get(node)
    if end is None:
        return []
    found: list[Violation] = []
    for call in facts.runs[node]:
        if call.open_at(end):
            what = "what it made is lost" if call.settled_by(end) else "it is still under way"
            message = f"{facts.name(node)} has ended before call {call.called.call} was delivered: {what}"
            found.append(Violation(number, message, end))
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


def _misfused(facts: Facts, event: events.Installed) -> str | None:
    """Why these nodes may not be one program of this actor, or None."""
    steps = [facts.nodes[node] for node in event.nodes]
    *fused, last = steps
    if last.parallel:
        shard = ShardFacts(event.actor, event.nodes)
        if any(shard in shards for shards in facts.shards.values()):
            return None
        return f"the program of {last.name} ({last.site}) in {event.actor} is no shard of a gather"
    if not isinstance(last, nodes.Place):
        return f"{last.name} ({last.site}) runs in {event.actor}; expected it on the driver"
    if event.actor not in facts.actors_of(last.group):
        return f"{last.name} ({last.site}) runs in {event.actor}; expected an actor of {last.group.name}"
    for step, following in itertools.pairwise(steps):
        if following.inputs != (step,):
            return f"{step.name} ({step.site}) is fused with {following.name}, which does not read it"
    for step in fused:
        if last.group.count > 1:
            return (
                f"{step.name} ({step.site}) is fused into {last.group.count} actors of {last.group.name}; "
                "expected one"
            )
        pinned = isinstance(step, nodes.Apply) and step.here
        if pinned or not isinstance(step, nodes.Apply | nodes.Expand) or step.inputs[0].partly_sourced:
            return f"{step.name} ({step.site}) runs in {event.actor}; expected it on the driver"
    return None


def _overtaken(facts: Facts, node: int, stage: nodes.Place) -> list[Violation]:
    found: list[Violation] = []
    name = facts.name(node)
    inputs = [call for call in facts.runs[node] if call.called.given]
    for index, event in facts.deliveries[node]:
        for made in event.calls:
            call = facts.calls.get(made)
            if call is None or call.called.node != node or not call.made_item or not call.settled_by(index):
                found.append(
                    Violation(4, f"{name} delivers what call {made} made, which made no item", index)
                )
            elif call.delivered[0] < index:
                found.append(Violation(4, f"{name} delivers call {made} twice", index))
    arrived = sorted(((call.delivered[0], place) for place, call in enumerate(inputs) if call.delivered))
    for place, call in enumerate(inputs):
        if call.lost or (call.settled is not None and not call.made_item):
            continue
        until = call.delivered[0] if call.delivered else len(facts.trace)
        passed = [index for index, other in arrived if other > place and index < until]
        if len(passed) > stage.max_in_flight:
            message = (
                f"{name}: call {call.called.call} was overtaken by {len(passed)} others; "
                f"expected at most {stage.max_in_flight}"
            )
            found.append(Violation(4, message, passed[stage.max_in_flight]))
    return found + _left_over(facts, node, 4)
