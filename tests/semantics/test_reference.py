"""The reference interpreter admits what the laws admit, no less and no more; small plans counted by hand."""

from __future__ import annotations

from math import comb

import pytest

from pipeflow.dsl import (
    Stream,
    actors,
    batch,
    buffer,
    drain,
    every,
    every_seconds,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    max_lag,
    reply_weights,
    sync_weights,
    take,
    throttle,
    update_target,
)
from pipeflow.semantics.reference import Outcome, TooManyWays, admits, every_outcome
from pipeflow.testing.parts import (
    Counted,
    Learner,
    Store,
    Worker,
    as_weights,
    both,
    double,
    fail_on_three,
    is_even,
    pair_sum,
    total,
    total_as_weights,
)
from tests.lowering.actors import Counter


def items_of(plan: Stream[int]) -> set[tuple[object, ...]]:
    outcomes = every_outcome(plan)
    assert {outcome.end for outcome in outcomes} == {"ended"}
    return {outcome.items for outcome in outcomes}


def test_a_synchronous_plan_has_one_outcome() -> None:
    gathered = from_shards([[1, 2, 3], [10], []]) | double | gather_sync() | batch(2) | total
    assert items_of(gathered) == {(22, 10)}  # 2 + 20, then 4 + 6
    rounds = from_shards([[1, 2], [10]]) | gather_rounds()
    assert every_outcome(rounds) == [Outcome(([1, 10], [2]))]


def test_an_asynchronous_gather_has_every_interleaving_of_its_shards() -> None:
    plan = from_shards([range(3), range(10, 12)]) | gather_async()
    found = items_of(plan)
    assert len(found) == comb(5, 2)
    assert all([x for x in items if x in range(3)] == [0, 1, 2] for items in found)


def test_a_union_has_every_interleaving_of_its_branches() -> None:
    plan = from_items(range(2)) & from_items(range(10, 12)) & from_items([20])
    assert len(items_of(plan)) == 5 * comb(4, 2)


def test_a_round_robin_has_one_outcome_and_skips_what_has_ended() -> None:
    plan = (from_items([1, 2, 3]) & from_items([10, 20])).round_robin(1, 2)
    assert items_of(plan) == {(1, 10, 20, 2, 3)}


def test_the_buffer_of_a_fork_bounds_how_far_its_consumers_are_apart() -> None:
    left, right = from_items([1, 2]).fork(2, buffer=1)
    near = items_of(left & right.map(double))
    assert (1, 2, 2, 4) in near  # left is one ahead, which the buffer holds
    left, right = from_items([1, 2, 3]).fork(2, buffer=1)
    assert all(items[:3] != (1, 2, 3) for items in items_of(left & right.map(double)))


def test_a_fork_that_is_read_in_turns_by_unequal_weights_is_a_deadlock() -> None:
    left, right = from_items([1, 2, 3]).fork(2, buffer=1)
    assert every_outcome((left & right).round_robin(2, 1)) == [Outcome((1,), "DeadlockError")]


def test_a_partition_sends_every_item_to_one_side() -> None:
    even, odd = from_items([1, 2, 3]).partition(is_even, buffer=3)
    assert items_of(even & odd) == {(2, 1, 3), (1, 2, 3), (1, 3, 2)}


def test_an_unordered_stage_lets_items_overtake_as_far_as_it_says() -> None:
    workers = actors(Counter, 2)
    plan = from_shards([[0, 1, 2]]) | gather_sync()
    found = items_of(plan | workers.stage(Counter.scaled).max_in_flight(2).unordered())
    assert {tuple(int(str(item)) % 100 for item in items) for items in found} == {
        (0, 1, 2),
        (0, 2, 1),
        (1, 0, 2),
        (1, 2, 0),
    }


def test_a_drained_branch_delivers_nothing_and_still_has_its_effects() -> None:
    store = actors(Store, 1, 1, 1)
    plan = (from_items([7]) | store.stage(Store.add) | drain) & (store.produce(Store.sample) | gather_async())
    assert items_of(plan) == {(7 + 100_000_000,)}


def test_a_source_that_nothing_makes_ready_is_a_deadlock() -> None:
    plan = actors(Store, 1, 1, 1).produce(Store.sample) | gather_sync()
    assert every_outcome(plan) == [Outcome((), "DeadlockError")]


def test_weights_are_in_what_starts_after_them_and_in_no_more() -> None:
    workers, learner = actors(Worker, 1, 2, 0), actors(Learner, 1)
    # The item shows the version that it was made with, then the learner's count.
    on_policy = workers.produce(Worker.sample) | gather_sync() | learner.stage(Learner.update)
    assert items_of(on_policy | sync_weights(learner, workers)) == {(1, 1_010_002)}
    workers, learner = actors(Worker, 1, 2, 0), actors(Learner, 1)
    ahead = workers.produce(Worker.sample) | gather_async(2) | learner.stage(Learner.update)
    assert items_of(ahead | sync_weights(learner, workers)) == {(1, 1_000_002)}


def test_a_lag_limit_drops_what_is_too_old() -> None:
    workers, learner = actors(Worker, 1, 2, 0), actors(Learner, 1)
    fresh = workers.produce(Worker.sample) | gather_async(2) | max_lag(0) | learner.stage(Learner.update)
    assert items_of(fresh | sync_weights(learner, workers)) == {(1,)}


def test_a_reply_reaches_the_actor_of_the_item() -> None:
    workers = actors(Worker, 2, 2, 0)
    gathered = workers.produce(Worker.sample) | gather_sync().with_source()
    # The first two items are 1 and 101, the weights that answer them 1; they show in the second round.
    assert items_of(gathered.reply(Worker.set_weights, as_weights)) == {(1, 101, 10_002, 10_102)}


def test_gates_close_and_expansions_give_what_is_left() -> None:
    plan = from_items(range(9)) | every(2) | take(2) | batch(3) | total
    assert items_of(plan) == {(1 + 3,)}
    assert items_of((from_items([2, 3]) | double).until(is_even)) == {(4,)}


def test_an_error_ends_a_run_at_once_on_the_driver_and_later_in_an_actor() -> None:
    on_driver = from_items([2, 3, 4]).map(fail_on_three, here=True)
    assert every_outcome(on_driver) == [Outcome((2,), "StageError: fail_on_three")]
    in_actor = from_shards([[3], [10]]) | fail_on_three | gather_async()
    seen = {(outcome.items, outcome.end) for outcome in every_outcome(in_actor)}
    assert seen == {((), "StageError: fail_on_three"), ((10,), "StageError: fail_on_three")}


def test_a_consumer_may_want_less_than_there_is() -> None:
    endless = actors(Counter, 1).produce(Counter.next_number) | gather_async(2)
    assert every_outcome(endless, first=3) == [Outcome((1, 2, 3), "cut")]
    assert admits(endless, Outcome((1, 2), "cut"))
    assert not admits(endless, Outcome((2, 1), "cut"))


def test_what_is_lost_doubled_or_invented_is_not_admitted() -> None:
    def plan() -> Stream[int]:
        return (from_shards([[1, 2], [10]]) | gather_async(2)) & (from_items([20]).map(double))

    assert admits(plan(), Outcome((40, 1, 10, 2)))
    for items in [(40, 1, 10), (40, 2, 10, 1), (40, 1, 10, 2, 2), (20, 1, 10, 2)]:
        assert not admits(plan(), Outcome(items))
    assert not admits(plan(), Outcome((40, 1, 10, 2), "DeadlockError"))


def test_more_ways_than_the_limit_are_refused() -> None:
    plan = from_shards([range(5), range(5)]) | gather_async()
    with pytest.raises(TooManyWays, match="more than 20 ways"):
        every_outcome(plan, limit=20)


def test_the_actors_of_every_way_are_made_anew() -> None:
    plan = (actors(Counter, 2, 1).produce(Counter.next_tagged) | gather_async()).map(len) & from_items([0])
    assert {outcome.items for outcome in every_outcome(plan)} == {(2, 2, 0), (2, 0, 2), (0, 2, 2)}


def test_an_expansion_in_a_shard_is_part_of_the_shard() -> None:
    from pipeflow.dsl import flat_map

    plan = from_shards([[1], [5]]) | flat_map(both) | gather_sync()
    assert items_of(plan) == {(1, 5, 2, 6)}


def test_a_pair_is_made_of_the_next_of_both_sides_and_the_shorter_ends_it() -> None:
    gathered = from_shards([[1, 2, 3], [10]]) | gather_async()
    pairs = items_of(gathered.zip(from_items([0, 100])) | pair_sum)
    assert pairs == {(1, 202), (1, 210), (10, 201)}


def test_a_buffer_changes_what_has_happened_and_not_what_is_delivered() -> None:
    assert items_of(from_shards([[1, 2, 3]]) | gather_sync() | buffer(1)) == {(1, 2, 3)}
    workers, learner = actors(Worker, 1, 2, 0), actors(Learner, 1)
    sampled = workers.produce(Worker.sample) | gather_sync() | buffer(1) | learner.stage(Learner.update)
    # The second item is made before the learner has finished with the first, or with its weights.
    assert items_of(sampled | sync_weights(learner, workers)) == {(1, 1_000_002), (1, 1_010_002)}


def test_a_timed_gate_may_drop_all_but_the_first_and_a_throttle_none() -> None:
    assert items_of(from_items([1, 2, 3]) | every_seconds(1)) == {(1,), (1, 2), (1, 3), (1, 2, 3)}
    assert items_of(from_items([1, 2, 3]) | throttle(1)) == {(1, 2, 3)}


def test_a_union_by_steps_has_one_outcome() -> None:
    # The steps are 1, 2, 3 and 2, 3; for their weights the branches have had 1 and 0, 1 and 1, 3 and 1, 3 and 2.5.
    one, other = from_items([0, 1, 2]).map(Counted), from_items([10, 11]).map(Counted)
    assert items_of((one & other).by_steps(1, 2)) == {(0, 10, 1, 11, 2)}
    one, other = from_items([0, 1, 2]).map(Counted), from_items([10, 11]).map(Counted)
    assert items_of(((one | drain) & other).by_steps(1, 2)) == {(10, 11)}


def test_a_filter_that_rejected_may_be_asked_again_while_the_union_by_steps_waits() -> None:
    workers = actors(Worker, 1, 2, 40)
    even = (from_items([20, 21, 22]).filter(is_even)).map(Counted)
    sampled = (workers.produce(Worker.sample) | gather_sync()).map(Counted)
    # 20 and 41 count for three steps each. Then 21 is rejected, and 22 may come before 42 or after it.
    assert items_of((even & sampled).by_steps(1, 1)) == {(20, 41, 22, 42), (20, 41, 42, 22)}


def test_a_prioritised_union_serves_who_comes_later_only_while_the_first_waits() -> None:
    assert items_of((from_items([1, 2]) & from_items([10])).prioritised()) == {(1, 2, 10)}
    waiting = items_of(((from_shards([[1, 2]]) | gather_sync()) & from_items([10])).prioritised())
    assert waiting == {(1, 2, 10), (1, 10, 2), (10, 1, 2)}


def test_a_scattered_stream_goes_to_the_actors_in_turn_and_a_broadcast_to_all() -> None:
    # What a learner returns shows how many items it has had.
    learners = actors(Learner, 2)
    scattered = from_items([1, 2, 3]) | learners.scatter() | learners.stage(Learner.update)
    assert items_of(scattered | gather_sync()) == {(1, 2, 1_000_003)}
    learners = actors(Learner, 2)
    spread = from_items([1, 2]) | learners.broadcast() | learners.stage(Learner.update)
    assert items_of(spread | gather_rounds() | total) == {(2, 2_000_004)}


def test_what_is_made_of_several_items_is_answered_to_the_workers_of_all() -> None:
    workers = actors(Worker, 2, 2, 0)
    batches = workers.produce(Worker.sample) | gather_sync().with_source() | batch(2)
    # The first two items are 1 and 101, so that the weights are 2; they show in both items of the second round.
    answered = batches.reply(Worker.set_weights, total_as_weights)
    assert items_of(answered | total) == {(1 + 101, 20_002 + 20_102)}


def test_a_reply_of_weights_reaches_the_worker_of_the_item_alone() -> None:
    workers, learner = actors(Worker, 2, 2, 0), actors(Learner, 1)
    sampled = workers.produce(Worker.sample) | gather_sync().with_source() | learner.stage(Learner.update)
    # The learner's count beside the version: the first worker was answered after one update, the second after two.
    found = items_of(sampled | reply_weights(learner))
    assert found == {(1, 1_000_101, 2_010_002, 3_020_102)}


def test_a_target_is_updated_after_every_so_many_items() -> None:
    learner = actors(Learner, 1)
    updated = from_items([0, 0, 0]) | learner.stage(Learner.update) | update_target(learner, every=2)
    assert items_of(updated) == {(0, 1_000_000, 3_000_000)}  # the target counts as an update
