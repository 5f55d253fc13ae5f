"""Law 9: the order of messages, and whom weights and replies reach."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Called, Delivered, Trace
from pipeflow.semantics.laws.facts import CallFacts, Facts, facts_of
from pipeflow.semantics.laws.law import Violation


def law_9(trace: Trace) -> list[Violation]:
    """Messages and calls to one actor take effect in the order in which the driver issued them.

    A message goes out before the item that it belongs to is delivered: to every actor of the group it is sent
    to, once each; weights at the start and after every n-th item, of the stream or, as a reply, of the actor; a
    reply to the actors that the item came from, each once; actors that were given up are left out. Weights that
    the driver keeps for an actor, the newest in place of older ones, count as sent and go out before the actor's
    next call. An item that `batch` or `concat` made of several comes from the actors of all of them, wherever it
    was made.

    >>> from pipeflow import actors, from_items
    >>> run = (from_items([1, 2]) | actors(list[int], 2).send(list[int].append)).run(record=True)
    >>> list(run), law_9(run.trace)
    ([1, 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    last: dict[tuple[str, int], CallFacts] = {}
    for call in facts.calls.values():
        if call.order == 0:
            continue
        before = last.get((call.called.actor, call.life))
        if before is not None and before.order >= call.order:
            message = (
                f"{call.called.actor} ran call {call.called.call} before call {before.called.call}; "
                "expected the order in which they were issued"
            )
            found.append(Violation(9, message, call.settled or 0))
        last[call.called.actor, call.life] = call
    found += _kept(facts)
    for node, stage in enumerate(facts.nodes):
        if isinstance(stage, nodes.Send | nodes.Reply):
            found += _messages(facts, node, stage)
        elif isinstance(stage, nodes.SyncWeights):
            found += _broadcasts(facts, node, stage)
        elif isinstance(stage, nodes.ReplyWeights):
            found += _replied_weights(facts, node, stage)
        elif isinstance(stage, nodes.Notify):
            found += _notified(facts, node, stage)
    return found


def _kept(facts: Facts) -> list[Violation]:
    """What the driver kept for an actor goes out before the actor's next call."""
    found: list[Violation] = []
    kept: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for index, event in enumerate(facts.trace):
        match event:
            case events.Kept(node=node, actor=actor, given=given):
                kept[actor][node] = given
            case events.Spawned(actor=actor, restart=True) | events.GivenUp(actor=actor):
                kept[actor].clear()
            case Called(actor=actor, node=node, given=(given,)) if kept[actor].get(node) == given:
                del kept[actor][node]
            case Called(actor=actor, node=node, purpose="weights"):
                kept[actor].pop(node, None)  # newer ones
            case Called(actor=actor, purpose="item" | "end" | "message" | "ask") if kept[actor]:
                names = ", ".join(facts.name(node) for node in kept[actor])
                message = f"{actor} is called (call {event.call}) before the weights that are kept of {names}"
                found.append(Violation(9, message, index))
            case _:
                pass
    return found


def _still(facts: Facts, actors: Iterable[str], index: int) -> list[str]:
    """Those of some actors that had not been given up before an event."""
    return [actor for actor in actors if facts.given_up.get(actor, index) >= index]


def _messages(facts: Facts, node: int, stage: nodes.Send | nodes.Reply) -> list[Violation]:
    """Every item that a node passes on was sent to whom it is meant for, once, before it was delivered."""
    found: list[Violation] = []
    sent: defaultdict[int, Counter[str]] = defaultdict(Counter)
    origins = _origins(facts) if isinstance(stage, nodes.Reply) else {}
    for index, event in enumerate(facts.trace):
        match event:
            case Called(node=here, purpose="message", given=given) if here == node:
                for uid in given:
                    sent[uid][event.actor] += 1
            case Delivered(node=here) if here == node:
                uid = event.made_from[0] if isinstance(stage, nodes.Reply) and event.made_from else event.uid
                if isinstance(stage, nodes.Send):
                    expected = Counter(facts.actors_of(stage.group))
                else:
                    if uid not in origins:
                        continue
                    expected = Counter(origins[uid])
                concerned = _still(facts, {*sent[uid], *expected}, index)
                if any(sent[uid][actor] != expected[actor] for actor in concerned):
                    message = (
                        f"{facts.name(node)} delivers item {uid} after messages to "
                        f"{sorted(sent[uid].elements())}; expected one to each of {sorted(expected)}"
                    )
                    found.append(Violation(9, message, index))
            case _:
                pass
    return found


def _broadcasts(facts: Facts, node: int, stage: nodes.SyncWeights) -> list[Violation]:
    found: list[Violation] = []
    sent: Counter[str] = Counter()
    delivered = 0
    for index, event in enumerate(facts.trace):
        match event:
            case Called(node=here, purpose="weights") | events.Kept(node=here) if here == node:
                sent[event.actor] += 1
            case Delivered(node=here) if here == node:
                delivered += 1
                expected = 1 + delivered // stage.every
                for actor in _still(facts, facts.actors_of(stage.workers), index):
                    if sent[actor] != expected:
                        message = (
                            f"{facts.name(node)} delivers item {delivered} when {actor} was sent weights "
                            f"{sent[actor]} times; expected {expected}"
                        )
                        found.append(Violation(9, message, index))
            case _:
                pass
    return found


def _replied_weights(facts: Facts, node: int, stage: nodes.ReplyWeights) -> list[Violation]:
    found: list[Violation] = []
    actors = [actor for group in nodes.producers_of(stage.input) for actor in facts.actors_of(group)]
    sent: Counter[str] = Counter()
    had: Counter[str] = Counter()
    origins = _origins(facts)
    for index, event in enumerate(facts.trace):
        match event:
            case Called(node=here, purpose="weights") | events.Kept(node=here) if here == node:
                sent[event.actor] += 1
            case Delivered(node=here, made_from=(uid,)) if here == node and uid in origins:
                had.update(origins[uid])
                for actor in _still(facts, dict.fromkeys(actors), index):
                    expected = 1 + had[actor] // stage.every
                    if sent[actor] != expected:
                        message = (
                            f"{facts.name(node)} delivers an item of {sorted(origins[uid])} when {actor} was sent "
                            f"weights {sent[actor]} times; expected {expected}"
                        )
                        found.append(Violation(9, message, index))
            case _:
                pass
    return found


def _notified(facts: Facts, node: int, stage: nodes.Notify) -> list[Violation]:
    found: list[Violation] = []
    sent: Counter[str] = Counter()
    delivered = 0
    for index, event in enumerate(facts.trace):
        match event:
            case Called(node=here, purpose="message") if here == node:
                sent[event.actor] += 1
            case Delivered(node=here) if here == node:
                delivered += 1
                expected = delivered // stage.every
                for actor in _still(facts, facts.actors_of(stage.group), index):
                    if sent[actor] != expected:
                        message = (
                            f"{facts.name(node)} delivers item {delivered} when {actor} was called "
                            f"{sent[actor]} times; expected {expected}"
                        )
                        found.append(Violation(9, message, index))
            case _:
                pass
    return found


def _origins(facts: Facts) -> dict[int, tuple[str, ...]]:
    """The actors in whose shards each item, or what it was made of, was made, as far as they are carried along."""
    found: dict[int, tuple[str, ...]] = {}
    placed = _PlacedOrigins(facts, found)
    for event in facts.trace:
        match event:
            case events.Shared(uid=uid, copy_of=original) if original in found:
                found[uid] = found[original]
            case Delivered(node=node, uid=uid, calls=calls, made_from=made_from) if uid not in found:
                match facts.nodes[node]:
                    case nodes.Gather():
                        found[uid] = _merged(
                            (facts.calls[call].called.actor,) for call in calls if call in facts.calls
                        )
                    case nodes.Batch() | nodes.Concat():
                        found[uid] = _merged(found.get(given, ()) for given in made_from)
                    case nodes.Place():
                        found[uid] = placed.of(node, calls)
                    case _:
                        pass
            case _:
                pass
    return found


class _PlacedOrigins:
    """What comes out of a placed stage comes from where its inputs did since the output before."""

    def __init__(self, facts: Facts, known: Mapping[int, tuple[str, ...]]) -> None:
        self._facts, self._known = facts, known
        self._next: Counter[int] = Counter()

    def of(self, node: int, calls: Sequence[int]) -> tuple[str, ...]:
        made = next((self._facts.calls[call] for call in calls if call in self._facts.calls), None)
        if made is None:
            return ()
        groups = any(isinstance(step, nodes.Expand) for step in self._facts.steps_of(made))
        if not groups:
            return self._given(made)
        held: list[tuple[str, ...]] = []
        runs = self._facts.runs[node]
        for place in range(self._next[node], len(runs)):
            call = runs[place]
            if not call.lost:
                held.append(self._given(call))
            elif call.died:
                held.clear()  # what was held back in the actor is gone
            if call is made:
                self._next[node] = place + 1
                break
        return _merged(held)

    def _given(self, call: CallFacts) -> tuple[str, ...]:
        return _merged(self._known.get(given, ()) for given in call.called.given)


def _merged(origins: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(actor for several in origins for actor in several))
