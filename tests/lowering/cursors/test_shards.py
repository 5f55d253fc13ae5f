"""Shards that are fed: a stream scattered over actors or given to all of them; and some of the shards alone."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import final

import pytest

from pipeflow.dsl import (
    Stream,
    actors,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    select_shards,
    take,
)
from pipeflow.lowering.cursors.shards import Scattering
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.engines.sim import Sim
from pipeflow.lowering.items import Item
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Averager, Counter, Recorder, Store

ENGINES = [InlineEngine, *(lambda seed=seed: Sim(seed) for seed in range(6))]


def test_item_k_goes_to_actor_k_modulo_their_number(engine: EngineName) -> None:
    pool = actors(Arithmetic, 3)
    plan = from_items(range(7)) | pool.scatter() | pool.stage(Arithmetic.where) | gather_sync()
    assert list(plan.run(engine)) == [(0, 0), (1, 1), (2, 2), (0, 3), (1, 4), (2, 5), (0, 6)]


def test_a_round_of_scattered_items_is_one_list() -> None:
    pool = actors(Arithmetic, 3)
    plan = from_items(range(7)) | pool.scatter() | pool.stage(Arithmetic.square) | gather_rounds()
    assert list(plan.run()) == [[0, 1, 4], [9, 16, 25], [36]]


@pytest.mark.parametrize("make", ENGINES)
def test_scattered_items_keep_their_order_under_every_schedule(make: Callable[[], Engine]) -> None:
    pool = actors(Arithmetic, 2)
    source = actors(Counter, 2, limit=5).produce(Counter.next_number) | gather_sync()
    plan = (
        source | pool.scatter() | (lambda number: number + 1) | pool.stage(Arithmetic.square) | gather_sync()
    )
    assert list(plan.run(make())) == [4, 4, 9, 9, 16, 16, 25, 25, 36, 36]


def test_a_broadcast_gives_every_item_to_every_actor(engine: EngineName) -> None:
    recorders = actors(Recorder, 3)
    plan = (
        from_items([5, 6]) | recorders.broadcast() | recorders.stage(Recorder.note_number) | gather_rounds()
    )
    with plan.run(engine) as run:
        assert list(run) == [[5, 5, 5], [6, 6, 6]]
        assert run.ask(recorders, Recorder.notes) == [[5, 6]] * 3


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def all_reduce(rounds: int) -> Stream[float]:
    workers = actors(Averager, 3)
    return (
        workers.produce(Averager.gradient)
        | gather_rounds()
        | workers.broadcast()
        | mean
        | workers.stage(Averager.apply)
        | gather_sync()
        | take(3 * rounds)
    )


@pytest.mark.parametrize("make", ENGINES)
def test_an_all_reduce_averages_over_all_actors_and_stays_in_step(make: Callable[[], Engine]) -> None:
    """Every actor applies the mean of all, and computes its next gradient after that."""
    # Gradients are the shard's index plus what was applied so far: the mean is 1 + that sum.
    assert list(all_reduce(3).run(make())) == [1.0] * 3 + [3.0] * 3 + [7.0] * 3


@pytest.mark.ray
def test_an_all_reduce_is_the_same_on_ray(ray_runtime: None) -> None:
    assert list(all_reduce(2).run("ray")) == [1.0] * 3 + [3.0] * 3


def test_no_actor_writes_into_what_another_was_given() -> None:
    """Law 26: a broadcast fans out."""
    writers = actors(Writer, 2)
    plan = from_items([[0], [1]]) | writers.broadcast() | writers.stage(Writer.mark) | gather_rounds()
    assert list(plan.run()) == [[[0, -1], [0, -1]], [[1, -1], [1, -1]]]
    made = from_shards([[[0]]]) | gather_sync() | writers.broadcast() | writers.stage(Writer.mark)
    assert list((made | gather_rounds()).run()) == [[[0, -1], [0, -1]]]


def test_a_broadcast_that_shares_its_item_fails_the_law_of_ownership(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant for law 26."""

    def shared(scattering: Scattering, item: Item) -> None:
        for queue in scattering._queues:
            queue.append(item)

    monkeypatch.setattr(Scattering, "_spread", shared)
    with pytest.raises(AssertionError):
        test_no_actor_writes_into_what_another_was_given()


def test_a_scattered_stream_is_read_as_its_shards_are_asked() -> None:
    """Law 17: one round ahead of nobody."""
    read = list[int]()
    pool = actors(Arithmetic, 2)
    scattered = from_items(range(99)).tap(read.append) | pool.scatter() | pool.stage(Arithmetic.square)
    run = (scattered | gather_sync()).run()
    for delivered, _ in enumerate(islice(run, 6), start=1):
        assert len(read) <= 2 * ((delivered + 1) // 2)
    run.close()


def test_a_take_behind_the_gather_stops_the_stream_that_was_scattered() -> None:
    """Laws 13 and 17."""
    counter, pool = actors(Counter, 1), actors(Arithmetic, 2)
    squares = (
        counter.produce(Counter.next_number)
        | gather_async(2)
        | pool.scatter()
        | pool.stage(Arithmetic.square)
        | gather_sync()
        | take(4)
    )
    with (squares & from_items([-1] * 30)).run() as run:
        assert sorted(run) == [-1] * 30 + [1, 4, 9, 16]
        assert run.ask(counter, Counter.started)[0] <= 4 + 2


def test_a_scattered_source_that_is_not_ready_waits() -> None:
    """Law 8."""
    store, pool = actors(Store, 1, warm=2), actors(Arithmetic, 2)
    fill = from_items([5, 6]) | store.stage(Store.add) | (lambda count: -count)
    squares = (
        store.produce(Store.sample)
        | gather_sync()
        | pool.scatter()
        | pool.stage(Arithmetic.square)
        | gather_sync()
        | take(2)
    )
    assert sorted((fill & squares).run()) == [-2, -1, 25, 36]


def test_scattered_and_own_shards_stand_side_by_side() -> None:
    pool = actors(Arithmetic, 2)
    scattered = from_items([1, 2, 3, 4]) | pool.scatter() | pool.stage(Arithmetic.square)
    both = from_shards([[-1, -2]]) & scattered
    assert list((both | gather_rounds()).run()) == [[-1, 1, 4], [-2, 9, 16]]


def test_what_is_scattered_knows_which_actor_made_it() -> None:
    pool = actors(Arithmetic, 2).named("pool")
    plan = from_items([3, 4]) | pool.scatter() | pool.stage(Arithmetic.square) | gather_sync().with_source()
    assert [(str(item.source), item.item) for item in plan.run()] == [("pool[0]", 9), ("pool[1]", 16)]


def test_only_the_selected_shards_are_asked_in_the_order_of_their_selection(engine: EngineName) -> None:
    counters = actors(Counter, 4, limit=2)
    plan = counters.produce(Counter.next_tagged) | select_shards(3, 1) | gather_sync()
    with plan.run(engine) as run:
        assert list(run) == [(3, 1), (1, 1), (3, 2), (1, 2)]
        assert run.ask(counters, Counter.started) == [0, 2, 0, 2]


def test_two_selections_part_the_shards() -> None:
    counters = actors(Counter, 3, limit=1)
    first = counters.produce(Counter.next_tagged) | select_shards(0) | gather_sync()
    others = counters.produce(Counter.next_tagged) | select_shards(1, 2) | gather_sync()
    assert sorted((first & others).run()) == [(0, 1), (1, 1), (2, 1)]


def test_a_selection_of_a_union_counts_the_shards_of_all() -> None:
    both = from_shards([[1], [2]]) & from_shards([[3], [4]])
    assert list((both | select_shards(3, 0) | gather_sync()).run()) == [4, 1]


@final
class Writer:
    """Writes into what it is given."""

    def mark(self, item: list[int]) -> list[int]:
        """Append to the item itself."""
        item.append(-1)
        return item
