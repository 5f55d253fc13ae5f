"""Stages placed on actors: order, items in flight, pools, and what is fused into them."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

from itertools import islice

import pytest

from pipeflow.dsl import actors, batch, flat_map, flatten, from_items, gather_rounds, take
from pipeflow.lowering.cursors.placement import PlaceCursor
from pipeflow.lowering.engines.sim import Sim
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Counter, Recorder, Store, Worker


def repeated(number: int) -> list[int]:
    return [number] * number


def test_a_placed_stage_gives_one_output_for_every_input() -> None:
    """Law 2."""
    plan = from_items([1, 2, 3]) | actors(Arithmetic, 1).stage(Arithmetic.square)
    assert list(plan.run()) == [1, 4, 9]


def test_a_pool_delivers_in_the_order_of_its_input_whatever_finishes_first(engine: EngineName) -> None:
    """Law 4: every delay lets neighbours finish before each other."""
    assert_ordered(engine)


def assert_ordered(engine: EngineName) -> None:
    pool = actors(Arithmetic, 2)
    plan = from_items(range(14)) | pool.stage(Arithmetic.late).max_in_flight(4)
    assert list(plan.run(engine)) == list(range(14))


def test_a_pool_that_delivers_the_latest_first_fails_the_law_of_ordered_placement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant for law 4."""

    def latest(cursor: PlaceCursor) -> object:
        done = [entry for entry in cursor._calls if entry.call.reply is not None]
        return done[-1] if len(done) == len(cursor._calls) > 0 else None

    monkeypatch.setattr(PlaceCursor, "_ready", latest)
    with pytest.raises(AssertionError):
        assert_ordered("inline")


@pytest.mark.ray
def test_unordered_lets_no_more_than_max_in_flight_items_overtake_another(ray_runtime: None) -> None:
    """Law 4: the first item takes longer than all others together."""
    pool = actors(Arithmetic, 2)
    plan = from_items(range(40)) | pool.stage(Arithmetic.late_if_first).max_in_flight(3).unordered()
    with plan.run("ray") as run:
        found = list(run)
    assert sorted(found) == list(range(40))
    assert 1 <= found.index(0) <= 3


def test_items_go_to_the_actors_of_a_pool_in_turn() -> None:
    """So that a group which keeps state, such as replay buffers, fills evenly."""
    plan = from_items(range(5)) | actors(Arithmetic, 2).stage(Arithmetic.where)
    assert list(plan.run()) == [(0, 0), (1, 1), (0, 2), (1, 3), (0, 4)]


def test_every_store_of_a_group_gets_its_share() -> None:
    stores = actors(Store, 3)
    with (from_items(range(6)) | stores.stage(Store.add)).run() as run:
        assert list(run) == [1, 1, 1, 2, 2, 2]
        assert run.ask(stores, Store.items) == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_than_max_in_flight_items_are_pulled_ahead(limit: int) -> None:
    """Laws 6 and 17: the next input is pulled only when an output was asked for."""
    pulled = list[int]()
    plan = (
        from_items(range(99)).tap(pulled.append)
        | actors(Arithmetic, 1).stage(Arithmetic.square).max_in_flight(limit)
    )  # fmt: skip
    run = plan.run()
    for delivered, _ in enumerate(islice(run, 9), start=1):
        assert delivered <= len(pulled) <= delivered + limit - 1
    run.close()


def test_stages_before_a_placed_one_run_inside_its_actor(engine: EngineName) -> None:
    """Law 3: with their state, and with more outputs than inputs."""
    recorder = actors(Recorder, 1)
    plan = from_items([1, 2, 3]) | flat_map(repeated) | batch(4) | sum | recorder.stage(Recorder.note)
    with plan.run(engine) as run:
        assert list(run) == [8, 6]  # 1 2 2 3, and the rest: 3 3
        assert run.ask(recorder, Recorder.notes) == [[8, 6]]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_one_input_may_make_many_outputs_however_many_are_in_flight(limit: int) -> None:
    """Law 18: nothing that waits in the actor is lost, whatever ends first."""
    plan = (
        from_items([[1, 2, 3], [], [4], [5, 6]])
        | flatten()
        | batch(2)
        | flatten()
        | actors(Recorder, 1).stage(Recorder.note_number).max_in_flight(limit)
    )
    assert list(plan.run()) == [1, 2, 3, 4, 5, 6]


def test_a_round_is_one_input_of_the_stage_that_follows() -> None:
    plan = (
        actors(Counter, 2, limit=2).produce(Counter.next_number)
        | gather_rounds()
        | actors(Arithmetic, 1).stage(Arithmetic.total)
    )
    assert list(plan.run()) == [2, 4]


# Repeated stages


def test_a_repeated_stage_takes_what_it_made_before(engine: EngineName) -> None:
    plan = from_items([2, 3]) | actors(Arithmetic, 1).stage(Arithmetic.square).repeat(3)
    assert list(plan.run(engine)) == [2**8, 3**8]


def test_repeating_twice_multiplies() -> None:
    placed = actors(Arithmetic, 1).stage(Arithmetic.square)
    assert placed.repeat(2).repeat(2) == placed.repeat(4)
    assert list((from_items([2]) | placed.repeat(1)).run()) == [4]


def test_a_repeated_stage_in_the_shards_is_an_inner_loop_of_each() -> None:
    workers = actors(Worker, 2)
    plan = (
        workers.produce(Worker.started)
        | (lambda started: started + 1)
        | workers.stage(Worker.doubled).repeat(4)
        | gather_rounds()
        | take(1)
    )
    assert list(plan.run()) == [[16, 16]]


@pytest.mark.parametrize("seed", range(6))
def test_a_repeated_stage_keeps_the_order_under_every_schedule(seed: int) -> None:
    plan = from_items(range(6)) | actors(Arithmetic, 2).stage(Arithmetic.square).max_in_flight(3).repeat(2)
    assert list(plan.run(Sim(seed))) == [number**4 for number in range(6)]


# Pools behind one stage


@pytest.mark.ray
def test_an_item_goes_to_the_actor_with_the_fewest_in_flight(ray_runtime: None) -> None:
    """While one actor is held up by the first item, the other takes all that follow."""
    pool = actors(Arithmetic, 2)
    plan = from_items(range(8)) | pool.stage(Arithmetic.held_up_by_first).max_in_flight(2).unordered()
    with plan.run("ray") as run:
        run.ask(pool, type)  # both processes are there before the first item
        found = list(run)
    assert sorted(number for _, number in found) == list(range(8))
    held_up = next(shard for shard, number in found if number == 0)
    overtaking = [shard for shard, _ in found[: found.index((held_up, 0))]]
    assert overtaking
    assert set(overtaking) == {1 - held_up}


@pytest.mark.parametrize("seed", range(10))
def test_a_pool_is_loaded_evenly_whether_ordered_or_not(seed: int) -> None:
    pool = actors(Recorder, 3)
    for placed in (pool.stage(Recorder.note_number), pool.stage(Recorder.note_number).unordered()):
        with (from_items(range(12)) | placed.max_in_flight(3)).run(Sim(seed)) as run:
            found = list(run)
            shares = [len(notes) for notes in run.ask(pool, Recorder.notes)]
        assert sorted(found) == list(range(12))
        assert not placed.ordered or found == list(range(12))
        assert sum(shares) == 12
        assert min(shares) >= 1


def test_stages_may_follow_each_other_in_different_actors() -> None:
    first, second = actors(Arithmetic, 1), actors(Counter, 1)
    plan = from_items([2, 3]) | first.stage(Arithmetic.square) | second.stage(Counter.scaled) | repr
    assert list(plan.run()) == ["4", "9"]
