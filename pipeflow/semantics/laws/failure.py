"""Laws 19 to 22: what a crash costs, whose an error is, what closing leaves, and where a resumed run goes on."""

from __future__ import annotations

from collections import Counter

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Called, Trace
from pipeflow.semantics.laws.barriers import law_5, law_6, law_7
from pipeflow.semantics.laws.concurrency import law_10, law_11
from pipeflow.semantics.laws.demand import law_17, law_18
from pipeflow.semantics.laws.facts import CallFacts, Facts, facts_of
from pipeflow.semantics.laws.law import Violation
from pipeflow.semantics.laws.messages import law_9
from pipeflow.semantics.laws.names import compared
from pipeflow.semantics.laws.order import law_1, law_4
from pipeflow.semantics.laws.sharing import law_14, law_15, law_16
from pipeflow.semantics.laws.stages import law_2

# What holds of a run from its first item to its last, and so across a checkpoint.
_CONTINUED = (
    *(law_1, law_2, law_4, law_5, law_6, law_7, law_9, law_10, law_11),
    *(law_14, law_15, law_16, law_17, law_18),
)


def law_19(trace: Trace) -> list[Violation]:
    """A crash loses only what was in flight: the calls of the actor that died, and nothing that was delivered.

    The actor is started again as often as its group allows, and if it may be, the run does not end. It gets the
    weights that were last sent to its group before its first new item. Nothing else is called that dead, and
    the other shards go on (law 8). With ``on_error("restart")`` an error in user code is such a crash. With
    ``on_error("drop_shard")`` an error, or a death with no start left, ends the actor's shards, but never those of
    the last actor of a group: it is given up and called no more.

    >>> from pipeflow import from_shards, gather_sync
    >>> from pipeflow.lowering.engines.sim import Sim
    >>> run = (from_shards([[1, 2]]) | gather_sync()).run(Sim(seed=1), record=True)
    >>> list(run), law_19(run.trace)
    ([1, 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    restarts: Counter[int] = Counter()
    lives: Counter[str] = Counter()
    given_up: set[str] = set()
    # By actor and life, the calls that were lost with it.
    dead: dict[tuple[str, int], int] = {}
    for index, event in enumerate(trace):
        match event:
            case events.Lost(call=number, actor=actor, died=True) if number in facts.calls:
                life = facts.calls[number].life
                dead.setdefault((actor, life), number)
                following = trace.events[index + 1] if index + 1 < len(trace) else None
                if life == lives[actor] and actor not in given_up and following is not None:
                    found += _not_restarted(facts, actor, following, restarts, index)
            case events.Finished(call=number, actor=actor) if number in facts.calls:
                lost = dead.get((actor, facts.calls[number].life), number)
                if lost < number:
                    message = f"{actor} finishes call {number} after it died in call {lost}"
                    found.append(Violation(19, message, index))
            case Called(actor=actor) if actor in given_up:
                message = f"{actor} is called (call {event.call}) though it was given up"
                found.append(Violation(19, message, index))
            case Called(actor=actor) if (actor, lives[actor]) in dead:
                found.append(Violation(19, f"{actor} is called (call {event.call}) though it is dead", index))
            case events.Spawned(actor=actor, restart=True) if actor in facts.groups:
                group = facts.groups[actor]
                raised = group.on_error == "restart" and _failed_in(trace, index) == actor
                if (actor, lives[actor]) not in dead and not raised:
                    found.append(Violation(19, f"{actor} is started again though it had not died", index))
                lives[actor] += 1
                restarts[id(group)] += 1
                if restarts[id(group)] > group.restarts:
                    message = (
                        f"{group.name} is restarted {restarts[id(group)]} times; expected at most "
                        f"{group.restarts}"
                    )
                    found.append(Violation(19, message, index))
                found += _without_weights(facts, actor, lives[actor], index)
            case events.GivenUp(actor=actor) if actor in facts.groups:
                given_up.add(actor)
                died = (actor, lives[actor]) in dead or _failed_in(trace, index) == actor
                found += _wrongly_given_up(facts, actor, given_up, died, index)
            case events.Delivered(calls=calls):
                for number in calls:
                    call = facts.calls.get(number)
                    if call is not None and call.lost:
                        message = (
                            f"{facts.name(event.node)} delivers call {number}, which was lost with "
                            f"{call.called.actor}"
                        )
                        found.append(Violation(19, message, index))
            case _:
                pass
    return found


def law_20(trace: Trace) -> list[Violation]:
    """An error in user code ends the run with a `StageError` that says which stage, where, and in which actor.

    It is never retried and never swallowed: nothing happens after it but that the actors are stopped. Only where
    the actor's group says so with ``on_error`` is the actor started again or given up instead (law 19), and not
    for what the run's user asks of it.

    >>> from pipeflow import StageError, from_shards, gather_sync
    >>> run = (from_shards([["1", "x"]]).map(int) | gather_sync()).run(record=True)
    >>> try:
    ...     list(run)
    ... except StageError:
    ...     print(law_20(run.trace))
    []
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    raised: events.Raised | None = None
    for index, event in enumerate(trace):
        if raised is not None and not isinstance(event, events.Raised | events.Stopped | events.Closed):
            message = (
                f"{type(event).__name__} comes after the run ended with {raised.error}; expected nothing more"
            )
            return [*found, Violation(20, message, index)]
        if isinstance(event, events.Finished) and event.outcome == "failed" and index + 1 < len(trace):
            following = trace.events[index + 1]
            if _is_policy(facts, event, following, index):
                continue
            if not (isinstance(following, events.Raised) and following.error == "StageError"):
                message = (
                    f"call {event.call} failed in {event.actor}; expected the run to end with a StageError"
                )
                found.append(Violation(20, message, index))
            elif event.call in facts.calls:
                found += _untold(facts, facts.calls[event.call], following, index + 1)
        elif isinstance(event, events.Raised):
            raised = raised or event
            if event.error == "StageError" and not _names_a_stage(facts, event.message):
                message = f"the error names no stage of the plan and where it was written: {event.message}"
                found.append(Violation(20, message, index))
    return found


def law_21(trace: Trace) -> list[Violation]:
    """After `close`, an error or Ctrl-C no actor of the run is left.

    That their processes are gone as well, and within which time, no trace can tell; the engines' tests do.

    >>> from pipeflow import from_shards, gather_sync
    >>> run = (from_shards([[1], [2]]) | gather_sync()).run(record=True)
    >>> list(run), law_21(run.trace)
    ([1, 2], [])
    """
    found: list[Violation] = []
    running: set[str] = set()
    closed = False
    for index, event in enumerate(trace):
        if closed and not isinstance(event, events.Raised):
            found.append(Violation(21, f"{type(event).__name__} comes after the run was closed", index))
        match event:
            case events.Spawned(actor=actor):
                running.add(actor)
            case events.Stopped(actor=actor):
                running.discard(actor)
            case events.Closed():
                closed = True
                if running:
                    message = f"the run is closed and has not stopped {', '.join(sorted(running))}"
                    found.append(Violation(21, message, index))
            case _:
                pass
    return found


def law_22(trace: Trace) -> list[Violation]:
    """A run that goes on from a checkpoint delivers the items that the uninterrupted run would have delivered.

    So it is for a deterministic plan; an asynchronous one loses and repeats nothing that had been delivered,
    and every counter goes on. `law_22_resumed` checks it for the events up to the checkpoint and those of the
    resumed run. One trace alone shows no more than that its numbers go on.

    >>> from pipeflow import from_shards, gather_sync
    >>> run = (from_shards([[1, 2]]) | gather_sync()).run(record=True)
    >>> list(run), law_22(run.trace)
    ([1, 2], [])
    """
    found: list[Violation] = []
    last = 0
    for index, event in enumerate(trace):
        if isinstance(event, Called):
            if event.call <= last:
                found.append(
                    Violation(22, f"call {event.call} comes after call {last}; expected to count on", index)
                )
            last = max(last, event.call)
    return found


def law_22_resumed(before: Trace, after: Trace, whole: Trace | None = None) -> list[Violation]:
    """Law 22 for a run that goes on from a checkpoint.

    >>> from pipeflow import from_shards, gather_sync
    >>> run = (from_shards([[1, 2]]) | gather_sync()).run(record=True)
    >>> next(run), list(run)
    (1, [2])
    >>> cut = 1 + next(i for i, event in enumerate(run.trace) if isinstance(event, events.Delivered))
    >>> before, after = (Trace(run.trace.plan, part) for part in (run.trace.events[:cut], run.trace.events[cut:]))
    >>> law_22_resumed(before, after, whole=run.trace)
    []

    Args:
        before: the events up to the checkpoint.
        after: the events of the resumed run, numbers going on from those before; with or without them.
        whole: of a deterministic plan, a run that was not interrupted.
    """
    copied = after.events[: len(before)] == before.events
    joined = after if copied else Trace(before.plan, [*before.events, *after.events])
    found = law_22(joined)
    for check in _CONTINUED:
        found += [
            Violation(22, f"across the checkpoint, law {broken.law}: {broken.message}", broken.event_index)
            for broken in check(joined)
        ]
    return found if whole is None else found + compared(whole, joined, 22)


def _not_restarted(
    facts: Facts, actor: str, following: events.Event, restarts: Counter[int], index: int
) -> list[Violation]:
    """Whether what follows a death is a new start, or the end of the run where no start is left."""
    group = facts.groups.get(actor)
    if group is None or (isinstance(following, events.Spawned) and following.actor == actor):
        return []
    left = group.restarts - restarts[id(group)]
    if isinstance(following, events.GivenUp) and following.actor == actor and left <= 0:
        return []
    if isinstance(following, events.Raised) and (left <= 0 or following.error != "ActorDiedError"):
        return []
    return [
        Violation(
            19,
            f"{actor} died and is not started again; its group has {left} of {group.restarts} starts left",
            index,
        )
    ]


def _failed_in(trace: Trace, index: int) -> str | None:
    """The actor in which user code raised right before an event, if it did."""
    before = trace.events[index - 1] if index else None
    return before.actor if isinstance(before, events.Finished) and before.outcome == "failed" else None


def _wrongly_given_up(
    facts: Facts, actor: str, given_up: set[str], failed: bool, index: int
) -> list[Violation]:
    """What is wrong with giving an actor up, itself counted among those that were."""
    group = facts.groups[actor]
    if not failed:
        message = f"{actor} is given up though it had not failed"
    elif group.on_error != "drop_shard":
        message = f"{actor} is given up; its group says on_error({group.on_error!r})"
    elif given_up.issuperset(facts.actors_of(group)):
        message = f"{actor} is given up and was the last of {group.name}; expected its error to end the run"
    else:
        return []
    return [Violation(19, message, index)]


def _without_weights(facts: Facts, actor: str, life: int, index: int) -> list[Violation]:
    """The weights that a restarted actor did not get before its first item."""
    found: list[Violation] = []
    mine = [call for call in facts.calls.values() if call.called.actor == actor and call.life == life]
    items = [call.index for call in mine if call.called.purpose == "item"]
    if not items:
        return []
    for node, stage in enumerate(facts.nodes):
        if not isinstance(stage, nodes.SyncWeights | nodes.ReplyWeights):
            continue
        sent = [
            call
            for call in facts.calls.values()
            if call.called.node == node
            and call.called.purpose == "weights"
            and facts.groups[call.called.actor] is facts.groups[actor]
        ]
        kept = [
            (at, (event.given,))
            for at, event in facts.kept
            if event.node == node and facts.groups[event.actor] is facts.groups[actor]
        ]
        given = sorted([*((call.index, call.called.given) for call in sent), *kept])
        latest = [uids for at, uids in given if at < index][-1:]
        got = [call.called.given for call in mine if call.called.node == node and call.index < items[0]]
        if latest and latest[0] not in got:
            message = (
                f"{actor} was started again and asked for an item without the latest weights of "
                f"{facts.name(node)}"
            )
            found.append(Violation(19, message, items[0]))
    return found


def _is_policy(facts: Facts, failed: events.Finished, following: events.Event, index: int) -> bool:
    """Whether what follows a failed call is what its group says in place of the end of the run."""
    group = facts.groups.get(failed.actor)
    call = facts.calls.get(failed.call)
    if group is None or call is None or call.called.purpose == "ask":
        return False
    if call.life < facts.life_at(failed.actor, index) or facts.given_up.get(failed.actor, index) < index:
        return True  # it was ended before this became known
    match group.on_error:
        case "restart":
            return isinstance(following, events.Spawned) and following.actor == failed.actor
        case "drop_shard":
            return isinstance(following, events.GivenUp) and following.actor == failed.actor
        case _:
            return False


def _untold(facts: Facts, call: CallFacts, raised: events.Raised, index: int) -> list[Violation]:
    """Whether an error says in which stage and actor the call failed."""
    node = call.called.node
    stages = facts.steps_of(call) or ((facts.nodes[node],) if node >= 0 else ())
    told = not stages or any(f"{stage.site}: stage {stage.name} failed" in raised.message for stage in stages)
    if told and call.called.actor in raised.message:
        return []
    names = ", ".join(f"{stage.name} ({stage.site})" for stage in stages)
    message = (
        f"call {call.called.call} failed in {call.called.actor}; the error does not name it and one of "
        f"{names}"
    )
    return [Violation(20, message, index)]


def _names_a_stage(facts: Facts, message: str) -> bool:
    named = [f"stage {node.name} failed" for node in facts.nodes]
    groups = list(facts.groups.values())
    named += [f"actors({group.name}, {group.count}) failed" for group in groups]
    named += [f"{group.name}.close failed" for group in groups]
    return "stage ask(" in message or any(text in message for text in named)
