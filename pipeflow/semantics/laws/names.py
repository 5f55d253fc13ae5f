"""Names of items by where they came from, the same in every run: what lets two traces be compared.

An item is named after its origin (the k-th item of an iterable, of a shard or of an expansion), not after the
stages that it went through, so that a plan can be compared with one whose stages are grouped otherwise.
"""

from __future__ import annotations

from collections import Counter

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Trace
from pipeflow.semantics.laws.facts import Facts, facts_of
from pipeflow.semantics.laws.law import Violation

Name = tuple[object, ...]


def delivered_names(trace: Trace) -> list[tuple[int, Name]]:
    """The names of the plan's items in the order in which the run delivered them, each with its event."""
    facts = facts_of(trace)
    naming = _Naming(facts)
    found: list[tuple[int, Name]] = []
    for index, event in enumerate(trace):
        if isinstance(event, events.Shared) and event.copy_of:
            naming.names[event.uid] = naming.names.get(event.copy_of, ("?",))
        elif isinstance(event, events.Delivered):
            name = naming.named(event)
            if event.node == facts.root:
                found.append((index, name))
    return found


def compared(trace: Trace, other: Trace, law: int) -> list[Violation]:
    """Where two runs deliver different items; a run that is not finished is compared as far as it goes.

    Runs in which an actor died are not compared: what they lost is law 19's.
    """
    if any(isinstance(event, events.Lost) for event in (*trace, *other)):
        return []
    first, second = delivered_names(trace), delivered_names(other)
    for (_, expected), (index, found) in zip(first, second, strict=False):
        if expected != found:
            return [Violation(law, f"one run delivers {expected}, the other {found}", index)]
    for shorter, longer, run in ((first, second, trace), (second, first, other)):
        if len(shorter) < len(longer) and facts_of(run).complete():
            index, name = longer[len(shorter)]
            return [Violation(law, f"one run has ended, the other delivers {name} as well", index)]
    return []


class _Naming:
    """The names of the items of one trace, in the order of its events."""

    def __init__(self, facts: Facts) -> None:
        self.names: dict[int, Name] = {}
        self._facts = facts
        self._ordinals = _ordinals(facts)
        self._counts: Counter[Name] = Counter()

    def named(self, event: events.Delivered) -> Name:
        """The name of what was delivered."""
        if event.uid not in self.names or isinstance(self._facts.nodes[event.node], nodes.Expand):
            self.names[event.uid] = self._new(event)
        return self.names[event.uid]

    def _new(self, event: events.Delivered) -> Name:
        node = self._facts.nodes[event.node]
        match node:
            case nodes.FromItems():
                return self._next("items", self._ordinals[event.node])
            case nodes.Gather(mode=mode):
                made = tuple(self._of_shard(event.node, call) for call in event.calls)
                return made if mode == "rounds" or len(made) != 1 else made[0]
            case nodes.Expand():
                return self._next("made by", self._ordinals[event.node])
            case nodes.Zip():
                return tuple(self.names.get(uid, ("?",)) for uid in event.made_from)
            case nodes.Place() if event.calls and event.calls[0] in self._facts.calls:
                call = self._facts.calls[event.calls[0]]
                program = self._facts.programs.get(call.called.program)
                expanding = [
                    n
                    for n in (program.nodes if program else ())
                    if isinstance(self._facts.nodes[n], nodes.Expand)
                ]
                if expanding:
                    return self._next("made by", self._ordinals[expanding[-1]])
                given = call.called.given
            case _:
                given = event.made_from
        return self.names.get(given[0], ("?",)) if given else ("?",)

    def _of_shard(self, gather: int, call: int) -> Name:
        known = self._facts.calls.get(call)
        shard = None if known is None else self._facts.shard_of(known)
        return self._next("shard", self._ordinals[gather], shard)

    def _next(self, *key: object) -> Name:
        self._counts[key] += 1
        return (*key, self._counts[key] - 1)


def _ordinals(facts: Facts) -> dict[int, int]:
    """The place of every node among those of its class, all expansions being of one."""
    seen: Counter[type] = Counter()
    found: dict[int, int] = {}
    for number, node in enumerate(facts.nodes):
        kind = nodes.Expand if isinstance(node, nodes.Expand) else type(node)
        found[number] = seen[kind]
        seen[kind] += 1
    return found
