"""Unions, pairs and drains: what is interleaved, what is not, and when a union ends."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import itertools
import random
from itertools import islice

import pytest

from pipeflow.dsl import (
    DeadlockError,
    StageError,
    actors,
    batch,
    drain,
    every,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    take,
)
from pipeflow.lowering.cursors.joining import ByStepsCursor, RoundRobinCursor, UnionCursor
from pipeflow.lowering.engines.sim import Sim
from pipeflow.lowering.items import Item
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Counter, Recorder, Rows, RowStore, Store


def test_a_union_loses_doubles_and_reorders_nothing_inside_a_branch(engine: EngineName) -> None:
    """Law 10, for two branches in actors and one on the driver."""
    assert_merged(engine)


def assert_merged(engine: EngineName) -> None:
    left = from_shards([[1, 2, 3, 4]]) | gather_async(2)
    middle = from_items([10, 20, 30])
    right = from_shards([[100, 200]]) | gather_sync()
    found = list((left & middle & right).run(engine))
    assert [x for x in found if x < 10] == [1, 2, 3, 4]
    assert [x for x in found if 10 <= x < 100] == [10, 20, 30]
    assert [x for x in found if x >= 100] == [100, 200]


def test_a_union_that_doubles_an_item_fails_the_law_of_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant for law 10."""

    def twice(union: UnionCursor, item: Item) -> Item:
        last = held[-1] if held and len(held) % 3 == 0 else item
        held.append(item)
        return last

    held = list[Item]()
    monkeypatch.setattr(UnionCursor, "_delivered", twice)
    with pytest.raises(AssertionError):
        assert_merged("inline")


def test_unions_group_as_one_likes() -> None:
    """Law 10: ``&`` is associative."""
    left = (from_items([1]) & from_items([2])) & from_items([3])
    right = from_items([1]) & (from_items([2]) & from_items([3]))
    assert list(left.run()) == list(right.run()) == [1, 2, 3]


def test_round_robin_takes_its_weight_of_every_branch_in_each_cycle() -> None:
    """Law 11; a branch that has ended is skipped."""
    assert_weights("inline")


def assert_weights(engine: EngineName) -> None:
    ones = from_shards([[1] * 5]) | gather_sync()
    twos = from_items([2] * 2)
    threes = from_shards([[3] * 3]) | gather_sync()
    plan = (ones & twos & threes).round_robin(2, 1, 1)
    assert list(plan.run(engine)) == [1, 1, 2, 3, 1, 1, 2, 3, 1, 3]


def test_a_round_robin_that_ignores_its_weights_fails_the_law_of_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant for law 11."""
    monkeypatch.setattr(RoundRobinCursor, "_count_turn", lambda cursor, branch: cursor._next_turn())
    with pytest.raises(AssertionError):
        assert_weights("inline")


def test_round_robin_without_weights_takes_one_of_each() -> None:
    plan = (from_items([1, 1, 1]) & from_items([2, 2])).round_robin()
    assert list(plan.run()) == [1, 2, 1, 2, 1]


def test_a_branch_that_is_not_ready_passes_its_turn() -> None:
    """Law 11: the store has nothing before its third item; then both take turns."""
    store = actors(Store, 1, warm=3)
    fill = from_items([5, 6, 7, 8]) | store.stage(Store.add)
    samples = store.produce(Store.sample) | gather_sync() | (lambda item: -item)
    plan = (fill & samples).round_robin() | take(7)
    assert list(plan.run()) == [1, 2, 3, -5, 4, -6, -7]


def test_round_robin_waits_for_the_branch_whose_turn_it_is(engine: EngineName) -> None:
    """Law 11: the order is deterministic, however slow a branch is."""
    slow = from_items(range(4)) | actors(Arithmetic, 1).stage(Arithmetic.late)
    plan = (slow & from_items([-1] * 4)).round_robin()
    assert list(plan.run(engine)) == [0, -1, 1, -1, 2, -1, 3, -1]


def test_no_branch_starves_while_another_never_waits(engine: EngineName) -> None:
    """Law 12: one branch could be served for ever without a look at the engine."""
    endless = from_items(itertools.repeat(-1))
    numbers = actors(Counter, 1).produce(Counter.next_number) | gather_async()
    run = (endless & numbers).run(engine)
    found = itertools.takewhile(lambda item: item < 3, run)
    assert [item for item in found if item > 0] == [1, 2]
    run.close()


def test_no_branch_starves_while_a_drained_one_never_waits() -> None:
    """Law 12: what is drained delivers nothing, so the union must not keep asking it alone."""
    endless = from_items(itertools.repeat(-1)) | drain
    numbers = actors(Counter, 1, limit=2).produce(Counter.next_number) | gather_async()
    assert list((endless & numbers).run()) == [1, 2]


def test_branches_that_are_ready_are_served_in_turns() -> None:
    """Law 12: each within as many steps as there are branches."""
    plan = from_items([1] * 3) & from_items([2] * 3) & from_items([3] * 3)
    assert list(plan.run()) == [1, 2, 3] * 3


def test_a_drained_branch_delivers_nothing_and_is_consumed(engine: EngineName) -> None:
    """Law 13; what it has under way when the union ends is finished first."""
    recorder = actors(Recorder, 1)
    store = from_items(range(9)) | recorder.stage(Recorder.note_number) | drain
    with (store & from_items([1, 2])).round_robin(2, 1).run(engine) as run:
        assert list(run) == [1, 2]
        notes = run.ask(recorder, Recorder.notes)[0]
    # Two before each item; the union found its end when two more had been consumed, and then stopped the branch.
    assert notes == [0, 1, 2, 3, 4, 5]


def test_what_a_drained_branch_has_in_flight_is_finished_when_the_union_ends() -> None:
    """Law 13: the items that its shards had started are stored, and none is started after."""
    counter, recorder = actors(Counter, 2), actors(Recorder, 1)
    store = (
        counter.produce(Counter.next_number)
        | gather_async(3)
        | recorder.stage(Recorder.note_number).max_in_flight(2)
        | drain
    )
    plan = (store & (from_shards([[1] * 4]) | gather_sync())).async_()
    with plan.run() as run:
        assert list(run) == [1] * 4
        started = run.ask(counter, Counter.started)
        assert len(run.ask(recorder, Recorder.notes)[0]) == sum(started) > 0


def test_a_union_of_drained_branches_ends_when_all_have() -> None:
    """Law 13."""
    recorder = actors(Recorder, 1)
    first = from_items([1, 2, 3]) | recorder.stage(Recorder.note_number) | drain
    second = from_items([4]) | recorder.stage(Recorder.note_number) | drain
    with (first & second).run() as run:
        assert list(run) == []
        assert sorted(run.ask(recorder, Recorder.notes)[0], key=str) == [1, 2, 3, 4]


def test_a_plan_may_be_drained_as_a_whole() -> None:
    recorder = actors(Recorder, 1)
    with (from_items([1, 2]) | recorder.stage(Recorder.note_number) | drain).run() as run:
        assert list(run) == []
        assert run.ask(recorder, Recorder.notes) == [[1, 2]]


def test_unions_with_drained_branches_nest() -> None:
    """Law 13: the inner union counts as one branch of the outer, and its drained branch as none of its turns."""
    recorder = actors(Recorder, 1)
    store = from_items(range(99)) | recorder.stage(Recorder.note_number) | drain
    inner = (store & from_items([1, 2, 3])).round_robin(2, 1)
    with (inner & from_items([-1, -2])).round_robin(1, 1).run() as run:
        assert list(run) == [1, -1, 2, -2, 3]
        assert run.ask(recorder, Recorder.notes) == [[0, 1, 2, 3, 4, 5, 6, 7]]


def test_a_drained_union_inside_another_is_stopped_with_it() -> None:
    """Law 13."""
    endless = (from_items(itertools.count()) | drain) & (from_items(itertools.count()) | drain)
    assert list((endless.round_robin() & from_items([1, 2])).run()) == [1, 2]


# By steps


def test_by_steps_serves_the_branch_that_is_furthest_behind() -> None:
    """Law 11, by hand: two steps of b for each one of a."""
    a, b = from_items([Rows(3, "a")] * 4), from_items([Rows(2, "b")] * 9)
    found = [rows.name for rows in (a & b).by_steps(1, 2).run()]
    # Served for a unit of weight: a 3, then b 1, 2, 3 and a again, since of two as far behind the first is served.
    assert "".join(found) == "abbb" + "abbb" + "abbb" + "a"


def test_by_steps_keeps_the_ratio_exactly_whatever_the_sizes() -> None:
    """Law 11: at any time no branch is further from its share than by one item."""
    rng = random.Random(3)
    sizes = {name: [rng.randint(1, 9) for _ in range(300)] for name in "ab"}
    a, b = (from_items([Rows(size, name) for size in sizes[name]]) for name in "ab")
    served = {"a": 0, "b": 0}
    for rows in islice((a & b).by_steps(1, 4).run(), 280):
        served[rows.name] += rows.steps
        assert abs(served["a"] / 1 - served["b"] / 4) <= 9
    assert served["b"] / served["a"] == pytest.approx(4, rel=0.05)


def test_a_ratio_of_steps_that_counts_turns_fails_the_law_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant for law 11."""
    monkeypatch.setattr(ByStepsCursor, "_poll", RoundRobinCursor._poll)
    monkeypatch.setattr(ByStepsCursor, "_count_turn", RoundRobinCursor._count_turn, raising=False)
    monkeypatch.setattr(ByStepsCursor, "_next_turn", RoundRobinCursor._next_turn, raising=False)
    monkeypatch.setattr(ByStepsCursor, "_served", 0, raising=False)
    with pytest.raises((AssertionError, TypeError)):
        test_by_steps_serves_the_branch_that_is_furthest_behind()


def test_by_steps_counts_what_a_drained_branch_consumes(engine: EngineName) -> None:
    """As a store beside a training: four steps trained on for each one sampled."""
    store = actors(RowStore, 1, warm=0)
    sampled = from_items([Rows(1)] * 20) | store.stage(RowStore.add)
    counted = list[int]()
    trained = store.produce(RowStore.sample) | gather_sync() | take(5)
    plan = (sampled.tap(lambda rows: counted.append(rows.steps)) | drain) & trained
    for number, rows in enumerate(plan.by_steps(1, 4).run(engine), start=1):
        assert rows.steps == 4
        assert number - 1 <= sum(counted) <= number + 1
    assert sum(counted) <= 6


def test_a_branch_that_was_not_ready_is_owed_nothing() -> None:
    """Law 11: the store warms up over ten steps, and the training does not then catch up on them."""
    store = actors(RowStore, 1, warm=10)
    sampled = from_items([Rows(1, "s")] * 14) | store.stage(RowStore.add)
    trained = store.produce(RowStore.sample) | gather_sync()
    found = "".join(rows.name[0] for rows in islice((sampled & trained).by_steps(1, 4).run(), 16))
    # The store's tenth step is there, and sampled from, before the union delivers the item that brought it.
    assert found == "s" * 9 + "rsrsrsr"


def test_by_steps_goes_on_with_the_branches_that_are_left() -> None:
    a, b = from_items([Rows(1, "a")]), from_items([Rows(1, "b")] * 3)
    assert [rows.name for rows in (a & b).by_steps(1, 1).run()] == ["a", "b", "b", "b"]


def test_an_item_without_steps_is_an_error_of_the_union() -> None:
    """Law 20, where no annotation told it before."""

    def unknown(item):  # type: ignore[no-untyped-def]  # as a user who writes no types
        return item

    plan = ((from_items([Rows(1)]) | unknown) & from_items([Rows(1)])).by_steps(1, 1)
    assert [rows.steps for rows in plan.run()] == [1, 1]
    broken = ((from_items([1]) | unknown) & from_items([Rows(1)])).by_steps(1, 1)
    with pytest.raises(
        StageError, match=r"stage by_steps failed .*AttributeError: 'int' object has no attribute"
    ):
        list(broken.run())


# Priorities


def test_an_earlier_branch_is_served_before_a_later_one() -> None:
    """Law 12."""
    plan = (from_items([1, 2]) & from_items([10, 20]) & from_items([100])).prioritised()
    assert list(plan.run()) == [1, 2, 10, 20, 100]


def test_a_later_branch_is_served_while_an_earlier_one_has_nothing_ready() -> None:
    """Law 12: the first waits for its actor, the second for nobody."""
    urgent = from_items([1, 2]) | actors(Arithmetic, 1).stage(Arithmetic.square)
    plan = (urgent & from_items([-1] * 20)).prioritised()
    found = list(plan.run())
    assert found[0] == -1
    assert [item for item in found if item > 0] == [1, 4]
    assert found.index(4) < 6, "what finished is heard though the other branch never waits"


def test_a_first_branch_that_is_not_heard_fails_the_law_of_priorities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant for law 12: it never looks what has finished."""
    monkeypatch.setattr("pipeflow.lowering.executor.Executor.look", lambda executor: None)
    with pytest.raises(AssertionError):
        test_a_later_branch_is_served_while_an_earlier_one_has_nothing_ready()


def test_a_first_branch_that_is_not_ready_is_passed_over() -> None:
    store = actors(Store, 1, warm=2)
    fill = from_items([5, 6, 7]) | store.stage(Store.add) | (lambda count: -count)
    samples = store.produce(Store.sample) | gather_sync() | take(4)
    found = list((samples & fill).prioritised().run())
    assert found[:3] == [-1, -2, 5]
    assert [item for item in found if item < 0] == [-1, -2, -3]
    assert len(found) == 7


def test_a_filter_in_a_first_branch_holds_nobody_up(engine: EngineName) -> None:
    rejected = from_items(range(50)).filter(lambda number: number < 0)
    numbers = actors(Counter, 1, limit=3).produce(Counter.next_number) | gather_sync()
    assert list((rejected & numbers).prioritised().run(engine)) == [1, 2, 3]


# Pairs


def test_zip_makes_pairs_in_order_and_ends_with_the_shorter(engine: EngineName) -> None:
    numbers = actors(Counter, 1, limit=9).produce(Counter.next_number) | gather_async(2)
    assert list(numbers.zip(from_items("abc")).run(engine)) == [(1, "a"), (2, "b"), (3, "c")]
    assert list(from_items("ab").zip(from_items(range(9))).run()) == [("a", 0), ("b", 1)]


@pytest.mark.parametrize("seed", range(10))
def test_zip_pairs_whatever_finishes_first(seed: int) -> None:
    left = actors(Counter, 1, limit=5).produce(Counter.next_number) | gather_async(2)
    right = from_items(range(7)) | actors(Arithmetic, 2).stage(Arithmetic.square).max_in_flight(3)
    found = list(left.zip(right).run(Sim(seed)))
    assert found == [(number + 1, number * number) for number in range(5)]


def test_zip_asks_neither_side_for_more_than_one_item_ahead() -> None:
    """Law 17."""
    read = [list[int](), list[int]()]
    left, right = (from_items(range(9)).tap(side.append) for side in read)
    run = left.zip(right).run()
    for delivered, _ in enumerate(islice(run, 5), start=1):
        assert [len(side) for side in read] == [delivered, delivered]
    run.close()


def test_when_one_side_of_a_pair_ends_the_other_is_stopped() -> None:
    """Law 13's halves: its source starts nothing more, and the rest of the plan goes on."""
    counter = actors(Counter, 1)
    numbers = counter.produce(Counter.next_number) | gather_async(2)
    pairs = numbers.zip(from_items("ab")).map(lambda pair: pair[0])
    with (pairs & from_items([-1] * 30)).run() as run:
        assert sorted(run) == [-1] * 30 + [1, 2]
        assert run.ask(counter, Counter.started)[0] <= 2 + 1 + 2


def test_a_pair_waits_for_a_side_that_is_not_ready() -> None:
    store = actors(Store, 1, warm=2)
    fill = from_items([5, 6]) | store.stage(Store.add) | drain
    pairs = (store.produce(Store.sample) | gather_sync()).zip(from_items("abc"))
    assert list((fill & pairs).run()) == [(5, "a"), (6, "b"), (5, "c")]


def test_a_pair_shows_where_its_sides_came_from() -> None:
    sourced = actors(Counter, 2, limit=1).produce(Counter.next_number) | gather_sync().with_source()
    pairs = sourced.zip(from_items([7, 8])).map(lambda pair: (pair[0].source.index, pair[1]))
    assert list(pairs.run()) == [(0, 7), (1, 8)]


def test_two_sides_of_one_fork_can_be_paired() -> None:
    left, right = from_items([1, 2, 3]).fork(2, buffer=1)
    assert list((left | (lambda number: -number)).zip(right).run()) == [(-1, 1), (-2, 2), (-3, 3)]
    ahead, behind = from_items(range(9)).fork(2, buffer=1)
    with pytest.raises(DeadlockError, match=r"whose buffer of 1 is full"):
        list((ahead | batch(3)).zip(behind | batch(1)).run())


# Filters that wait for what another branch does


@pytest.mark.parametrize("policy", ["round_robin", "by_steps", "prioritised", "async_"])
@pytest.mark.parametrize("where", ["driver", "shards"])
def test_a_branch_whose_filter_rejects_passes_its_turn(policy: str, where: str) -> None:
    """Laws 11 and 12: the filter waits for what the other branch stores, and must not keep it from that."""
    store = actors(RowStore, 1, warm=0)
    fill = from_items([Rows(1, "s")] * 9) | store.stage(RowStore.add)
    if where == "driver":
        held = (store.produce(RowStore.held) | gather_sync()).filter(lambda rows: rows.steps >= 3)
    else:
        held = store.produce(RowStore.held).filter(lambda rows: rows.steps >= 3) | gather_sync()
    union = held.map(lambda rows: Rows(1, "h")) & fill
    plans = {
        "round_robin": union.round_robin(1, 1),
        "by_steps": union.by_steps(1, 1),
        "prioritised": union.prioritised(),
        "async_": union.async_(),
    }
    found = "".join(rows.name for rows in islice(plans[policy].run(), 8))
    assert found.startswith("ss")
    assert "h" in found


def test_what_is_complete_after_some_more_items_keeps_its_turn() -> None:
    """Law 11: `every`, a batch or steps to go wait for nobody else."""
    waiting = (from_items(range(6)) | every(2)) & (from_items([-1, -2, -3, -4]) | batch(2))
    assert list(waiting.round_robin(1, 1).run()) == [1, [-1, -2], 3, [-3, -4], 5]


def test_a_union_of_filters_passes_the_turn_of_an_outer_one() -> None:
    """Law 11, nested."""
    never = from_items(range(40)).filter(lambda number: number > 90)
    inner = (never & from_items(range(40)).filter(lambda number: number > 90)).round_robin()
    assert list((inner & from_items([1, 2, 3])).round_robin().run()) == [1, 2, 3]


def test_a_filter_that_rejects_for_ever_keeps_nobody_from_being_heard() -> None:
    """Law 8: the first item is with the actor while the filter looks for a second that never comes."""
    endless = from_items(itertools.count()).filter(lambda number: number == 0)
    run = (endless | actors(Arithmetic, 1).stage(Arithmetic.square).max_in_flight(2)).run()
    assert next(run) == 0
    run.close()
