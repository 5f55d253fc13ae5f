"""Laws 5 to 8: rounds and barriers, and what asynchrony is bounded by."""

from __future__ import annotations

from collections.abc import Iterator

from pipeflow.dsl import nodes
from pipeflow.semantics import events
from pipeflow.semantics.events import Called, Delivered, Trace
from pipeflow.semantics.laws.facts import CallFacts, Facts, facts_of
from pipeflow.semantics.laws.law import Violation


def law_5(trace: Trace) -> list[Violation]:
    """`gather_sync` and `gather_rounds` deliver in rounds: one item of every live shard, in shard order.

    A shard that is fed from a scattered stream ends with it. What it is fed and loses with its actor leaves a gap
    in that round, so that the items of a round go on belonging together.

    >>> from pipeflow import from_shards, gather_sync
    >>> run = (from_shards([[1, 2], [3]]) | gather_sync()).run(record=True)
    >>> list(run), law_5(run.trace)
    ([1, 3, 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for gather in _gathers(facts, "sync", "rounds"):
        shards = facts.by_shard(gather)
        halted = facts.halted.get(gather, len(trace))
        previous = len(shards) - 1
        for index, event in facts.deliveries[gather]:
            if index > halted:
                break  # the last round is delivered as far as it got
            order = [facts.shard_of(facts.calls[call]) for call in event.calls if call in facts.calls]
            known = [shard for shard in order if shard is not None]
            if _mode(facts, gather) == "rounds":
                previous = len(shards) - 1
                if known != sorted(set(known)):
                    message = f"{facts.name(gather)} delivers a round of shards {known}; expected shard order"
                    found.append(Violation(5, message, index))
            before = max((_done_count(facts, gather, n, shards[n], index) for n in known), default=0)
            for shard in known:
                found += _skipped(facts, gather, shards, (previous, shard), before, index)
                previous = shard
            if _mode(facts, gather) == "rounds" and known:
                found += _skipped(facts, gather, shards, (previous, len(shards)), before, index)
        end = facts.ended.get(gather)
        if end is not None and halted > end:
            found += [
                Violation(5, f"{facts.name(gather)} has ended, but shard {shard} has not", end)
                for shard, calls in enumerate(shards)
                if not facts.shard_ended(gather, shard, calls, end)
            ]
    return found


def law_6(trace: Trace) -> list[Violation]:
    """No shard starts its item of the next round before all of this one were delivered and it was asked for again.

    Hence a message that is sent while a round is consumed is applied before anything of the next round starts:
    a synchronous plan is exactly on-policy.

    >>> from pipeflow import from_shards, gather_sync
    >>> run = (from_shards([[1, 2], [3]]) | gather_sync()).run(record=True)
    >>> next(run), law_6(run.trace)
    (1, [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for gather in _gathers(facts, "sync", "rounds"):
        shards = facts.by_shard(gather)
        name = facts.name(gather)
        for index, call, asked in _starts(facts, gather):
            shard = facts.shard_of(call)
            if shard is None:
                continue
            if not asked:
                message = f"{name} starts shard {shard} before its consumer asked again"
                found.append(Violation(6, message, index))
            done = _done_count(facts, gather, shard, shards[shard], index)
            for other, calls in enumerate(shards):
                behind = _done_count(facts, gather, other, calls, index) < done
                behind = behind and not facts.shard_ended(gather, other, calls, index)
                held = other == shard and any(
                    earlier.open_at(index) for earlier in calls if earlier.index < index
                )
                if behind or held:
                    message = (
                        f"{name} starts another item of shard {shard} before item {done + held} of shard {other} "
                        "was delivered; expected a barrier"
                    )
                    found.append(Violation(6, message, index))
    return found


def law_7(trace: Trace) -> list[Violation]:
    """Under `gather_async(n)` at most n items of a shard are started and not yet delivered.

    Hence after a message to a shard's actor at most n further items do not reflect it. A shard is asked for
    more only after the consumer asked again. The lag that is recorded with an item is the number of weights
    that its actor was sent since it was asked for it.

    >>> from pipeflow import from_shards, gather_async
    >>> run = (from_shards([[1, 2, 3]]) | gather_async(2)).run(record=True)
    >>> next(run), law_7(run.trace)
    (1, [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for gather in _gathers(facts, "async"):
        shards, name, limit = facts.by_shard(gather), facts.name(gather), _run_ahead(facts, gather)
        for index, call, asked in _starts(facts, gather):
            shard = facts.shard_of(call)
            if shard is None:
                continue
            if not asked:
                message = f"{name} starts shard {shard} before its consumer asked again"
                found.append(Violation(7, message, index))
            started = sum(earlier.open_at(index) for earlier in shards[shard] if earlier.index < index)
            if started >= limit:
                message = f"{name} starts item {started + 1} of shard {shard} ahead; expected at most {limit}"
                found.append(Violation(7, message, index))
        for index, event in facts.deliveries[gather]:
            lag = facts.lag(event, index)
            if event.lag is not None and lag is not None and event.lag != lag:
                message = f"{name} delivers item {event.uid} with a lag of {event.lag}; expected {lag}"
                found.append(Violation(7, message, index))
    return found


def law_8(trace: Trace) -> list[Violation]:
    """A slow or dead shard delays only itself under `gather_async`, and its own round under `gather_sync`.

    Asked for an item, a `gather_async` delivers one that is ready, and lets every shard that can go on go on. A
    `gather_sync` delivers nothing only while a shard of the round is at work or has nothing, or what feeds one has
    nothing.

    >>> from pipeflow import from_shards, gather_async
    >>> run = (from_shards([[1, 2], [3]]) | gather_async()).run(record=True)
    >>> list(run), law_8(run.trace)
    ([1, 3, 2], [])
    """
    facts = facts_of(trace)
    found: list[Violation] = []
    for gather in _gathers(facts, "sync", "rounds", "async"):
        if _holds_back(facts, gather):
            continue
        shards, name = facts.by_shard(gather), facts.name(gather)
        for index, answer in _polls(facts, gather):
            if isinstance(answer, Delivered | events.Ended) and answer.node == gather:
                continue
            if isinstance(answer, events.Asked) and answer.node in facts.upstream[gather]:
                continue  # it waits for what feeds a shard
            issued = [[call for call in calls if call.index < index] for calls in shards]
            if _mode(facts, gather) == "async":
                for shard, calls in enumerate(issued):
                    found += _held_up(facts, gather, shard, calls, index)
                continue
            nothing = isinstance(answer, events.NothingReady) and answer.node == gather
            if not nothing and all(call.settled_by(index) for calls in issued for call in calls):
                found.append(Violation(8, f"{name} waits, and no shard of it is at work", index))
    return found


def _mode(facts: Facts, gather: int) -> nodes.GatherMode:
    node = facts.nodes[gather]
    assert isinstance(node, nodes.Gather)
    return node.mode


def _run_ahead(facts: Facts, gather: int) -> int:
    node = facts.nodes[gather]
    assert isinstance(node, nodes.Gather)
    return node.num_async if node.mode == "async" else 1


def _gathers(facts: Facts, *modes: nodes.GatherMode) -> list[int]:
    return [gather for gather in facts.shards if _mode(facts, gather) in modes]


def _done_count(facts: Facts, gather: int, shard: int, calls: list[CallFacts], index: int) -> int:
    """How many rounds a shard is through: an item that it was fed and that is lost is not made up for."""
    fed = facts.shards[gather][shard].scatter is not None
    return sum(call.delivered_by(index) or (fed and call.lost and call.settled_by(index)) for call in calls)


def _starts(facts: Facts, gather: int) -> Iterator[tuple[int, CallFacts, bool]]:
    """The calls of a gather's shards, and whether the consumer had asked since the last delivery."""
    asked = False
    for index, event in enumerate(facts.trace):
        match event:
            case events.Asked(node=node) if node == gather:
                asked = True
            case Delivered(node=node) if node == gather:
                asked = False
            case Called(node=node, purpose="item") if node == gather:
                yield index, facts.calls[event.call], asked
            case _:
                pass


def _skipped(
    facts: Facts,
    gather: int,
    shards: list[list[CallFacts]],
    between: tuple[int, int],
    rounds: int,
    index: int,
) -> list[Violation]:
    """The live shards that a round leaves out between two deliveries; after the last shard comes the first.

    `rounds` are over. A shard that was fed an item which is lost has had its turn.
    """
    previous, following = between
    left_out = (
        range(previous + 1, following)
        if following > previous
        else [*range(previous + 1, len(shards)), *range(following)]
    )
    return [
        Violation(
            5, f"{facts.name(gather)} leaves shard {shard} out of a round; expected one item of each", index
        )
        for shard in left_out
        if not facts.shard_ended(gather, shard, shards[shard], index)
        and not _lost_its_turn(facts, gather, shard, shards[shard], rounds + (shard < following), index)
    ]


def _lost_its_turn(
    facts: Facts, gather: int, shard: int, calls: list[CallFacts], rounds: int, index: int
) -> bool:
    fed = facts.shards[gather][shard].scatter is not None
    return fed and _done_count(facts, gather, shard, calls, index) >= rounds


def _holds_back(facts: Facts, gather: int) -> bool:
    """Whether a lag limit makes the faster shards wait, so that the gather holds items back on purpose."""
    readers = (facts.nodes[node] for node in facts.readers[gather])
    return any(isinstance(reader, nodes.MaxLag) and reader.wait for reader in readers)


def _polls(facts: Facts, gather: int) -> Iterator[tuple[int, events.Event]]:
    """For every time that a gather was asked, the event after what it started then, and that event's place."""
    trace = facts.trace.events
    for index, event in enumerate(trace):
        if isinstance(event, events.Asked) and event.node == gather:
            after = index + 1
            while after < len(trace):
                started = trace[after]
                # What the driver kept for an actor goes out with the actor's next call.
                if not (
                    isinstance(started, Called) and (started.node == gather or started.purpose == "setup")
                ):
                    break
                after += 1
            if after < len(trace) and not isinstance(trace[after], events.Raised):
                yield after, trace[after]


def _held_up(facts: Facts, gather: int, shard: int, calls: list[CallFacts], index: int) -> list[Violation]:
    """Whether a shard that can go on does not, at a moment when a `gather_async` has answered with nothing."""
    name = facts.name(gather)
    head = next((call for call in calls if call.open_at(index)), None)
    if head is not None:
        if head.settled_by(index):
            message = (
                f"{name} delivers nothing, though shard {shard} has an item ready (call {head.called.call})"
            )
            return [Violation(8, message, index)]
        return []
    if facts.shard_ended(gather, shard, calls, index) or facts.halted.get(gather, index) < index:
        return []
    last = calls[-1] if calls else None
    if last is not None and last.outcome == "not_ready" and not facts.moved_between(last.index, index):
        return []
    return [Violation(8, f"{name} leaves shard {shard} idle while it waits for others", index)]
