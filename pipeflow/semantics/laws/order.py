"""Laws 1, 3 and 4: what comes of one shard, of one group of actors, and of what is fused, comes in its order."""

from __future__ import annotations

import itertools

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Trace
from pipeflow.semantics.laws.facts import CallFacts, Facts, facts_of, runs_in
from pipeflow.semantics.laws.law import Violation
from pipeflow.semantics.laws.names import compared


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


def _misfused(facts: Facts, event: events.Installed) -> str | None:
    """Why these nodes may not be one program of this actor, or None."""
    steps = [facts.nodes[node] for node in event.nodes]
    if not steps or steps[-1].parallel:
        if any(runs_in(event, shard) for shards in facts.shards.values() for shard in shards):
            return None
        names = " and ".join(f"{step.name} ({step.site})" for step in steps[-1:]) or "nothing"
        return f"the program of {names} in {event.actor} is no shard of a gather"
    *fused, last = steps
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
        reads_source = step.inputs[0].partly_sourced and not step.keeps_source
        if pinned or not isinstance(step, nodes.Apply | nodes.Expand) or reads_source:
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
