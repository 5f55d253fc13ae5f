"""Laws 10 to 12: what unions take from their branches, and by which policy."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Iterator, Sequence

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
    for union, _ in unions(facts):
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

    A branch that has ended is skipped, one whose source says `NotReady` or whose filter rejected an item passes
    its turn, and an item that a drained branch consumes counts as a turn. With `by_steps` the next item is of the
    branch that has had the fewest steps for its weight; one that has nothing passes, and is then owed no more than
    the furthest behind of the others.

    >>> from pipeflow import from_items
    >>> run = (from_items([1, 2, 3]) & from_items("ab")).round_robin(2, 1).run(record=True)
    >>> list(run), law_11(run.trace)
    ([1, 2, 'a', 3, 'b'], [])
    """
    facts = facts_of(trace)
    found = _turns_kept(facts)
    for union, node in unions(facts):
        if node.policy == "by_steps":
            found += _out_of_proportion(facts, union, node)
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

    With `prioritised` a branch is served when those before it were asked and had none. When none is ready the
    executor waits. It never spins: a source that says `NotReady` is asked again only after something else has
    moved.

    >>> from pipeflow import from_items
    >>> run = (from_items([1, 2]) & from_items("ab")).run(record=True)
    >>> list(run), law_12(run.trace)
    ([1, 'a', 2, 'b'], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for union, node in unions(facts):
        if node.policy == "async":
            found += _starved(facts, union)
        elif node.policy == "prioritised":
            found += _passed_over(facts, union)
    for gather in facts.shards:
        found += _spun_on(facts, gather)
    return found + _idle_polls(facts)


def unions(facts: Facts) -> Iterator[tuple[int, nodes.Union]]:
    """The unions that act on the driver, with their numbers."""
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


def _turns_kept(facts: Facts) -> list[Violation]:
    """Filters that reject an item without saying at once that they have nothing, so that a union may go on."""
    found: list[Violation] = []
    for index, (event, following) in enumerate(itertools.pairwise(facts.trace)):
        if isinstance(event, events.Dropped) and following != events.NothingReady(event.node):
            node = facts.nodes[event.node]
            if isinstance(node, nodes.Gate) and node.passes_turn:
                message = f"{facts.name(event.node)} rejects item {event.uid} and does not pass its turn"
                found.append(Violation(11, message, index))
    return found


def _out_of_proportion(facts: Facts, union: int, node: nodes.Union) -> list[Violation]:
    """A union by steps serves who is furthest behind, by the steps that it counted."""
    found: list[Violation] = []
    branches = facts.upstream[union]
    weights = dict(zip(branches, node.weights, strict=True))
    served = dict.fromkeys(branches, 0.0)
    live, passed = list(branches), set[int]()
    trace = facts.trace.events
    for index, event in enumerate(trace):
        match event:
            case events.Asked(node=here) if here == union:
                passed.clear()
            case events.Ended(node=branch) if branch in live:
                live.remove(branch)
                passed.clear()
            case events.NothingReady(node=branch) if branch in live:
                passed.add(branch)
            case Delivered(node=branch) | events.Drained(node=branch) if branch in live:
                ready = [other for other in live if other not in passed] or live
                least = min(served[other] for other in ready)
                if branch not in ready or served[branch] > least:
                    expected = next(other for other in ready if served[other] == least)
                    message = (
                        f"{facts.name(union)} takes from {facts.name(branch)}, which has had {served[branch]:g} "
                        f"steps for its weight; expected {facts.name(expected)} with {served[expected]:g}"
                    )
                    found.append(Violation(11, message, index))
                counted = _counted(trace, index + 1, union, branch)
                found += _miscounted(facts, union, event, counted, index)
                for count in counted:
                    served[branch] += count.steps / weights[branch]
                least = min((served[other] for other in live if other not in passed), default=0.0)
                for other in passed:
                    served[other] = max(served[other], least)
                passed.clear()
            case _:
                pass
    return found


def _counted(trace: Sequence[events.Event], start: int, union: int, branch: int) -> list[events.Counted]:
    """What a union counted of a branch from an event on."""
    found: list[events.Counted] = []
    for event in itertools.islice(trace, start, None):
        if not (isinstance(event, events.Counted) and (event.node, event.branch) == (union, branch)):
            break
        found.append(event)
    return found


def _miscounted(
    facts: Facts,
    union: int,
    taken: Delivered | events.Drained,
    counted: list[events.Counted],
    index: int,
) -> list[Violation]:
    """Whether what a union takes from a branch is not counted once; of a drain it is not known what that was."""
    after = facts.trace.events[index + 1 : index + 2]
    if not after or isinstance(after[0], events.Raised):
        return []
    uids = [count.uid for count in counted]
    once = uids == [taken.uid] if isinstance(taken, Delivered) else bool(uids) and len(uids) == len(set(uids))
    if once:
        return []
    return [
        Violation(
            11, f"{facts.name(union)} does not count once what it takes from {facts.name(taken.node)}", index
        )
    ]


def _passed_over(facts: Facts, union: int) -> list[Violation]:
    """A union by priority serves nobody before it has asked all who stand before."""
    found: list[Violation] = []
    live = list(facts.upstream[union])
    asked: set[int] = set()
    for index, event in enumerate(facts.trace):
        match event:
            case events.Asked(node=here) if here == union:
                asked.clear()
            case events.Asked(node=branch) if branch in live:
                asked.add(branch)
            case events.Ended(node=branch) if branch in live:
                live.remove(branch)
            case Delivered(node=branch) | events.Drained(node=branch) if branch in live:
                for first in live[: live.index(branch)]:
                    if first not in asked:
                        message = (
                            f"{facts.name(union)} serves {facts.name(branch)} without asking {facts.name(first)}, "
                            "which comes first"
                        )
                        found.append(Violation(12, message, index))
            case _:
                pass
    return found


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
