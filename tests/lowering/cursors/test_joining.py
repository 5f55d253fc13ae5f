"""Unions, drains, forks and partitions: what is interleaved, what is not, and when a union ends."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import itertools
import re
from itertools import islice

import pytest

from pipeflow.dsl import (
    DeadlockError,
    PlanError,
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
from pipeflow.lowering.cursors.joining import RoundRobinCursor, UnionCursor
from pipeflow.lowering.cursors.sharing import Sharing
from pipeflow.lowering.items import Item
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Counter, Recorder, Store


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


def test_every_consumer_of_a_fork_sees_every_item_in_order(engine: EngineName) -> None:
    """Law 14."""
    assert_forked(engine)


def assert_forked(engine: EngineName) -> None:
    left, right = (from_shards([[1, 2, 3, 4]]) | gather_sync()).fork(2, buffer=2)
    squares = right | actors(Arithmetic, 1).stage(Arithmetic.square) | (lambda number: -number)
    found = list((left & squares).run(engine))
    assert [item for item in found if item > 0] == [1, 2, 3, 4]
    assert [item for item in found if item < 0] == [-1, -4, -9, -16]


def test_a_fork_that_gives_an_item_to_one_consumer_fails_the_law_of_forks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant for law 14."""

    def first_only(sharing: Sharing, item: Item) -> None:
        sharing.buffers[0].append(item)

    monkeypatch.setattr(Sharing, "_share", first_only)
    with pytest.raises((AssertionError, DeadlockError)):
        assert_forked("inline")


def test_a_consumer_that_is_too_far_ahead_waits() -> None:
    """Law 14: at most `buffer` items are held."""
    read = list[int]()
    left, right = from_items(range(9)).tap(read.append).fork(2, buffer=2)
    run = (left & (right | batch(9) | drain)).run()
    for count in range(1, 9):
        assert next(run) == count - 1
        assert len(read) <= count + 2
    run.close()


def test_a_fork_that_nobody_can_go_on_reading_is_a_deadlock_that_names_both() -> None:
    """Law 14: the round robin wants three of the left, and the right one's buffer holds two."""
    left, right = from_items(range(9)).fork(2, buffer=2)
    plan = (left & (right | batch(9)).named("patient")).round_robin(3, 1)
    run = plan.run()
    assert list(islice(run, 2)) == [0, 1]
    with pytest.raises(DeadlockError) as caught:
        next(run)
    here = "\\(.*test_joining.py:\\d+\\)"
    assert re.search(
        rf"fork\(2\)\[0\] {here} waits for patient {here} to ask for fork\(2\)\[1\], whose buffer of 2 is full",
        str(caught.value),
    )


def test_a_consumer_that_ended_holds_nobody_up() -> None:
    left, right = from_items(range(9)).fork(2, buffer=1)
    assert list((left & (right | take(2) | drain)).run()) == list(range(9))


def test_a_drained_consumer_gets_what_its_fork_has_read_for_it() -> None:
    """Laws 14 and 18: the other consumer ends the union while items wait for this one."""
    recorder = actors(Recorder, 1)
    left, right = from_items(range(6)).fork(2, buffer=4)
    with (left & (right | recorder.stage(Recorder.note_number) | drain)).run() as run:
        assert list(run) == list(range(6))
        assert run.ask(recorder, Recorder.notes) == [list(range(6))]


def test_drained_consumers_share_what_is_in_flight_when_the_union_ends() -> None:
    """Laws 13 and 14: nothing that the source started is lost, and both see the same."""
    counter, recorders = actors(Counter, 1), [actors(Recorder, 1), actors(Recorder, 1)]
    outlets = (counter.produce(Counter.next_number) | gather_async(4)).fork(2, buffer=9)
    first, second = (
        outlet | recorder.stage(Recorder.note_number) | drain
        for outlet, recorder in zip(outlets, recorders, strict=True)
    )
    with (first & second & (from_shards([[1] * 3]) | gather_sync())).run() as run:
        assert list(run) == [1] * 3
        started = run.ask(counter, Counter.started)[0]
        assert started > 0
        for recorder in recorders:
            assert run.ask(recorder, Recorder.notes) == [list(range(1, started + 1))]


def test_a_branch_of_a_fork_may_write_into_its_items() -> None:
    """Law 26: no branch sees another's writes, for items on the driver and for items in an actor."""

    def marked(item: list[int]) -> list[int]:
        item.append(-1)
        return item

    for source in (from_items([[1], [2]]), from_shards([[[1], [2]]]) | gather_sync()):
        left, right = source.fork(2, buffer=2)
        found = list(((left | marked) & right).round_robin().run())
        assert found == [[1, -1], [1], [2, -1], [2]]


def test_an_item_that_cannot_be_copied_is_an_error_of_the_fork() -> None:
    """Law 20."""
    generators = [iter(range(number)) for number in (1, 2)]
    left, right = from_items(number for number in [(x for x in generators)]).fork(2, buffer=1)
    with pytest.raises(StageError, match=r"stage fork\(2\) failed on item 0 in driver: TypeError"):
        list((left & right).run())


def test_every_item_goes_to_exactly_one_side_of_a_partition() -> None:
    """Law 15: each side keeps the order."""
    source = from_shards([[1, 2, 3, 4, 5]]) | gather_sync()
    odd, even = source.partition(lambda number: number % 2 == 1, buffer=5)
    found = list((odd & (even | (lambda number: -number))).run())
    assert [item for item in found if item > 0] == [1, 3, 5]
    assert [item for item in found if item < 0] == [-2, -4]


def test_a_predicate_that_raises_is_an_error_of_the_partition() -> None:
    """Law 20."""
    high, low = from_items([2, 1, 0]).partition(lambda number: 1 / number > 0.6, buffer=9)
    with pytest.raises(StageError, match=r"stage partition\(.*lambda\) failed on item 2 in driver: ZeroDiv"):
        list((high & low).run())


def test_an_end_of_a_fork_that_feeds_nothing_is_refused() -> None:
    """Law 26: its buffer would fill, and then nothing could go on."""
    left, _ = from_items(range(9)).fork(2, buffer=2)
    with pytest.raises(PlanError, match=r"fork\(2\)\[1\] \(.*test_joining.py:\d+\) feeds nothing"):
        left.run()


def test_a_fork_may_be_joined_again_through_gates() -> None:
    left, right = from_items(range(6)).fork(2, buffer=3)
    plan = ((left | every(2)) & (right | (lambda number: -number))).round_robin(1, 2)
    assert list(plan.run()) == [1, 0, -1, 3, -2, -3, 5, -4, -5]
