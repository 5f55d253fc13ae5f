"""Executors that are broken on purpose, one for every law, each with a plan on which it shows.

A checker that cannot fail is no test: that of law n must reject mutant n under some schedule, and accept the
executor as it is under the same ones. `docs/semantics.md` lists the mutants by what they do.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from pipeflow.dsl import (
    Gather,
    RunError,
    Stream,
    actors,
    batch,
    drain,
    flatten,
    from_items,
    gather_async,
    gather_sync,
    max_lag,
    nodes,
    sync_weights,
    take,
)
from pipeflow.lowering.cursors import _UNIONS
from pipeflow.lowering.cursors.gathers import AsyncGatherCursor
from pipeflow.lowering.cursors.joining import UnionCursor
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.sim import Sim
from pipeflow.semantics.events import Trace
from pipeflow.semantics.laws import Violation, check, law_22_resumed
from tests.lowering.actors import Arithmetic, Counter, Failing, Learner, Worker
from tests.semantics.broken import (
    AdmitsOlder,
    DeliversOnFaith,
    DeliversWhatFinishes,
    DropsPartialBatches,
    ForgetsItems,
    HandsOutTwice,
    HoldsOneMore,
    IgnoresWeights,
    LeavesDrainsUnfinished,
    LosesItems,
    NeverFull,
    OvertakesMessages,
    PrefersTheFirst,
    RoundsAsTheyCome,
    RunsFurtherAhead,
    SkipsTheFunction,
    StartsMore,
    SwallowsItems,
    WaitsForTheSlowest,
    forgets_a_group,
    forgets_what_is_in_flight,
    fuses_into_many,
    no_weights,
    not_copied,
    swallows_failure,
)

# `Any`, here and below: plans of items of any type.
Plan = Callable[[], Stream[Any]]


@dataclass(frozen=True)
class Mutant:
    """A broken executor: what it does wrong, which parts are replaced by what, and a plan on which it shows.

    `says` matches what the law's checker is to say of it, where the test has no words of its own.
    """

    law: int
    broken: str
    plan: Plan
    patches: Mapping[str, object] = dataclasses.field(default_factory=dict[str, object])
    engine: Callable[[int], Engine] = Sim
    broken_engine: Callable[[int], Engine] | None = None
    look: Callable[[Stream[Any], Engine, int], list[Violation]] | None = None
    says: str = ""

    def rejected(self, monkeypatch: pytest.MonkeyPatch, schedules: int = 25) -> list[str]:
        """What the law's checker says of the mutant; the executor as it is must keep the law on all schedules."""
        for seed in range(schedules):
            assert self._violations(self.engine(seed)) == [], f"the executor as it is, under seed {seed}"
        for target, replacement in self.patches.items():
            monkeypatch.setattr(target, replacement)
        found = [
            broken
            for seed in range(schedules)
            for broken in self._violations((self.broken_engine or self.engine)(seed))
        ]
        assert {broken.law for broken in found} == {self.law}, (
            f"law {self.law} accepts a run with {self.broken}"
        )
        return [broken.message for broken in found]

    def _violations(self, engine: Engine) -> list[Violation]:
        plan = self.plan()
        if self.look is not None:
            return self.look(plan, engine, self.law)
        return check(trace_of(plan, engine), [self.law])


def trace_of(plan: Stream[Any], engine: Engine) -> Trace:
    """The trace of a run to its end, or to the error that ends it."""
    run = plan.run(engine, record=True)
    with contextlib.suppress(RunError):
        list(run)
    return run.trace


def crashing(seed: int) -> Engine:
    """A simulation in which two actors may die."""
    return Sim(seed, crashes=2)


def counters(gather: Gather, count: int = 2, limit: int = 6) -> Stream[int]:
    """A few shards that count up."""
    return actors(Counter, count, limit=limit).produce(Counter.next_number) | gather


def training(*, restarts: int = 0, items: int = 8) -> Stream[Any]:
    """Workers, a learner, and its weights back to the workers."""
    workers, learner = actors(Worker, 2).restarts(restarts), actors(Learner, 1)
    return (
        workers.produce(Worker.sample)
        | gather_async(2)
        | learner.stage(Learner.update)
        | sync_weights(learner, workers)
        | take(items)
    )


def resumed(plan: Stream[Any], engine: Engine, law: int) -> list[Violation]:
    """Law 22 for a run that is cut after three items and goes on."""
    twin, fresh = copy.deepcopy(engine), copy.deepcopy(engine)
    whole = trace_of(plan, twin)
    with plan.run(engine, record=True) as run:
        for _ in range(3):
            next(run)
        before, checkpoint = copy.deepcopy(run.trace), run.checkpoint()
    again = plan.run(fresh, record=True, resume=checkpoint)
    list(again)
    return law_22_resumed(before, again.trace, whole)


def negated(number: int) -> int:
    """A stage."""
    return -number


def is_low(number: int) -> bool:
    """A predicate."""
    return number < 5


def _halves() -> Stream[int]:
    low, high = from_items([1, 9, 2, 8]).partition(is_low, buffer=4)
    return low & high


def _uneven_fork() -> Stream[int]:
    left, right = from_items(range(9)).fork(2, buffer=1)
    return (left & right).round_robin(3, 1)


def _uneven_partition() -> Stream[int]:
    low, high = from_items([1, 2, 3, 9]).partition(is_low, buffer=2)
    return (high & low).round_robin(1, 1)


def _lists() -> Stream[list[int]]:
    left, right = from_items([[1], [2]]).fork(2, buffer=1)
    return left & right


def _limited() -> Stream[Any]:
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    return (
        workers.produce(Worker.sample)
        | gather_async(2)
        | max_lag(1)
        | learner.stage(Learner.update)
        | sync_weights(learner, workers)
        | take(8)
    )


CURSORS = "pipeflow.lowering.cursors."


def union(policy: nodes.UnionPolicy, broken: type[UnionCursor]) -> dict[str, object]:
    """The patch that puts a broken cursor in place of a union's."""
    return {CURSORS + "_UNIONS": {**_UNIONS, policy: broken}}


MUTANTS = {
    mutant.law: mutant
    for mutant in (
        Mutant(
            1,
            "a gather that loses every third item",
            lambda: counters(gather_async(2)),
            {CURSORS + "AsyncGatherCursor": LosesItems},
        ),
        Mutant(
            2,
            "a stage that gives nothing for every third item",
            lambda: from_items(range(6)) | negated,
            {CURSORS + "ApplyCursor": SwallowsItems},
        ),
        Mutant(
            3,
            "an expansion that is fused into two actors",
            lambda: from_items([[1, 2], [3, 4]]) | flatten() | actors(Arithmetic, 2).stage(Arithmetic.square),
            {CURSORS + "consumer_of": fuses_into_many},
        ),
        Mutant(
            4,
            "a placed stage that delivers what finishes first",
            lambda: from_items(range(6)) | actors(Arithmetic, 2).stage(Arithmetic.square).max_in_flight(3),
            {CURSORS + "PlaceCursor": DeliversWhatFinishes},
        ),
        Mutant(
            5,
            "rounds in the order in which the shards finish",
            lambda: counters(gather_sync(), 3),
            {CURSORS + "SyncGatherCursor": RoundsAsTheyCome},
        ),
        Mutant(
            6,
            "a gather without a barrier",
            lambda: counters(gather_sync(), 3),
            {CURSORS + "SyncGatherCursor": AsyncGatherCursor},
        ),
        Mutant(
            7,
            "a gather that starts one item more than it may",
            lambda: counters(gather_async(2)),
            {CURSORS + "AsyncGatherCursor": RunsFurtherAhead},
        ),
        Mutant(
            8,
            "a gather in which all shards wait for the slowest",
            lambda: counters(gather_async()),
            {CURSORS + "AsyncGatherCursor": WaitsForTheSlowest},
        ),
        Mutant(
            9,
            "an engine in which calls overtake messages",
            training,
            broken_engine=OvertakesMessages,
        ),
        Mutant(
            10,
            "a union that loses every third item",
            lambda: from_items(range(5)) & counters(gather_async(), 1),
            union("async", ForgetsItems),
        ),
        Mutant(
            11,
            "a round robin that ignores its weights",
            lambda: (from_items(range(6)) & from_items(range(6))).round_robin(2, 1),
            union("round_robin", IgnoresWeights),
        ),
        Mutant(
            12,
            "a union that serves its first branch while it can",
            lambda: from_items(range(4)) & from_items(range(4)),
            union("async", PrefersTheFirst),
        ),
        Mutant(
            13,
            "a union that ends without its drained branches",
            lambda: (counters(gather_async(2)) | drain) & from_items(range(3)),
            union("async", LeavesDrainsUnfinished),
        ),
        Mutant(
            14,
            "a fork whose buffers never fill",
            _uneven_fork,
            {CURSORS + "Sharing": NeverFull},
        ),
        Mutant(
            15,
            "a partition that hands every item to both sides",
            _halves,
            {CURSORS + "Sharing": HandsOutTwice},
        ),
        Mutant(
            16,
            "a buffer that takes one item more than it may",
            _uneven_partition,
            {CURSORS + "Sharing": HoldsOneMore},
        ),
        Mutant(
            17,
            "a placed stage that starts more than it may",
            lambda: from_items(range(6)) | actors(Arithmetic, 2).stage(Arithmetic.square),
            {CURSORS + "PlaceCursor": StartsMore},
        ),
        Mutant(
            18,
            "a batch that drops what is left at the end",
            lambda: from_items(range(5)) | batch(2),
            {CURSORS + "BatchCursor": DropsPartialBatches},
        ),
        Mutant(
            19,
            "a restart without the latest weights",
            lambda: training(restarts=2),
            {"pipeflow.lowering.broadcasts.Broadcasts.latest": no_weights},
            engine=crashing,
        ),
        Mutant(
            20,
            "an executor that goes on after an error in an actor",
            lambda: actors(Failing, 1).produce(Failing.third_fails) | gather_sync() | take(4),
            {"pipeflow.lowering.actors.RunningActors.raised": swallows_failure},
        ),
        Mutant(
            21,
            "an executor that leaves a group of actors running",
            training,
            {"pipeflow.lowering.executor.Executor.stop": forgets_a_group},
        ),
        Mutant(
            22,
            "a checkpoint without what is in flight",
            lambda: counters(gather_async(2)),
            {"pipeflow.lowering.resuming.resumed": forgets_what_is_in_flight},
            look=resumed,
        ),
        Mutant(
            23,
            "a gather that delivers items before they are made",
            training,
            {CURSORS + "AsyncGatherCursor": DeliversOnFaith},
        ),
        Mutant(
            24,
            "a lag limit that admits what is one version too old",
            _limited,
            {CURSORS + "MaxLagCursor": AdmitsOlder},
        ),
        Mutant(
            25,
            "a stage that passes its input on as it is",
            lambda: from_items(range(3)).map(str),
            {CURSORS + "ApplyCursor": SkipsTheFunction},
        ),
        Mutant(
            26,
            "a fork that hands one object to all",
            _lists,
            {"pipeflow.lowering.reading.Reader.copied": not_copied},
        ),
    )
}
