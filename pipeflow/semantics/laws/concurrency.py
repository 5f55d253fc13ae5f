"""Laws 10 to 13: what unions take from their branches, and the branches that are drained."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Delivered, Trace
from pipeflow.semantics.laws.facts import Facts, facts_of
from pipeflow.semantics.laws.law import Violation


def law_10(trace: Trace) -> list[Violation]:
    """What a union delivers, restricted to one branch, is what this branch delivered.

    Nothing is lost, doubled or reordered inside a branch; how the branches interleave is the policy's.

    >>> from pipeflow import from_items
    >>> run = (from_items([1, 2]) & from_items("a")).run(record=True)
    >>> list(run), law_10(run.trace)
    ([1, 'a', 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for union, _ in _unions(facts):
        owed: dict[int, deque[int]] = {branch: deque() for branch in facts.upstream[union]}
        for index, event in enumerate(trace):
            match event:
                case Delivered(node=branch, uid=uid) if branch in owed:
                    owed[branch].append(uid)
                case Delivered(node=here, uid=uid) if here == union:
                    branch = next((b for b, uids in owed.items() if uid in uids), -1)
                    if branch < 0:
                        message = f"{facts.name(union)} delivers item {uid}, which no branch has for it"
                        found.append(Violation(10, message, index))
                    elif owed[branch].popleft() != uid:
                        message = (
                            f"{facts.name(union)} delivers item {uid} of {facts.name(branch)} before an "
                            "earlier one"
                        )
                        found.append(Violation(10, message, index))
                        owed[branch].remove(uid)
                case events.Ended(node=here) if here == union:
                    for branch, uids in owed.items():
                        if uids:
                            message = (
                                f"{facts.name(union)} has ended without item {uids[0]} of "
                                f"{facts.name(branch)}"
                            )
                            found.append(Violation(10, message, index))
                            uids.clear()
                case _:
                    pass
    return found


def law_11(trace: Trace) -> list[Violation]:
    """With `round_robin` every full cycle takes exactly `weights[i]` items of branch i, in branch order.

    A branch that has ended is skipped, one whose source says `NotReady` passes its turn, and an item that a
    drained branch consumes counts as a turn.

    >>> from pipeflow import from_items
    >>> run = (from_items([1, 2, 3]) & from_items("ab")).round_robin(2, 1).run(record=True)
    >>> list(run), law_11(run.trace)
    ([1, 2, 'a', 3, 'b'], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for union, node in _unions(facts):
        if node.policy != "round_robin":
            continue
        weights = dict(zip(facts.upstream[union], node.weights, strict=True))
        live = list(facts.upstream[union])
        turn = served = 0
        for index, branch, event in _answers(facts, union):
            if branch not in live:
                continue
            expected = live[turn]
            if branch != expected:
                message = (
                    f"{facts.name(union)} takes from {facts.name(branch)}; expected item {served + 1} of "
                    f"{weights[expected]} of {facts.name(expected)} in this turn"
                )
                found.append(Violation(11, message, index))
                turn, served = live.index(branch), 0
            match event:
                case events.Ended():
                    live.remove(branch)
                    served = 0
                case events.NothingReady():
                    turn, served = turn + 1, 0
                case _:
                    served += 1
                    if served >= weights[branch]:
                        turn, served = turn + 1, 0
            turn = turn % len(live) if live else 0
    return found


def law_12(trace: Trace) -> list[Violation]:
    """An asynchronous union serves a branch that has an item ready within as many steps as there are branches.

    When none is ready the executor waits. It never spins: a source that says `NotReady` is asked again only
    after something else has moved.

    >>> from pipeflow import from_items
    >>> run = (from_items([1, 2]) & from_items("ab")).run(record=True)
    >>> list(run), law_12(run.trace)
    ([1, 'a', 2, 'b'], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for union, node in _unions(facts):
        if node.policy == "async":
            found += _starved(facts, union)
    for gather in facts.shards:
        found += _spun_on(facts, gather)
    return found + _idle_polls(facts)


def law_13(trace: Trace) -> list[Violation]:
    """A drained branch delivers nothing, and everything that comes to it is consumed.

    A union ends when all of its branches have. When those that can deliver have ended, the drained ones are
    stopped: they start nothing more and finish what they have in flight.

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
    for union, node_ in _unions(facts):
        found += _wrong_end(facts, union, node_)
    return found + _started_after_halt(facts)


def _unions(facts: Facts) -> Iterator[tuple[int, nodes.Union]]:
    for number in facts.upstream:
        node = facts.nodes[number]
        if isinstance(node, nodes.Union):
            yield number, node


def _answers(facts: Facts, union: int) -> Iterator[tuple[int, int, events.Event]]:
    """What the branches of a union answered, apart from answering nothing."""
    for index, event in enumerate(facts.trace):
        match event:
            case Delivered() | events.Drained() | events.Ended() | events.NothingReady():
                if event.node in facts.upstream[union]:
                    yield index, event.node, event
            case _:
                pass


def _starved(facts: Facts, union: int) -> list[Violation]:
    found: list[Violation] = []
    passed_over: Counter[int] = Counter()
    served = -1
    live = set(facts.upstream[union])
    for index, event in enumerate(facts.trace):
        match event:
            case events.Asked(node=node) if node in live:
                passed_over[node] = 0
            case events.Ended(node=node):
                live.discard(node)
            case Delivered(node=node) if node in facts.upstream[union]:
                served = node
            case Delivered(node=node) if node == union:
                for branch in live - {served}:
                    passed_over[branch] += 1
                    if passed_over[branch] == len(facts.upstream[union]):
                        message = (
                            f"{facts.name(union)} has served others {passed_over[branch]} times without asking "
                            f"{facts.name(branch)}; expected to ask the branches in turn"
                        )
                        found.append(Violation(12, message, index))
            case _:
                pass
    return found


def _spun_on(facts: Facts, gather: int) -> list[Violation]:
    """Shards that were called more often than they may run ahead while nothing moved."""
    node = facts.nodes[gather]
    assert isinstance(node, nodes.Gather)
    limit = node.num_async if node.mode == "async" else 1
    found: list[Violation] = []
    for calls in facts.by_shard(gather):
        for first, last in zip(calls, calls[limit:], strict=False):
            if not facts.moved_between(first.index, last.index):
                message = (
                    f"{facts.name(gather)} asks {last.called.actor} again and again (call {last.called.call}) "
                    "while nothing moves; expected to wait"
                )
                found.append(Violation(12, message, last.index))
    return found


def _idle_polls(facts: Facts) -> list[Violation]:
    """A root that is asked over and over while nothing happens; what it may still have to sort out is bounded."""
    patience = 8 + 2 * len(facts.nodes) + 2 * len(facts.calls)
    idle = 0
    for index, event in enumerate(facts.trace):
        if not isinstance(event, events.Asked):
            idle = 0
        elif event.node == facts.root:
            idle += 1
            if idle > patience:
                message = (
                    f"{facts.name(facts.root)} was asked {idle} times in a row for nothing; expected to wait"
                )
                return [Violation(12, message, index)]
    return []


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
            late = [call.index for call in facts.runs[node] if call.index > halt]
        elif isinstance(stage, nodes.FromItems):
            late = [index for index, _ in facts.deliveries[node] if index > halt]
        found += [
            Violation(13, f"{facts.name(node)} starts something after it was stopped", index)
            for index in late
        ]
    return found
