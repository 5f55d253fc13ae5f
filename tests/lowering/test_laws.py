"""The laws on plans that hypothesis draws, against plain lists, and on Ray for a few of them."""

from __future__ import annotations

import functools
from collections import Counter as Counted
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeflow.dsl import (
    Stream,
    actors,
    batch,
    drain,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    stage,
    take,
)
from tests.lowering.actors import Arithmetic, Recorder
from tests.lowering.reference import PLANS, Items, Plan, RoundRobin, Shards, expected, expression

# Where the items came from, and which of its items each is.
Tagged = tuple[str, int]

lengths = st.lists(st.integers(0, 6), min_size=1, max_size=4)


def tagged(names: str, counts: list[int]) -> list[list[Tagged]]:
    return [[(f"{names}{shard}", k) for k in range(count)] for shard, count in enumerate(counts)]


def assert_keeps_each(found: list[Tagged], sources: list[list[Tagged]]) -> None:
    """No item lost, none twice, none invented, and each source's own in its order."""
    assert Counted(found) == Counted(item for source in sources for item in source)
    for source in sources:
        assert [item for item in found if item in source] == source


@settings(max_examples=200, deadline=None)
@given(PLANS)
def test_a_synchronous_plan_delivers_what_plain_lists_say(plan: Plan) -> None:
    """Laws 2, 3, 5, 11 and 18; and 23, for the reference is what every engine must deliver."""
    assert list(expression(plan).run()) == expected(plan)


@pytest.mark.ray
def test_a_synchronous_plan_delivers_the_same_on_ray(ray_runtime: None) -> None:
    """Law 23: chains in turns, with stages in shards, on the driver and in a pool, and lists of rounds."""
    plan = RoundRobin(
        (
            Shards(((9, 8, 7), (6, 5)), (("repeat", 3), ("rebatch", 2)), True, (("place", 3), ("every", 2))),
            Items((1, 2, 3), (("add", 1),)),
        ),
        (2, 1),
        (("sums", 3),),
    )
    found = list(expression(plan).run("ray"))
    assert found == expected(plan) == list(expression(plan).run("inline"))
    assert found


@settings(max_examples=60, deadline=None)
@given(lengths, st.integers(1, 4), st.integers(1, 3))
def test_shards_keep_their_order_under_gather_async(counts: list[int], num_async: int, size: int) -> None:
    """Law 1, also through batches in the shards."""
    shards = tagged("s", counts)
    plan = from_shards(shards) | batch(size) | gather_async(num_async)
    assert_keeps_each([item for items in plan.run() for item in items], shards)


@settings(max_examples=60, deadline=None)
@given(lengths, st.integers(0, 6), st.integers(1, 3), st.booleans())
def test_unions_keep_each_branch(counts: list[int], more: int, num_async: int, in_turns: bool) -> None:
    """Laws 10 and 18, with a branch in actors, one on the driver, and one through a placed stage."""
    shards, [items], [placed] = tagged("s", counts), tagged("i", [more]), tagged("p", [more])
    union = (
        (from_shards(shards) | gather_async(num_async))
        & from_items(items)
        & (from_items(placed) | actors(Recorder, 1).stage(Recorder.note))
    )
    plan: Stream[Any] = union.round_robin(1, 2, 1) if in_turns else union
    found: list[Any] = list(plan.run())
    assert_keeps_each(found, [*shards, items, placed])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(2, 4), st.integers(1, 3), st.booleans())
def test_every_consumer_of_a_fork_sees_all(items: list[int], outlets: int, buffer: int, placed: bool) -> None:
    """Laws 14 and 18."""
    ends = from_items(items).fork(outlets, buffer=buffer)
    merged: Stream[tuple[int, int]] = ends[0].map(lambda item: (0, item))
    for index, end in enumerate(ends[1:], start=1):
        stream = (
            end | actors(Arithmetic, 1).stage(Arithmetic.where) if placed and index == 1 else end | paired
        )
        merged = merged & stream.map(functools.partial(relabelled, index))
    found = list(merged.run())
    for index in range(outlets):
        assert [item for end, item in found if end == index] == items


def relabelled(index: int, pair: tuple[int, int]) -> tuple[int, int]:
    return index, pair[1]


def paired(item: int) -> tuple[int, int]:
    return 0, item


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 9))
def test_a_partition_sends_every_item_to_one_side(items: list[int], limit: int) -> None:
    """Law 15."""
    low, high = from_items(items).partition(lambda item: item < limit, buffer=12)
    found = list((low.map(lambda item: ("low", item)) & high.map(lambda item: ("high", item))).run())
    assert [item for side, item in found if side == "low"] == [item for item in items if item < limit]
    assert [item for side, item in found if side == "high"] == [item for item in items if item >= limit]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
def test_a_drained_branch_loses_nothing_that_was_started(
    items: list[int], num_async: int, in_flight: int, delivered: int
) -> None:
    """Law 13."""
    recorder = actors(Recorder, 1)
    read = list[int]()
    store = (
        (from_shards([items]) | gather_async(num_async)).tap(read.append)
        | recorder.stage(Recorder.note_number).max_in_flight(in_flight)
        | drain
    )
    with (store & from_items([-1] * delivered)).run() as run:
        assert list(run) == [-1] * delivered
        assert run.ask(recorder, Recorder.notes) == [read]
    assert read == items[: len(read)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 9), max_size=8),
    st.lists(st.sampled_from([abs, str, repr, hash]), min_size=1, max_size=4),
)
def test_grouping_and_place_of_stages_change_nothing(
    items: list[int], functions: list[Callable[[Any], Any]]
) -> None:
    """Law 3: in a row, composed, in the shard, on the driver, pinned there, and in the actor that follows."""
    composed: Any = stage(functions[0])
    row: Any = from_items(items)
    in_shard: Any = from_shards([items])
    pinned: Any = from_items(items)
    for function in functions[1:]:
        composed = composed | named(function)
    for function in functions:
        row = row | named(function)
        in_shard = in_shard | named(function)
        pinned = pinned.map(named(function), here=True)
    record = actors(Recorder, 1).stage(Recorder.note)
    results = [
        list(plan.run())
        for plan in (
            row,
            from_items(items) | composed,
            in_shard | gather_sync(),
            row | record,
            pinned | record,
        )
    ]
    assert all(result == results[0] for result in results)


def named(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda item: function(item) if not isinstance(item, str) or function is not abs else item


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(PLANS, st.integers(0, 6))
def test_asking_for_fewer_items_delivers_the_first_of_them(plan: Plan, count: int) -> None:
    """Law 17: what was not asked for changes nothing of what was."""
    assert list((expression(plan) | take(count)).run()) == expected(plan)[:count]
    with expression(plan).run() as run:
        assert [item for item, _ in zip(run, range(count), strict=False)] == expected(plan)[:count]


def test_the_reference_and_the_check_can_fail() -> None:
    """A plan that loses, doubles, invents or reorders an item is told from one that does not."""
    sources = tagged("s", [3, 1])
    whole = [*sources[0], *sources[1]]
    assert_keeps_each(whole, sources)
    for broken in (whole[1:], [*whole, whole[0]], [*whole, ("s9", 0)], [whole[1], whole[0], *whole[2:]]):
        with pytest.raises(AssertionError):
            assert_keeps_each(broken, sources)
    assert expected(Items((1, 2), (("take", 1),))) == [1] != expected(Items((1, 2), ()))
