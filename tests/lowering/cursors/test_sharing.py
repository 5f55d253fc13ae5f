"""Forks and partitions: who gets which item, what is held for whom, and who waits."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

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
from pipeflow.lowering.cursors.sharing import Sharing
from pipeflow.lowering.items import Item
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Counter, Recorder


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
    here = "\\(.*test_sharing.py:\\d+\\)"
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
    with pytest.raises(PlanError, match=r"fork\(2\)\[1\] \(.*test_sharing.py:\d+\) feeds nothing"):
        left.run()


def test_a_fork_may_be_joined_again_through_gates() -> None:
    left, right = from_items(range(6)).fork(2, buffer=3)
    plan = ((left | every(2)) & (right | (lambda number: -number))).round_robin(1, 2)
    assert list(plan.run()) == [1, 0, -1, 3, -2, -3, 5, -4, -5]
