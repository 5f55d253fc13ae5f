"""Faults of RLlib Flow in what is asked when, and in what ratio: numbers 1, 2, 3, 6, 18, 19 and 20 of its table.

docs/faults_of_flow.md has the table; a test there keeps the names true.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from itertools import islice

import pytest

from pipeflow import (
    DeadlockError,
    NotReady,
    PlanError,
    Stream,
    actors,
    batch,
    drain,
    every_seconds,
    flatten,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    reply_weights,
    take,
    throttle,
)
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.engines.sim import Sim
from tests.conftest import EngineName
from tests.lowering.actors import Counter, Learner, Rows, RowStore, Sample, Store, Worker


def test_fault_01_a_shard_is_asked_again_only_after_its_item_was_consumed(engine: EngineName) -> None:
    """Flow asked for the next item first, so that a reply came one item late."""
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_async(1).with_source()
        | learner.stage(Learner.update)
        | reply_weights(learner)
        | take(8)
    )
    answered = {0: 0, 1: 0}  # all workers had version 0 at the start
    with plan.run(engine) as run:
        for version, sample in enumerate(run, start=1):
            assert sample.version == answered[sample.shard], "it reflects the answer to the item before it"
            answered[sample.shard] = version


@pytest.mark.parametrize("seed", range(5))
def test_fault_01_staleness_is_bounded_and_reported_for_every_gather(seed: int) -> None:
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_async(3).with_source()
        | learner.stage(Learner.update)
        | reply_weights(learner)
        | take(20)
    )
    with plan.run(Sim(seed)) as run:
        list(run)
        stats = run.stats()["gather_async(3).with_source()"]
    assert 0 < stats.max_lag <= 3
    assert 0 < stats.mean_lag <= stats.max_lag


@pytest.mark.parametrize("seed", range(5))
def test_fault_02_no_stage_and_no_consumer_ever_sees_a_sentinel(seed: int) -> None:
    """Flow's sentinel of what is not ready went through transforms, and out of a duplicate read alone."""
    seen = list[type]()

    def noted(number: int) -> int:
        seen.append(type(number))
        return number

    store = actors(Store, 1, warm=3)
    fill = from_items([5, 6, 7]) | store.stage(Store.add) | drain
    samples = store.produce(Store.sample) | noted | batch(2) | flatten() | gather_async(2) | noted
    left, right = (samples | take(6)).fork(2, buffer=2)
    found = list((fill & (left | noted) & right.map(noted)).run(Sim(seed)))
    assert len(found) == 12
    assert {*map(type, found), *seen} == {int}
    assert NotReady not in seen


def test_fault_02_an_outlet_that_is_read_alone_is_refused() -> None:
    left, _ = from_items([1, 2]).fork(2, buffer=1)
    with pytest.raises(PlanError, match=r"fork\(2\)\[1\] .* feeds nothing in this plan"):
        left.run()


def alpha_zero(waits_for: int) -> Stream[Rows]:
    """Flow's AlphaZero: store self-play, and replay once enough was stored, in turns."""
    store = actors(RowStore, 1, warm=0)
    played = from_items([Rows(1, "played")] * 50) | store.stage(RowStore.add)
    replayed = (store.produce(RowStore.held) | gather_sync()).filter(lambda rows: rows.steps >= waits_for)
    return (replayed & played).round_robin(1, 1)


@pytest.mark.parametrize("make", [InlineEngine, lambda: Sim(3), lambda: Sim(4)])
def test_fault_03_a_filter_in_a_round_robin_lets_the_others_go_on(make: Callable[[], Engine]) -> None:
    """Flow asked the filtered branch again and again, for what only the other branch could bring."""
    found = list(islice(alpha_zero(waits_for=5).run(make()), 11))
    assert [rows.name for rows in found[:5]] == ["played"] * 5
    assert [rows.steps for rows in found[5::2]] == [5, 6, 7], "then they take turns"


def test_fault_03_a_branch_that_waits_for_its_actor_stalls_no_other() -> None:
    """A source without an end beside an actor: each is heard."""
    plan = from_items(itertools.repeat(-1)) & (
        actors(Counter, 1, limit=3).produce(Counter.next_number) | gather_sync()
    )
    run = plan.run()
    assert [item for item in islice(run, 40) if item > 0] == [1, 2, 3]
    run.close()


def test_fault_06_a_stream_is_consumed_once_and_a_plan_restarts_nothing_that_runs() -> None:
    numbers = from_shards([[1, 2]]) | gather_sync()
    with pytest.raises(PlanError, match="is used twice"):
        _ = (numbers | abs) & numbers
    first, second = numbers.run(), numbers.run()
    assert [next(first), next(second), next(first), next(second)] == [1, 1, 2, 2]
    assert list(first) == list(second) == []


def test_fault_06_operators_are_values_and_share_no_state() -> None:
    pairs = batch(2)
    left, right = from_items([1, 2, 3]) | pairs, from_items([4, 5, 6]) | pairs
    assert list((left & right).round_robin().run()) == [[1, 2], [4, 5], [3], [6]]


@pytest.mark.parametrize("ratio", [0.5, 1, 3, 7.25])
def test_fault_18_a_replay_ratio_holds_in_steps_at_any_time(ratio: float) -> None:
    """Flow drew whole numbers of turns by chance; here the deficit is at most one item, whatever the sizes."""
    sampled = from_items([Rows(2 + number % 5, "sampled") for number in range(200)])
    trained = from_items([Rows(8, "trained")] * 200)
    steps = {"sampled": 0, "trained": 0}
    for rows in islice((sampled & trained).by_steps(1, ratio).run(), 150):
        steps[rows.name] += rows.steps
        assert abs(steps["sampled"] - steps["trained"] / ratio) <= max(6, 8 / ratio)


def test_fault_18_a_weight_or_a_number_of_actors_that_divides_by_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        actors(Counter, 0)
    with pytest.raises(ValueError, match="needs a positive number for every branch"):
        (from_items([Rows(1)]) & from_items([Rows(1)])).by_steps(1, 0)


def test_fault_19_an_actor_carries_several_streams(engine: EngineName) -> None:
    """Flow kept one iterator an actor; the second replaced the first."""
    workers = actors(Worker, 2)
    samples = workers.produce(Worker.sample) | gather_sync() | take(4)
    counts = workers.produce(Worker.started) | gather_sync() | take(4)
    with (samples & counts).round_robin(2, 2).run(engine) as run:
        found = list(run)
        assert run.ask(workers, Worker.started) == [2, 2]
    assert [item for item in found if isinstance(item, Sample)] == [
        Sample(shard, k, -1) for k in range(2) for shard in range(2)
    ]
    assert [item for item in found if isinstance(item, int)] == [1, 1, 2, 2]


def test_fault_20_a_finite_stream_ends_under_operators_that_go_by_the_clock(engine: EngineName) -> None:
    """Flow's timed operators failed at the end of their input."""
    assert list((from_items([1, 2, 3]) | every_seconds(3600)).run(engine)) == [1]
    assert list((from_shards([[1, 2]]) | gather_sync() | throttle(0.001) | batch(5)).run(engine)) == [[1, 2]]
    assert list((from_items(list[int]()) | every_seconds(1)).run(engine)) == []


def test_fault_20_a_plan_that_can_never_go_on_says_so_instead_of_waiting() -> None:
    never = actors(Store, 1).produce(Store.sample) | gather_async() | every_seconds(1)
    with pytest.raises(DeadlockError, match=r"Store\[0\], which had nothing"):
        list(never.run())
