"""Law 13: branches that are drained, and what is stopped."""

from __future__ import annotations

from collections import deque

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Delivered, Trace
from pipeflow.semantics.laws.concurrency import unions
from pipeflow.semantics.laws.facts import Facts, facts_of
from pipeflow.semantics.laws.law import Violation


def law_13(trace: Trace) -> list[Violation]:
    """A drained branch delivers nothing, and everything that comes to it is consumed.

    A union ends when all of its branches have. When those that can deliver have ended, the drained ones are
    stopped: they start nothing more and finish what they have in flight. What is stopped stops all that it alone
    reads, also what is scattered over the shards of a gather, both sides of a `zip`, and what a buffer reads.

    >>> from pipeflow import drain, from_items
    >>> run = ((from_items([1, 2]) | drain) & from_items("a")).run(record=True)
    >>> list(run), law_13(run.trace)
    (['a'], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for node, stage in enumerate(facts.nodes):
        if stage.drained:
            found += [
                Violation(
                    13,
                    f"{facts.name(node)} delivers item {event.uid}; expected nothing of what is drained",
                    index,
                )
                for index, event in facts.deliveries[node]
            ]
        if isinstance(stage, nodes.Drain):
            found += _not_consumed(facts, node)
    for union, node_ in unions(facts):
        found += _wrong_end(facts, union, node_)
    return found + _started_after_halt(facts) + _not_stopped(facts)


def _not_consumed(facts: Facts, drain: int) -> list[Violation]:
    (read,) = facts.upstream.get(drain, (-1,))
    owed: deque[int] = deque()
    for index, event in enumerate(facts.trace):
        match event:
            case Delivered(node=node, uid=uid) if node == read:
                owed.append(uid)
            case events.Dropped(node=node, uid=uid) if node == drain:
                if not owed or owed.popleft() != uid:
                    return [Violation(13, f"{facts.name(drain)} consumes item {uid} out of turn", index)]
            case events.Asked(node=node) if node == read and owed:
                return [Violation(13, f"{facts.name(drain)} has not consumed item {owed[0]}", index)]
            case events.Ended(node=node) if node == drain and owed:
                return [Violation(13, f"{facts.name(drain)} has not consumed item {owed[0]}", index)]
            case _:
                pass
    return []


def _wrong_end(facts: Facts, union: int, node: nodes.Union) -> list[Violation]:
    found: list[Violation] = []
    name, branches = facts.name(union), facts.upstream[union]
    drained = [branch for branch in branches if facts.nodes[branch].drained]
    end = facts.ended.get(union)
    if end is not None:
        found += [
            Violation(13, f"{name} has ended before its branch {facts.name(branch)}", end)
            for branch in branches
            if facts.ended.get(branch, end) >= end
        ]
    if node.drained:
        return found
    delivering = [facts.ended.get(branch, len(facts.trace)) for branch in branches if branch not in drained]
    over = max(delivering)
    for branch in drained:
        halt = facts.halted.get(branch)
        if halt is not None and halt < over and not facts.halted.get(union, halt) < halt:
            message = f"{facts.name(branch)} is stopped while other branches of {name} can still deliver"
            found.append(Violation(13, message, halt))
    for index, event in enumerate(facts.trace.events[over + 1 :], over + 1):
        if (
            isinstance(event, events.Asked)
            and event.node in drained
            and facts.halted.get(event.node, index) >= index
        ):
            message = (
                f"{facts.name(event.node)} is not stopped, though only drained branches of {name} are left"
            )
            return [*found, Violation(13, message, index)]
    return found


def _started_after_halt(facts: Facts) -> list[Violation]:
    found: list[Violation] = []
    for node, halt in facts.halted.items():
        stage = facts.nodes[node]
        late: list[int] = []
        if isinstance(stage, nodes.Gather):
            # What a stopped stream still delivers is fed to its shards.
            late = [call.index for call in facts.runs[node] if call.index > halt and not call.called.given]
        elif isinstance(stage, nodes.FromItems):
            late = [index for index, _ in facts.deliveries[node] if index > halt]
        found += [
            Violation(13, f"{facts.name(node)} starts something after it was stopped", index)
            for index in late
        ]
    return found


def _not_stopped(facts: Facts) -> list[Violation]:
    """What only stopped nodes read, and was not stopped with the last of them."""
    found: list[Violation] = []
    trace = facts.trace.events
    never = len(trace)
    for read, readers in facts.readers.items():
        halts = [facts.halted.get(reader, never) for reader in readers]
        share = facts.share_of(read)
        if max(halts, default=never) == never or (share is not None and len(readers) < share.outlets):
            continue
        after = next((i for i in range(max(halts), never) if not isinstance(trace[i], events.Halted)), never)
        if after < never and facts.halted.get(read, never) > after:
            message = f"{facts.name(read)} is not stopped with {facts.name(readers[halts.index(max(halts))])}"
            found.append(Violation(13, message, after))
    return found
