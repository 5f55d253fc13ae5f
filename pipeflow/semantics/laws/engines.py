"""Law 23: what every engine has in common, and what two runs of one plan have."""

from __future__ import annotations

from pipeflow.dsl import nodes
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.trees import walk
from pipeflow.semantics import events
from pipeflow.semantics.events import Called, Delivered, Trace
from pipeflow.semantics.laws.law import Violation
from pipeflow.semantics.laws.names import compared


def law_23(trace: Trace) -> list[Violation]:
    """The same plan means the same on every engine.

    Without asynchronous operators all engines deliver the same items in the same order, which `law_23_same`
    checks for two runs. With them, every trace of any engine is one that the simulation can show: a call is
    issued to a running actor, then comes back or is lost, once, and only then is what it made delivered, or
    given to another.

    >>> from pipeflow import from_shards, gather_sync
    >>> from pipeflow.lowering.engines.sim import Sim
    >>> plan = from_shards([[1, 2], [3]]) | gather_sync()
    >>> one, other = plan.run(record=True), plan.run(Sim(seed=5), record=True)
    >>> list(one) == list(other), law_23(other.trace), law_23_same(one.trace, other.trace)
    (True, [], [])
    """
    found: list[Violation] = []
    running: set[str] = set()
    issued: dict[int, str] = {}
    settled: set[int] = set()
    seen: set[int] = set()
    for index, event in enumerate(trace):
        wrong: str | None = None
        match event:
            case events.Spawned(actor=actor):
                running.add(actor)
            case events.Stopped(actor=actor):
                running.discard(actor)
            case Called(call=call, actor=actor, purpose=purpose, given=given):
                if call in issued:
                    wrong = f"call {call} is issued twice"
                elif actor not in running:
                    wrong = f"call {call} is issued to {actor}, which does not run"
                elif purpose in ("item", "message") and not seen.issuperset(given):
                    wrong = f"call {call} is given items {list(given)} before they were delivered"
                issued[call] = actor
            case events.Finished(call=call, actor=actor) | events.Lost(call=call, actor=actor):
                if issued.get(call) != actor:
                    wrong = f"call {call} comes back from {actor}, which was not called"
                elif call in settled:
                    wrong = f"call {call} comes back twice"
                settled.add(call)
            case events.Shared(uid=uid):
                seen.add(uid)
            case Delivered(uid=uid, calls=calls, made_from=made_from):
                if not settled.issuperset(calls):
                    wrong = (
                        f"{trace.name(event.node)} delivers item {uid} before calls {list(calls)} came back"
                    )
                elif not seen.issuperset(made_from):
                    wrong = f"{trace.name(event.node)} delivers item {uid}, made of what was not delivered"
                seen.add(uid)
            case _:
                pass
        if wrong:
            found.append(Violation(23, wrong, index))
    return found


def law_23_same(trace: Trace, other: Trace) -> list[Violation]:
    """Law 23 for two runs of one plan on any two engines; plans with asynchronous operators are not compared.

    Args:
        trace: the one run.
        other: the other.
    """
    unready = any(
        isinstance(event, events.Finished) and event.outcome == "not_ready" for event in (*trace, *other)
    )
    if unready or any(_asynchronous(node) for node in walk(trace.plan)):
        return []
    return compared(trace, other, 23)


def _asynchronous(node: Node) -> bool:
    match node:
        case nodes.Gather(mode=mode):
            return mode == "async"
        case nodes.Union(policy=policy):
            return policy in ("async", "prioritised")
        case nodes.Pace(drops=drops):
            return drops
        case nodes.Buffer():
            return True
        case nodes.Place(ordered=ordered):
            return not ordered
        case _:
            return False
