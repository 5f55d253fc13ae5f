"""Laws 14 to 16: forks and partitions, and what runs ahead in their buffers."""

from __future__ import annotations

from collections import Counter, deque

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Delivered, Trace
from pipeflow.semantics.laws.facts import Facts, facts_of
from pipeflow.semantics.laws.law import Violation


def law_14(trace: Trace) -> list[Violation]:
    """Every consumer of a fork sees every item once, in order, and at most `buffer` items are held for it.

    A plan that can never go on because a buffer is full ends with a `DeadlockError` that names the outlet and
    who should have asked for it.

    >>> from pipeflow import from_items
    >>> left, right = from_items([1, 2]).fork(2, buffer=1)
    >>> run = (left & right).run(record=True)
    >>> list(run), law_14(run.trace)
    ([1, 1, 2, 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for share in _shares(facts):
        node = facts.nodes[share]
        assert isinstance(node, nodes.Share)
        if node.predicate is None:
            found += _shared_out(facts, share, node, 14) + _held(facts, share, node, 14)
    return found + _unnamed_deadlock(facts)


def law_15(trace: Trace) -> list[Violation]:
    """Every item of a partition goes to exactly one side, and each side keeps the order.

    >>> from pipeflow import from_items
    >>> low, high = from_items([1, 9]).partition(lambda number: number < 5, buffer=1)
    >>> run = (low & high).run(record=True)
    >>> list(run), law_15(run.trace)
    ([1, 9], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for share in _shares(facts):
        node = facts.nodes[share]
        assert isinstance(node, nodes.Share)
        if node.predicate is not None:
            found += _shared_out(facts, share, node, 15)
    return found


def law_16(trace: Trace) -> list[Violation]:
    """A buffer lets at most so many items run ahead as it says, and changes nothing else.

    The buffers are those of `buffer(n)`, which delivers the items themselves, each once and in order, and those of
    forks and partitions: what one consumer may be behind another.

    >>> from pipeflow import from_items
    >>> left, right = from_items([1, 2]).fork(2, buffer=2)
    >>> run = (left & right).run(record=True)
    >>> next(run), next(run), law_16(run.trace)
    (1, 1, [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for share in _shares(facts):
        node = facts.nodes[share]
        assert isinstance(node, nodes.Share)
        found += _held(facts, share, node, 16)
    for number, stage in enumerate(facts.nodes):
        if isinstance(stage, nodes.Buffer) and number in facts.upstream:
            found += _ran_ahead(facts, number, stage)
    return found


def _shares(facts: Facts) -> list[int]:
    return [number for number, node in enumerate(facts.nodes) if isinstance(node, nodes.Share)]


def _outlets(facts: Facts, share: int) -> dict[int, int]:
    """The number of each outlet of a fork or partition, by its index."""
    return {
        node.index: number
        for number, node in enumerate(facts.nodes)
        if isinstance(node, nodes.Outlet) and node.input is facts.nodes[share]
    }


def _shared_out(facts: Facts, share: int, node: nodes.Share, law: int) -> list[Violation]:
    """Every item of the input goes to the outlets that it is for, and from there on in order."""
    found: list[Violation] = []
    name, outlets, trace = facts.name(share), _outlets(facts, share), facts.trace.events
    read = facts.number(node.input)
    waiting: dict[int, deque[int]] = {number: deque() for number in outlets.values()}
    for index, event in enumerate(trace):
        match event:
            case Delivered(node=here, uid=uid) if here == read:
                given: list[events.Shared] = []
                for after in trace[index + 1 :]:
                    if not (isinstance(after, events.Shared) and after.node == share):
                        break
                    given.append(after)
                cut = index + 1 + len(given)
                unfinished = cut == len(trace) or isinstance(trace[cut], events.Raised)
                wrong = _misrouted(facts, node, outlets, uid, given, index, unfinished)
                if wrong:
                    found.append(Violation(law, f"{name} {wrong}", index))
            case events.Shared(node=here, outlet=outlet, uid=uid) if here == share and outlet in outlets:
                waiting[outlets[outlet]].append(uid)
            case Delivered(node=here, uid=uid) if here in waiting:
                if not waiting[here] or waiting[here].popleft() != uid:
                    message = (
                        f"{facts.name(here)} delivers item {uid}; expected the items in order, each once"
                    )
                    found.append(Violation(law, message, index))
                    waiting[here].clear()
            case events.Ended(node=here) if waiting.get(here):
                message = f"{facts.name(here)} has ended without item {waiting[here][0]}"
                found.append(Violation(law, message, index))
                waiting[here].clear()
            case _:
                pass
    return found


def _misrouted(
    facts: Facts,
    node: nodes.Share,
    outlets: dict[int, int],
    uid: int,
    given: list[events.Shared],
    index: int,
    unfinished: bool,
) -> str | None:
    """Why an item went to the wrong outlets, or None."""
    if any((event.copy_of or event.uid) != uid for event in given):
        return f"hands out something else than item {uid}"
    halted = {outlet for outlet, number in outlets.items() if facts.halted.get(number, index) < index}
    went = [event.outlet for event in given]
    if node.predicate is not None:
        if len(went) > 1 or (not went and not unfinished and not halted):
            return f"hands item {uid} to sides {went}; expected exactly one"
        return None
    wanted = set(outlets) - halted or set(outlets)
    if len(went) > len(set(went)) or not wanted >= set(went) or (set(went) != wanted and not unfinished):
        return f"hands item {uid} to outlets {went}; expected each of {sorted(wanted)} once"
    return None


def _held(facts: Facts, share: int, node: nodes.Share, law: int) -> list[Violation]:
    """Outlets that hold more than their buffer; what is in flight when nobody wants more is shared as well."""
    outlets = _outlets(facts, share)
    held: Counter[int] = Counter()
    for index, event in enumerate(facts.trace):
        match event:
            case events.Shared(node=here, outlet=outlet) if here == share and outlet in outlets:
                number = outlets[outlet]
                held[number] += 1
                stopping = all(facts.halted.get(other, index) < index for other in outlets.values())
                if held[number] > node.buffer and not stopping:
                    message = (
                        f"{facts.name(number)} holds {held[number]} items; expected at most {node.buffer}"
                    )
                    return [Violation(law, message, index)]
            case Delivered(node=here) if here in outlets.values():
                held[here] -= 1
            case _:
                pass
    return []


def _ran_ahead(facts: Facts, node: int, stage: nodes.Buffer) -> list[Violation]:
    """A buffer takes in no more than it may hold, and gives the items on in their order."""
    found: list[Violation] = []
    (read,) = facts.upstream[node]
    held: deque[int] = deque()
    for index, event in enumerate(facts.trace):
        message = ""
        match event:
            case events.Asked(node=here) if here == read and len(held) >= stage.size:
                message = (
                    f"{facts.name(node)} holds {len(held)} items and asks for more; it may hold {stage.size}"
                )
            case Delivered(node=here, uid=uid) if here == read:
                held.append(uid)
            case Delivered(node=here, uid=uid) if here == node:
                if not held or held.popleft() != uid:
                    message = (
                        f"{facts.name(node)} delivers item {uid}; expected the items in order, each once"
                    )
            case events.Ended(node=here) if here == node and held:
                message = f"{facts.name(node)} has ended without item {held[0]}"
            case _:
                pass
        if message:
            found.append(Violation(16, message, index))
    return found


def _unnamed_deadlock(facts: Facts) -> list[Violation]:
    """A deadlock behind a full buffer whose error does not say which fork it is and whom it waits for."""
    for index, event in enumerate(facts.trace):
        if not (isinstance(event, events.Raised) and event.error == "DeadlockError"):
            continue
        readers = {id(child): reader.name for reader in facts.nodes for child in reader.inputs}
        for share in _shares(facts):
            blocked = [facts.nodes[number] for number in _blocking(facts, share)]
            if blocked and not any(
                node.name in event.message and readers.get(id(node), node.name) in event.message
                for node in blocked
            ):
                names = ", ".join(f"{node.name} ({node.site})" for node in blocked)
                message = f"the deadlock's error does not name {names} and who should ask: {event.message}"
                return [Violation(14, message, index)]
    return []


def _blocking(facts: Facts, share: int) -> list[int]:
    """The outlets whose full buffer kept another, which was asked last of all, from reading on."""
    node, outlets = facts.nodes[share], _outlets(facts, share)
    assert isinstance(node, nodes.Share)
    held: Counter[int] = Counter()
    asked: dict[int, int] = {}
    last = 0
    for index, event in enumerate(facts.trace):
        match event:
            case events.Shared(node=here, outlet=outlet) if here == share and outlet in outlets:
                held[outlets[outlet]] += 1
                last = index
            case Delivered(node=here) if here in outlets.values():
                held[here] -= 1
                last = index
            case events.Asked(node=here) if here in outlets.values():
                asked[here] = index
            case _:
                pass
    full = [number for number in outlets.values() if held[number] >= node.buffer]
    kept = [number for number in outlets.values() if not held[number] and asked.get(number, 0) > last]
    return full if kept else []
