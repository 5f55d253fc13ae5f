"""The gathers: shard order, rounds, the barrier, bounded run-ahead, sources that are not ready."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

from itertools import islice

import pytest

from pipeflow.dsl import (
    DeadlockError,
    Gather,
    Source,
    Sourced,
    actors,
    every,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    take,
)
from pipeflow.lowering.cursors.gathers import AsyncGatherCursor
from pipeflow.lowering.cursors.shards import Shard, SourceShard
from tests.conftest import EngineName
from tests.lowering.actors import Counter, Store, Worker

UNEVEN = [[1, 2, 5], [3], [4, 6]]


def test_gather_sync_takes_one_item_of_every_live_shard_in_shard_order(engine: EngineName) -> None:
    """Law 5, with shards that end in different rounds."""
    plan = from_shards(UNEVEN) | gather_sync()
    assert list(plan.run(engine)) == [1, 3, 4, 2, 6, 5]


def test_gather_rounds_delivers_a_round_as_one_list() -> None:
    """Law 5: no list mixes two rounds, also where the last shards of a round end in it."""
    plan = from_shards(UNEVEN) | gather_rounds()
    assert list(plan.run()) == [[1, 3, 4], [2, 6], [5]]


def test_gather_async_keeps_the_order_of_every_shard(engine: EngineName) -> None:
    """Law 1, with several items of a shard under way."""
    workers = actors(Counter, 2, limit=7)
    plan = workers.produce(Counter.next_tagged) | gather_async(3)
    found = list(plan.run(engine))
    assert_each_shard_is_whole(found, shards=2, items=7)


def assert_each_shard_is_whole(found: list[tuple[int, int]], *, shards: int, items: int) -> None:
    """Law 1: no item lost, none twice, none invented, none out of order."""
    assert {shard for shard, _ in found} == set(range(shards))
    for shard in range(shards):
        assert [number for index, number in found if index == shard] == list(range(1, items + 1))


def test_a_gather_that_asks_a_shard_out_of_turn_fails_the_law_of_shard_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant for law 1: it delivers the latest call of a shard first."""

    def latest_first(shard: SourceShard) -> None:
        ask(shard)
        shard.calls.rotate(1)

    ask = SourceShard.ask
    monkeypatch.setattr(SourceShard, "ask", latest_first)
    plan = actors(Counter, 2, limit=5).produce(Counter.next_tagged) | gather_async(2)
    with pytest.raises(AssertionError):
        assert_each_shard_is_whole(list(plan.run()), shards=2, items=5)


def test_no_shard_starts_the_next_round_before_the_consumer_asked_for_it(engine: EngineName) -> None:
    """Laws 6 and 17: while round k is being consumed every source has started exactly k items."""
    assert_barrier(engine, rounds=3)


def assert_barrier(engine: EngineName, rounds: int) -> None:
    workers = actors(Counter, 2)
    with (workers.produce(Counter.next_number) | gather_sync()).run(engine) as run:
        for k in range(1, rounds + 1):
            for _ in range(2):
                assert next(run) == k
                assert run.ask(workers, Counter.started) == [k, k]


def test_a_gather_that_asks_again_before_it_delivers_fails_the_law_of_the_barrier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant for law 6: each shard is asked for its next item when one is taken off it."""

    def eager(shard: Shard) -> object:
        found = head(shard)
        shard.ask()
        return found

    head = Shard.head
    monkeypatch.setattr(Shard, "head", eager)
    with pytest.raises(AssertionError):
        assert_barrier("inline", rounds=2)


def test_gather_async_starts_no_more_than_num_async_items_ahead(engine: EngineName) -> None:
    """Laws 7 and 17."""
    assert_bounded(engine, num_async=3)


def assert_bounded(engine: EngineName, num_async: int) -> None:
    workers = actors(Counter, 2)
    plan = workers.produce(Counter.next_tagged) | gather_async(num_async)
    delivered = [0, 0]
    with plan.run(engine) as run:
        for shard, _ in islice(run, 8):
            delivered[shard] += 1
            started = run.ask(workers, Counter.started)
            ahead = [s - d for s, d in zip(started, delivered, strict=True)]
            assert all(0 <= count <= num_async for count in ahead)


def test_a_gather_that_runs_further_ahead_fails_the_law_of_bounded_asynchrony(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant for law 7."""

    def further(cursor: AsyncGatherCursor) -> object:
        cursor._num_async = 2
        return poll(cursor)

    poll = AsyncGatherCursor._poll
    monkeypatch.setattr(AsyncGatherCursor, "_poll", further)
    with pytest.raises(AssertionError):
        assert_bounded("inline", num_async=1)


def test_a_run_that_is_not_asked_starts_nothing() -> None:
    """Law 17."""
    workers = actors(Counter, 1)
    with (workers.produce(Counter.next_number) | gather_async(4)).run() as run:
        assert run.ask(workers, Counter.started) == [0]


def test_a_gate_that_has_closed_stops_what_feeds_it() -> None:
    """Law 17: the rest of the plan goes on, and the shards start nothing more for a consumer that has ended."""
    workers = actors(Counter, 1)
    few = workers.produce(Counter.next_number) | gather_async(2) | take(3)
    with (few & from_items([-1] * 50)).run() as run:
        assert sorted(run) == [-1] * 50 + [1, 2, 3]
        assert run.ask(workers, Counter.started)[0] <= 3 + 2


def test_a_shard_that_is_not_ready_delays_only_itself_under_gather_async() -> None:
    """Law 8: the store never has anything, and the counter is delivered to its end."""
    both = actors(Store, 1).produce(Store.sample) & actors(Counter, 1, limit=3).produce(Counter.next_number)
    run = (both | gather_async() | take(3)).run()
    assert list(run) == [1, 2, 3]


def test_a_shard_that_is_not_ready_delays_its_round() -> None:
    """Law 8: with a barrier nobody goes on, and the store can never fill."""
    both = actors(Store, 1).produce(Store.sample) & actors(Counter, 1).produce(Counter.next_number)
    with pytest.raises(DeadlockError, match=r"waits for Store\[0\], Counter\[0\], which had nothing"):
        list((both | gather_sync()).run())


@pytest.mark.parametrize("gather", [gather_sync(), gather_async(2)], ids=["sync", "async"])
def test_a_source_that_is_not_ready_is_asked_again_when_something_has_moved(gather: Gather) -> None:
    store = actors(Store, 1, warm=2)
    numbers = from_shards([[7, 8]]) | gather_sync() | store.stage(Store.add)
    samples = store.produce(Store.sample) | gather
    plan = (numbers & (samples | take(3))).async_()
    assert sorted(plan.run()) == sorted([1, 2, 7, 8, 7])


def test_a_source_that_is_never_ready_is_a_deadlock_that_names_it(engine: EngineName) -> None:
    store = actors(Store, 1)
    plan = store.produce(Store.sample) | gather_async(2)
    with pytest.raises(DeadlockError) as caught:
        list(plan.run(engine))
    assert "gather_async(2)" in str(caught.value)
    assert "Store[0], which had nothing (NotReady)" in str(caught.value)


def test_with_source_says_which_actor_made_an_item() -> None:
    workers = actors(Counter, 2, limit=1).named("left")
    plan = workers.produce(Counter.next_number) | gather_sync().with_source()
    found = list(plan.run())
    assert found == [
        Sourced(1, (Source[Counter]("left", 0),)),
        Sourced(1, (Source[Counter]("left", 1),)),
    ]


def test_the_shards_of_two_groups_stand_side_by_side() -> None:
    both = from_shards([[1, 2], [3]]) & actors(Counter, 1, limit=2).produce(Counter.next_number)
    assert list((both | gather_rounds()).run()) == [[1, 3, 1], [2, 2]]


def test_two_streams_of_one_group_are_independent_programs_on_the_same_actors() -> None:
    """Every `produce` is an independent stream; the actor's state is one."""
    workers = actors(Counter, 1, limit=4)
    both = (workers.produce(Counter.next_number) | every(1)) & workers.produce(Counter.next_tagged)
    assert list((both | gather_sync()).run()) == [1, (0, 2), 3, (0, 4)]


def test_a_method_of_the_own_actors_runs_inside_each_shard(engine: EngineName) -> None:
    workers = actors(Worker, 1)
    plan = (
        workers.produce(Worker.started)
        | (lambda started: started + 5)
        | workers.stage(Worker.doubled)
        | gather_sync()
        | take(2)
    )
    assert list(plan.run(engine)) == [10, 10]
