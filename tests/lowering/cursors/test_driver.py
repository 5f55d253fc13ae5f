"""What runs on the driver itself: items of an iterable, callables, expansions, and gates on both sides."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pytest

from pipeflow.dsl import (
    NotReady,
    ParallelStream,
    Stage,
    StageError,
    Stream,
    batch,
    concat,
    every,
    expand,
    flat_map,
    flatten,
    from_items,
    from_shards,
    gather_rounds,
    gather_sync,
    once_per_steps,
    shuffle,
    stage,
    take,
    tap,
    until,
)
from pipeflow.lowering.cursors.driver import ExpandCursor
from tests.conftest import EngineName


@dataclass(frozen=True)
class Steps:
    """A batch of numbers for `concat`."""

    numbers: list[int] = field(default_factory=list[int])

    @property
    def steps(self) -> int:
        return len(self.numbers)

    @classmethod
    def concatenate(cls, items: list[Steps], /) -> Steps:
        return cls([number for item in items for number in item.numbers])


class PairSums:
    """Sums of two neighbours; a last single one is given alone."""

    def __init__(self) -> None:
        self._held: list[int] = []

    def push(self, item: int, /) -> Iterable[int]:
        self._held.append(item)
        return self.finish() if len(self._held) == 2 else ()

    def finish(self) -> Iterable[int]:
        held, self._held = self._held, []
        return (sum(held),) if held else ()


def five(number: int) -> Iterator[int]:
    for offset in range(5):
        yield number + offset


def test_a_finite_plan_ends_after_its_last_item() -> None:
    """Law 18."""
    assert list(from_items([1, 2, 3]).run()) == [1, 2, 3]
    assert list(from_items(list[int]()).run()) == []


def test_an_iterable_is_read_as_its_items_are_asked_for() -> None:
    """Law 17."""
    read = list[int]()

    def numbers() -> Iterator[int]:
        for number in range(10):
            read.append(number)
            yield number

    run = (from_items(numbers()) | (lambda number: -number)).run()
    assert read == []
    assert [next(run), next(run)] == [0, -1]
    assert read == [0, 1]
    run.close()


def test_a_stage_gives_one_output_for_every_input_in_order() -> None:
    """Law 2, for a function, a lambda, a `Stage`, a class and a bound method."""
    double: Stage[int, int] = stage(lambda number: 2 * number)
    plan = (from_items([1, 2, 3]).map(str) | (lambda text: text + "0")).map(int) | double | "{:03d}".format
    assert list(plan.run()) == ["020", "040", "060"]


# One table for both sides of a gather: what an operator makes of one shard, or of one stream.
OPERATORS: list[tuple[str, list[Any], Callable[[Any], Any], list[Any]]] = [
    ("take", [1, 2, 3], lambda s: s | take(2), [1, 2]),
    ("take_nothing", [1, 2, 3], lambda s: s | take(0), []),
    ("take_more_than_there_is", [1, 2, 3], lambda s: s | take(9), [1, 2, 3]),
    ("every", [1, 2, 3, 4, 5], lambda s: s | every(2), [2, 4]),
    ("every_then_take", [1, 2, 3, 4, 5, 6], lambda s: s | every(2) | take(2), [2, 4]),
    ("filter", [1, 2, 3, 4], lambda s: s.filter(lambda x: x % 2 == 0), [2, 4]),
    ("filter_everything", [1, 2], lambda s: s.filter(lambda x: False), []),
    ("map", [1, 2], lambda s: s.map(lambda x: [x]), [[1], [2]]),
    ("batch_whole", [1, 2, 3, 4], lambda s: s | batch(2), [[1, 2], [3, 4]]),
    ("batch_partial", [1, 2, 3], lambda s: s | batch(2), [[1, 2], [3]]),
    ("batch_of_nothing", [], lambda s: s | batch(2), []),
    ("flatten", [[1, 2], [], [3]], lambda s: s | flatten(), [1, 2, 3]),
    ("flat_map", [1, 10], lambda s: s | flat_map(five) | take(7), [1, 2, 3, 4, 5, 10, 11]),
    ("take_inside_an_expansion", [0], lambda s: s | flat_map(five) | take(2), [0, 1]),
    ("take_a_batch_and_leave_the_rest", [0], lambda s: s | flat_map(five) | batch(2) | take(1), [[0, 1]]),
    ("batch_what_was_taken", [0], lambda s: s | flat_map(five) | take(3) | batch(2), [[0, 1], [2]]),
    ("expand", [1, 2, 3], lambda s: s | expand(PairSums), [3, 3]),
    ("expand_twice", [1, 2, 3, 4, 5], lambda s: s | expand(PairSums) | expand(PairSums), [10, 5]),
    ("batch_the_rest_of_a_batch", [1, 2, 3], lambda s: s | batch(2) | flatten() | batch(2), [[1, 2], [3]]),
    ("shuffle_within_one", [1, 2, 3], lambda s: s | shuffle(1, seed=0), [1, 2, 3]),
    ("shuffle_nothing", [], lambda s: s | shuffle(4, seed=0), []),
    (
        "once_per_steps",
        [Steps([1]), Steps([2, 3]), Steps([4]), Steps([5, 6, 7]), Steps([8])],
        lambda s: s | once_per_steps(3),
        [Steps([2, 3]), Steps([5, 6, 7])],
    ),
    (
        "once_per_steps_of_less_than_one_item",
        [Steps([1]), Steps([2])],
        lambda s: s | once_per_steps(1),
        [Steps([1]), Steps([2])],
    ),
    (
        "concat",
        [Steps([1]), Steps([2, 3]), Steps([4])],
        lambda s: s | concat(3),
        [Steps([1, 2, 3]), Steps([4])],
    ),
]  # fmt: skip
CASES = pytest.mark.parametrize(
    ("items", "operator", "expected"), [pytest.param(*row, id=name) for name, *row in OPERATORS]
)


@CASES
def test_an_operator_on_a_stream(
    items: list[Any], operator: Callable[[Stream[Any]], Stream[Any]], expected: list[Any]
) -> None:
    """Laws 2 and 18."""
    assert list(operator(from_items(items)).run()) == expected


@CASES
def test_an_operator_inside_a_shard_makes_the_same(
    items: list[Any],
    operator: Callable[[ParallelStream[Any, Any]], ParallelStream[Any, Any]],
    expected: list[Any],
) -> None:
    """Law 3: where a stage runs changes nothing; every shard has a state of its own."""
    plan = operator(from_shards([items, items])) | gather_sync()
    assert list(plan.run()) == [item for item in expected for _ in range(2)]


def test_operators_travel_to_the_shards_of_every_engine(engine: EngineName) -> None:
    shard = (
        from_shards([[3, 1]]) | flat_map(five) | every(2) | (lambda number: number + 1) | batch(2) | take(2)
    ).filter(lambda numbers: len(numbers) == 2) | flatten()
    assert list((shard | gather_sync()).run(engine)) == [5, 7, 2, 4]


def test_a_state_that_forgets_its_rest_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant for law 18: what is left at the end is lost."""

    def forgetful(cursor: ExpandCursor) -> object:
        monkeypatch.setattr(cursor._state, "finish", tuple)
        return poll(cursor)

    poll = ExpandCursor._poll
    monkeypatch.setattr(ExpandCursor, "_poll", forgetful)
    with pytest.raises(AssertionError):
        test_an_operator_on_a_stream([1, 2, 3], lambda s: s | expand(PairSums), [3, 3])


def test_until_ends_the_stream_after_the_item_that_it_was_waiting_for() -> None:
    asked = list[int]()
    plan = from_items(range(9)).tap(asked.append).until(lambda number: number == 2)
    assert list(plan.run()) == [0, 1, 2]
    assert asked == [0, 1, 2]
    assert list((from_items(range(-2, 9)) | until(bool)).run()) == [-2]
    assert list(from_items(range(9)).until(lambda number: number > 8).run()) == list(range(9))


def test_take_ends_without_asking_for_another() -> None:
    """Law 17."""
    asked = list[int]()
    assert list((from_items(range(9)) | tap(asked.append) | take(2)).run()) == [0, 1]
    assert asked == [0, 1]


def test_shuffle_draws_each_item_from_those_that_came_last() -> None:
    """Law 2 for an expansion: nothing is lost, and nothing comes earlier than its buffer lets it."""
    found = list((from_items(range(200)) | shuffle(8, seed=1)).run())
    assert sorted(found) == list(range(200))
    assert found != list(range(200))
    assert all(number < place + 8 for place, number in enumerate(found))


def test_shuffle_is_the_same_for_a_seed_and_another_in_every_shard() -> None:
    def order(seed: int) -> list[int]:
        return list((from_items(range(20)) | shuffle(5, seed=seed)).run())

    assert order(1) == order(1)
    assert order(1) != order(2)
    shards = from_shards([range(20), range(20)]) | shuffle(5, seed=1) | gather_rounds()
    first, second = zip(*shards.run(), strict=True)
    assert sorted(first) == sorted(second) == list(range(20))
    assert list(first) == order(1)
    assert first != second


def test_shuffle_reads_no_more_than_its_buffer_ahead() -> None:
    """Law 17."""
    read = list[int]()
    run = (from_items(range(99)).tap(read.append) | shuffle(4, seed=0)).run()
    for delivered, _ in enumerate(islice(run, 9), start=1):
        assert len(read) == delivered + 3
    run.close()


def test_once_per_steps_counts_in_every_shard_for_itself() -> None:
    """Law 3 does not hold across a gather for what keeps a state, as the documentation says."""
    items = [Steps([1, 2]) for _ in range(4)]
    inside = from_shards([items, items]) | once_per_steps(4) | gather_sync()
    assert len(list(inside.run())) == 2 * 2
    behind = from_shards([items, items]) | gather_sync() | once_per_steps(4)
    assert len(list(behind.run())) == 8 // 2


def test_once_per_steps_of_an_item_that_counts_none_is_an_error() -> None:
    """Law 20, where no annotation told it before."""
    unknown: Stream[Any] = from_items(iter([1]))
    plan = unknown | once_per_steps(2)
    with pytest.raises(
        StageError, match=r"stage once_per_steps\(2\) failed on item 0 in driver: AttributeError"
    ):
        list(plan.run())


def test_a_tap_sees_every_item_and_changes_none() -> None:
    seen = list[int]()
    plan = (from_shards([[1, 2]]) | gather_sync()).tap(seen.append) | every(2) | tap(seen.append)
    assert list(plan.run()) == [2]
    assert seen == [1, 2, 2]


def test_a_stage_may_not_return_a_signal_of_a_source() -> None:
    """Law 2, on the driver as in a shard."""

    def nothing(number: int) -> int | NotReady:
        return NotReady()

    with pytest.raises(StageError, match="a stage returned NotReady, which only a producing method may"):
        list((from_items([1]) | nothing).run())
    with pytest.raises(StageError, match="a stage returned NotReady, which only a producing method may"):
        list((from_shards([[1]]) | nothing | gather_sync()).run())


def test_what_an_iterable_raises_is_an_error_of_the_source() -> None:
    """Law 20: the items before it were delivered."""

    def numbers() -> Iterator[int]:
        yield 1
        message = "no second"
        raise ValueError(message)

    class Unreadable:
        def __iter__(self) -> Iterator[int]:
            message = "not read"
            raise ValueError(message)

    run = from_items(numbers()).run()
    assert next(run) == 1
    with pytest.raises(
        StageError, match="stage from_items failed on item 1 in driver: ValueError: no second"
    ):
        next(run)
    with pytest.raises(StageError, match="stage from_items failed on item 0 in driver: ValueError: not read"):
        next(from_items(Unreadable()).run())
