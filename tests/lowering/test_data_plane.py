"""What flows between actors stays where it was made: the driver reads only what something on the driver reads."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import os
import pickle
import threading
from itertools import islice
from typing import Any

import pytest
from typing_extensions import override

from pipeflow.dsl import (
    EngineError,
    StageError,
    actors,
    batch,
    buffer,
    concat,
    every,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    reply_weights,
    stage,
    sync_weights,
    take,
)
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Counter, Recorder, Sealed, Sealer


@pytest.mark.ray
def test_the_driver_reads_no_item_that_goes_from_one_actor_to_another(ray_runtime: None) -> None:
    """Through gates that do not read, a union, a fork, fused stages and weights: all of it by reference."""
    makers, taker = actors(Sealer, 2, os.getpid()), actors(Sealer, 1, os.getpid())
    made = makers.produce(Sealer.make) | gather_async(2) | every(1)
    left, right = made.fork(2, buffer=9)
    plan = (
        (left & right).round_robin().map(lambda item: item)
        | concat(2)
        | taker.stage(Sealer.open)
        | sync_weights(taker, makers)
        | take(3)
    )
    with plan.run("ray") as run:
        assert sum(run) >= 6
        assert run.ask(makers, Sealer.taken) == [-1, -1]


@pytest.mark.ray
def test_a_round_goes_to_the_next_actor_by_reference(ray_runtime: None) -> None:
    makers, taker = actors(Sealer, 2, os.getpid()), actors(Sealer, 1, os.getpid())
    plan = makers.produce(Sealer.make) | gather_rounds() | taker.stage(Sealer.open_all) | take(2)
    assert list(plan.run("ray")) == [[1, 1], [2, 2]]


@pytest.mark.ray
def test_batches_with_their_sources_go_to_the_next_actor_by_reference(ray_runtime: None) -> None:
    """Through a buffer, with the weights sent back to the sources alone."""
    makers, taker = actors(Sealer, 2, os.getpid()), actors(Sealer, 1, os.getpid())
    plan = (
        makers.produce(Sealer.make)
        | gather_sync().with_source()
        | batch(3)
        | buffer(2)
        | taker.stage(Sealer.open_all)
        | reply_weights(taker)
        | take(2)
    )
    with plan.run("ray") as run:
        assert list(run) == [[1, 1, 2], [2, 3, 3]]
        assert run.ask(makers, Sealer.taken) == [-1, -1]


@pytest.mark.ray
def test_aggregators_hand_on_by_reference(ray_runtime: None) -> None:
    makers, pool, taker = (actors(Sealer, count, os.getpid()) for count in (2, 2, 1))
    plan = (
        makers.produce(Sealer.make)
        | gather_sync()
        | batch(2)
        | pool.stage(Sealer.join).max_in_flight(2)
        | taker.stage(Sealer.open)
        | take(3)
    )
    assert list(plan.run("ray")) == [2, 4, 6]


@pytest.mark.ray
def test_an_all_reduce_passes_references_around_and_the_driver_reads_none(ray_runtime: None) -> None:
    makers = actors(Sealer, 2, os.getpid())
    plan = (
        makers.produce(Sealer.make)
        | gather_rounds()
        | makers.broadcast()
        | Sealed.concatenate
        | makers.stage(Sealer.open)
        | gather_rounds()
        | take(2)
    )
    assert list(plan.run("ray")) == [[2, 2], [4, 4]]


@pytest.mark.ray
def test_scattered_items_are_handed_on_by_reference(ray_runtime: None) -> None:
    makers, pool = actors(Sealer, 1, os.getpid()), actors(Sealer, 2, os.getpid())
    plan = makers.produce(Sealer.make) | gather_async(2) | pool.scatter() | pool.stage(Sealer.open)
    assert list((plan | gather_sync() | take(4)).run("ray")) == [1, 2, 3, 4]


@pytest.mark.ray
def test_an_item_that_the_driver_cannot_read_is_an_error_that_names_its_maker(ray_runtime: None) -> None:
    plan = actors(Sealer, 1, os.getpid()).produce(Sealer.make) | gather_sync()
    with pytest.raises(
        EngineError, match=r"made in Sealer\[0\] cannot be read here: .*driver has read an item"
    ):
        list(plan.run("ray"))


class Counted:
    """A stage that counts how often it is pickled."""

    pickled = 0

    def __call__(self, number: int) -> int:
        return number + 1

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        Counted.pickled += 1
        return Counted, ()


@pytest.mark.ray
def test_a_program_is_sent_once_however_many_items_it_makes(ray_runtime: None) -> None:
    Counted.pickled = 0
    plan = actors(Counter, 1).produce(Counter.next_number) | Counted() | gather_sync()
    with plan.run("ray") as run:
        assert list(islice(run, 20)) == list(range(2, 22))
    assert Counted.pickled == 1


@pytest.mark.ray
def test_a_stage_that_cannot_be_sent_is_named(ray_runtime: None) -> None:
    """Among all that were fused with it."""
    lock = threading.Lock()
    plan = (
        from_shards([[1]])
        | (lambda number: number + 1)
        | (lambda number: (number, lock.locked())[0])
        | gather_sync()
    )
    with pytest.raises(EngineError) as caught:
        list(plan.run("ray"))
    line = next(line.split()[-1] for line in plan.explain().splitlines() if line.startswith("lambda"))
    assert str(caught.value).startswith(f"{line}: what lambda needs cannot be sent to shards[0]: ")
    assert str(caught.value).endswith("cannot pickle '_thread.lock' object")


class Unpicklable:
    """An object whose pickling raises what pickles do not."""

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        message = "stays here"
        raise RuntimeError(message)


@pytest.mark.ray
def test_an_item_or_an_argument_that_cannot_be_sent_names_the_stage_that_takes_it(ray_runtime: None) -> None:
    plan = from_items([Unpicklable()]) | actors(Recorder, 1).stage(Recorder.note)
    with pytest.raises(
        EngineError, match=r"what Recorder.stage\(Recorder.note\) needs cannot be .*: stays here"
    ):
        list(plan.run("ray"))
    with pytest.raises(EngineError, match=r"what actors\(Sealer, 1\) needs cannot be sent to .*: stays here"):
        list((actors(Sealer, 1, Unpicklable()).produce(Sealer.make) | gather_sync()).run("ray"))  # type: ignore[arg-type]


@pytest.mark.ray
def test_an_item_that_cannot_leave_its_actor_is_an_error(ray_runtime: None) -> None:
    plan = from_shards([[1]]) | (lambda number: Unpicklable()) | gather_sync()
    with pytest.raises(StageError, match=r"stage lambda failed in shards\[0\]: RuntimeError: stays here"):
        list(plan.run("ray"))
    with pytest.raises(StageError, match=r"stage Recorder.stage\(Recorder.note\) failed in Recorder\[0\]"):
        list((plan | actors(Recorder, 1).stage(Recorder.note)).run("ray"))


def test_a_tap_between_two_actors_changes_nothing_for_the_second() -> None:
    seen = list[int]()
    plan = (from_shards([[2, 3]]) | gather_sync()).tap(seen.append) | actors(Arithmetic, 1).stage(
        Arithmetic.square
    )
    assert list(plan.run()) == [4, 9]
    assert seen == [2, 3]


def test_the_same_items_come_out_wherever_a_stage_runs(engine: EngineName) -> None:
    """Law 3: fused into the shard, into the actor that follows, composed, or pinned to the driver."""

    def plus_one(number: int) -> int:
        return number + 1

    def doubled(number: int) -> int:
        return 2 * number

    square = actors(Arithmetic, 1).stage(Arithmetic.square)
    shards = [[1, 2, 3]]
    plans = [
        from_shards(shards) | plus_one | doubled | gather_sync() | square,
        from_shards(shards) | gather_sync() | plus_one | doubled | square,
        from_shards(shards) | gather_sync() | (stage(plus_one) | doubled) | square,
        (from_shards(shards) | gather_sync()).map(plus_one, here=True).map(doubled, here=True) | square,
    ]
    chosen = plans if engine == "inline" else plans[3:]
    for plan in chosen:
        assert list(plan.run(engine)) == [16, 36, 64]


def test_a_stage_that_is_pinned_to_the_driver_runs_there() -> None:
    where = list[int]()

    def here(number: int) -> int:
        where.append(os.getpid())
        return number

    plan = (from_shards([[2]]) | gather_sync()).map(here, here=True) | actors(Arithmetic, 1).stage(
        Arithmetic.square
    )
    assert list(plan.run()) == [4]
    assert where == [os.getpid()]


def test_batches_of_items_from_several_actors_are_made_where_they_are_read() -> None:
    plan = (
        actors(Counter, 2, limit=3).produce(Counter.next_number)
        | gather_sync()
        | batch(4)
        | actors(Arithmetic, 1).stage(Arithmetic.total)
    )
    assert list(plan.run()) == [1 + 1 + 2 + 2, 3 + 3]


def test_sealed_items_are_what_they_claim() -> None:
    """The tests above can fail."""
    with pytest.raises(AssertionError, match="the driver has read"):
        pickle.loads(pickle.dumps(Sealed(1, os.getpid())))
