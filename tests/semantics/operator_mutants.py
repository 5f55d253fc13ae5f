"""Operators that are broken on purpose, one for every clause about them, each with a plan on which it shows.

The first mutant of every law is in `mutants`; these are the others.
"""

from __future__ import annotations

from typing import Any

from pipeflow.dsl import (
    Sourced,
    Stream,
    actors,
    batch,
    buffer,
    concat,
    drain,
    every_seconds,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    reply_weights,
    throttle,
    update_target,
)
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.sim import Sim
from pipeflow.testing.parts import Counted, Learner, Store, Worker, as_weights, pair_sum
from tests.semantics.broken import no_weights, not_copied
from tests.semantics.broken_operators import (
    AlwaysTheSame,
    BuffersInReverse,
    BuffersMore,
    CarriesTheLost,
    CountsItems,
    DrainsForFree,
    DropsForGood,
    FeedsAhead,
    ForgetsThePartner,
    ForgetsWhatIsHeld,
    GoesOnUnfed,
    Impatient,
    NotifiesLater,
    PairsTwice,
    RejectsInSilence,
    RemembersDebts,
    ServesTheLast,
    StopsNeither,
    StopsOnlyItself,
    WaitsForItsFilter,
    first_source,
    forgets_buffers,
    forgets_kept_weights,
    gives_up_the_last,
    moves_anything,
    restarts_in_any_case,
    weights_to_all,
)
from tests.semantics.mutants import CURSORS, Mutant, crashing, resumed, training, union

EXECUTOR = "pipeflow.lowering.executor.Executor."
BROADCASTS = "pipeflow.lowering.broadcasts.Broadcasts."
RUNNING = "pipeflow.lowering.actors.RunningActors."
SHARDS = CURSORS + "shards."


def _sampled(count: int = 2, restarts: int = 0) -> Any:
    """Workers with three items each. `Any`: the sourced stream's type is of no concern here."""
    workers = actors(Worker, count, 3, 10).restarts(restarts)
    return workers.produce(Worker.sample).map(Counted)


def erring(seed: int) -> Engine:
    """A simulation in which four calls may raise."""
    return Sim(seed, errors=4)


def _dropping() -> Stream[int]:
    workers = actors(Worker, 2, 3, 10).on_error("drop_shard")
    return workers.produce(Worker.sample) | gather_async(2)


def _zipped() -> Stream[int]:
    sampled: Stream[int] = _sampled(1) | gather_async()
    return from_items(range(5)).zip(sampled) | pair_sum


def _scattered() -> Stream[int]:
    learners = actors(Learner, 2)
    sampled: Stream[int] = _sampled() | gather_async()
    return sampled | learners.scatter() | learners.stage(Learner.update) | gather_sync()


def _stopped_scatter() -> Stream[int]:
    store = actors(Store, 2, 1, 1)
    scattered = from_items(range(9)) | store.scatter() | store.stage(Store.add) | gather_sync() | drain
    return scattered & (from_items([1]) | actors(Learner, 1).stage(Learner.update))


def _broadcast_lists() -> Stream[list[int]]:
    lists = from_items([[1], [2]]).map(list, here=True)
    return lists | actors(list[int], 2).broadcast() | gather_sync()


def _source_of(sourced: Sourced[int, Worker]) -> int:
    return sourced.source.index


def _reads_sources() -> Stream[int]:
    sourced: Stream[Sourced[int, Worker]] = _sampled() | gather_sync().with_source()
    return sourced | _source_of | actors(Learner, 1).stage(Learner.update)


def _answered_batches() -> Stream[int]:
    sourced: Stream[Sourced[int, Worker]] = _sampled() | gather_sync().with_source()
    updated = sourced | batch(2) | actors(Learner, 1).stage(Learner.update_all)
    return updated.reply(Worker.set_weights, as_weights)


def _answered_joined() -> Stream[int]:
    sourced: Stream[Sourced[Counted, Worker]] = _sampled() | gather_sync().with_source()
    updated = sourced | concat(5) | actors(Learner, 1).stage(Learner.update)
    return updated.reply(Worker.set_weights, as_weights)


def _answered_though_actors_die() -> Stream[int]:
    learner = actors(Learner, 1).restarts(2)
    sourced: Stream[Sourced[int, Worker]] = _sampled(restarts=2) | gather_async().with_source()
    return (sourced | learner.stage(Learner.update)).reply(Worker.set_weights, as_weights)


def _weights_in_reply(restarts: int = 0) -> Stream[int]:
    learner = actors(Learner, 1).restarts(restarts)
    sourced: Stream[Sourced[int, Worker]] = _sampled(restarts=restarts) | gather_async().with_source()
    return sourced | learner.stage(Learner.update) | reply_weights(learner)


def _targeted() -> Stream[int]:
    learner = actors(Learner, 1)
    return from_items(range(4)) | learner.stage(Learner.update) | update_target(learner, every=2)


def _is_odd(number: int) -> bool:
    return number % 2 == 1


def _filtered_in_turns() -> Stream[int]:
    return (from_items(range(6)).filter(_is_odd) & from_items(range(10, 13))).round_robin(1, 1)


def _by_steps() -> Stream[int]:
    one, other = (from_items(range(start, start + 6)).map(Counted) for start in (0, 10))
    return (one & other).by_steps(1, 2)


def _by_steps_from_a_store() -> Stream[int]:
    store = actors(Store, 1, 3, 4)
    storing = (from_items(range(7)) | store.stage(Store.add)).map(Counted)
    return ((store.produce(Store.sample) | gather_sync()).map(Counted) & storing).by_steps(1, 1)


def _by_steps_drained() -> Stream[int]:
    one, other = (from_items(range(start, start + 6)).map(Counted) for start in (0, 10))
    return ((one | drain) & other).by_steps(1, 1)


def _prioritised() -> Stream[int]:
    return (from_items(range(3)) & from_items(range(10, 13))).prioritised()


def _buffered() -> Stream[int]:
    learner = actors(Learner, 1)
    return from_shards([range(8)]) | gather_sync() | buffer(2) | learner.stage(Learner.update)


def _throttled() -> Stream[int]:
    return from_shards([range(6)]) | gather_async() | throttle(0.02)


def _now_and_then() -> Stream[int]:
    return from_shards([range(30)]) | gather_async() | every_seconds(0.02)


OPERATOR_MUTANTS = (
    Mutant(
        2,
        "a zip that uses an item twice",
        _zipped,
        {CURSORS + "ZipCursor": PairsTwice},
        says=r"zip \(.*\) delivers a pair of \[\d+, \d+\]; expected the next of both sides",
    ),
    Mutant(
        2,
        "a scatter that gives every item to the first actor",
        _scattered,
        {SHARDS + "Scattering": AlwaysTheSame},
        says=r"Learner.scatter\(\) \(.*\) gives item \d+ to actors \[0\]; expected \[1\]",
    ),
    Mutant(
        3,
        "a stage that reads sources and is fused into an actor",
        _reads_sources,
        {"pipeflow.lowering.fusion._moves": moves_anything},
        says=r"_source_of \(.*\) runs in Learner\[0\]; expected it on the driver",
    ),
    Mutant(
        5,
        "a gather that goes on without the shards that are not fed yet",
        _scattered,
        {CURSORS + "SyncGatherCursor": GoesOnUnfed},
        says=r"gather_sync\(\) \(.*\) leaves shard \d out of a round",
    ),
    Mutant(
        6,
        "a shard that is fed before the round is over",
        _scattered,
        {SHARDS + "FedShard": FeedsAhead},
        says=r"gather_sync\(\) \(.*\) starts another item of shard \d before",
    ),
    Mutant(
        9,
        "a reply to the first of several sources",
        _answered_batches,
        {EXECUTOR + "sources_of": first_source},
        says=r"reply\(.*\) delivers item \d+ after messages to \['Worker\[0\]'\]; expected one to each of",
    ),
    Mutant(
        9,
        "a stage that forgets the sources of what is fused into it",
        _answered_joined,
        {CURSORS + "PlaceCursor": ForgetsWhatIsHeld},
        says=r"reply\(.*\) delivers item \d+ after messages to .*; expected one to each of",
    ),
    Mutant(
        9,
        "a stage that keeps the sources of what was lost with an actor",
        _answered_though_actors_die,
        {CURSORS + "PlaceCursor": CarriesTheLost},
        engine=crashing,
        says=r"reply\(.*\) delivers item \d+ after messages to .*; expected one to each of \['Worker\[\d\]'\]",
    ),
    Mutant(
        9,
        "a reply of weights to the whole group",
        _weights_in_reply,
        {BROADCASTS + "send": weights_to_all},
        says=r"reply_weights\(.*\) delivers an item of .* was sent weights 2 times; expected 1",
    ),
    Mutant(
        9,
        "a target network that is updated too late",
        _targeted,
        {CURSORS + "NotifyCursor": NotifiesLater},
        says=r"update_target\(.*\) delivers item 2 when Learner\[0\] was called 0 times; expected 1",
    ),
    Mutant(
        11,
        "a round robin in which a filter that rejects keeps its turn",
        _filtered_in_turns,
        union("round_robin", WaitsForItsFilter),
        says=r"round_robin \(.*\) takes from filter.* \(.*\); expected item 1 of 1 of from_items \(.*\)",
    ),
    Mutant(
        11,
        "a filter that rejects and does not say so",
        _filtered_in_turns,
        {CURSORS + "GateCursor": RejectsInSilence},
        says=r"filter.* \(.*\) rejects item \d+ and does not pass its turn",
    ),
    Mutant(
        11,
        "a union by steps that ignores its weights",
        _by_steps,
        union("by_steps", CountsItems),
        says=r"by_steps \(.*\) takes from Counted \(.*\), which has had 3 steps for its weight; expected",
    ),
    Mutant(
        11,
        "a union by steps in which a branch that was not ready catches up",
        _by_steps_from_a_store,
        union("by_steps", RemembersDebts),
        says=r"by_steps \(.*\) takes from Counted",
    ),
    Mutant(
        11,
        "a union by steps that does not count what is drained",
        _by_steps_drained,
        union("by_steps", DrainsForFree),
        says=r"by_steps \(.*\) does not count once what it takes from drain",
    ),
    Mutant(
        12,
        "a prioritised union that serves its last branch first",
        _prioritised,
        union("prioritised", ServesTheLast),
        says=r"prioritised \(.*\) serves from_items \(.*\) without asking from_items \(.*\), which comes first",
    ),
    Mutant(
        13,
        "a zip that does not stop what it reads",
        _zipped,
        {CURSORS + "ZipCursor": StopsNeither},
        says=r"from_items \(.*\) is not stopped with zip",
    ),
    Mutant(
        13,
        "a gather that does not stop what feeds its shards",
        _stopped_scatter,
        {CURSORS + "SyncGatherCursor": StopsOnlyItself},
        says=r"from_items \(.*\) is not stopped with gather_sync\(\)",
    ),
    Mutant(
        16,
        "a buffer that holds one item more",
        _buffered,
        {CURSORS + "BufferCursor": BuffersMore},
        says=r"buffer\(2\) \(.*\) holds 2 items and asks for more; it may hold 2",
    ),
    Mutant(
        16,
        "a buffer that gives out the last first",
        _buffered,
        {CURSORS + "BufferCursor": BuffersInReverse},
        says=r"buffer\(2\) \(.*\) delivers item \d+; expected the items in order",
    ),
    Mutant(
        17,
        "a throttle that lets items pass too soon",
        _throttled,
        {CURSORS + "PaceCursor": Impatient},
        says=r"throttle\(0.02\) \(.*\) delivers item \d+ at [\d.]+ s; the next may pass from [\d.]+ s on",
    ),
    Mutant(
        17,
        "a throttle that drops what comes too soon",
        _throttled,
        {CURSORS + "PaceCursor": DropsForGood},
        says=r"throttle\(0.02\) \(.*\) drops item \d+",
    ),
    Mutant(
        17,
        "a timed gate that lets items pass too soon",
        _now_and_then,
        {CURSORS + "PaceCursor": Impatient},
        says=r"every_seconds\(0.02\) \(.*\) delivers item \d+ at",
    ),
    Mutant(
        18,
        "a zip that loses what has no partner",
        _zipped,
        {CURSORS + "ZipCursor": ForgetsThePartner},
        says=r"zip \(.*\) has ended with items \[\d+\]; expected each in one pair or dropped",
    ),
    Mutant(
        19,
        "a restart without the weights of a reply",
        lambda: _weights_in_reply(restarts=2),
        {BROADCASTS + "latest": no_weights},
        engine=crashing,
        says=r"Worker\[\d\] was started again .* without the latest weights of reply_weights",
    ),
    Mutant(
        9,
        "weights that were kept for a busy actor and are never sent",
        lambda: training(items=12),
        {"pipeflow.lowering.broadcasts._WEIGHTS_AHEAD": 1, BROADCASTS + "flush": forgets_kept_weights},
        says=r"Worker\[\d\] is called \(call \d+\) before the weights that are kept of sync_weights",
    ),
    Mutant(
        19,
        "the last actor of a group is given up",
        _dropping,
        {RUNNING + "raised": gives_up_the_last},
        engine=erring,
        says=r"Worker\[\d\] is given up and was the last of Worker; expected its error to end the run",
    ),
    Mutant(
        20,
        "an actor that is started again though its group says that errors end the run",
        lambda: training(restarts=2),
        {RUNNING + "raised": restarts_in_any_case},
        engine=erring,
        says=r"call \d+ failed in \w+\[\d\]; expected the run to end with a StageError",
    ),
    Mutant(
        22,
        "a checkpoint without what is in buffers",
        _buffered,
        {"pipeflow.lowering.resuming.resumed": forgets_buffers},
        look=resumed,
        says=r"across the checkpoint, law 16: buffer\(2\)",
    ),
    Mutant(
        26,
        "a broadcast that hands one object to all",
        _broadcast_lists,
        {"pipeflow.lowering.reading.Reader.copied": not_copied},
        says=r"list.broadcast\(\) \(.*\) gives outlet 1 item \d+ itself; expected a copy",
    ),
)
