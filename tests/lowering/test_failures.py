"""An error in user code ends the run, and says which stage, where, in which actor, and on which item (law 20)."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pipeflow.dsl import (
    StageError,
    Stream,
    actors,
    expand,
    flat_map,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
)
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Counter, Failing, OddError


def fails_at_two(number: int) -> int:
    if number == 2:
        message = f"cannot take {number}"
        raise ValueError(message)
    return number


def stops_at_two(number: int) -> int:
    return number if number != 2 else next(iter(list[int]()))


def stops_inside(number: int) -> list[int]:
    return [stops_at_two(number)]


def yields_then_fails(number: int) -> Iterator[int]:
    yield number
    fails_at_two(number)


class Unfinished:
    """An expansion that fails when its input has ended."""

    def push(self, item: int, /) -> list[int]:
        return [item]

    def finish(self) -> list[int]:
        message = "no end"
        raise ValueError(message)


class Unmade:
    """An expansion whose state cannot be made."""

    def __init__(self) -> None:
        message = "no state"
        raise ValueError(message)

    push = Unfinished.push
    finish = Unfinished.finish


def test_an_error_in_a_shard_names_stage_line_actor_and_item(engine: EngineName) -> None:
    plan = (
        from_shards([[1, 3, 2]])
        | fails_at_two
        | gather_sync()
    )  # fmt: skip
    run = plan.run(engine)
    with pytest.raises(StageError) as caught:
        list(run)
    error = caught.value
    assert (error.stage, error.actor, error.item) == ("fails_at_two", "shards[0]", 2)
    assert error.site == plan_line(plan, "fails_at_two")
    assert str(error).startswith(
        f"{error.site}: stage fails_at_two failed on item 2 in shards[0]: ValueError: cannot take 2"
    )
    assert type(error.__cause__) is ValueError
    assert "cannot take 2" in str(error.__cause__)
    # Where it was raised: in the traceback of the cause, or, from another process, in the message.
    told = "".join(traceback.format_exception(error))
    assert 'test_failures.py", line' in told
    assert "in fails_at_two" in told


def plan_line(plan: Stream[Any], name: str) -> str:
    return next(line.split()[-1] for line in plan.explain().splitlines() if line.startswith(name))


def test_what_was_delivered_before_an_error_stays_delivered() -> None:
    """Law 19's half of law 20."""
    run = (actors(Failing, 1).produce(Failing.third_fails) | gather_sync()).run()
    assert [next(run), next(run)] == [1, 2]
    with pytest.raises(
        StageError, match=r"produce\(Failing.third_fails\) failed on item 2 in Failing\[0\]: Look"
    ):
        next(run)


EXPANDED = r"stage flat_map\(yields_then_fails\) failed on item 1 in"
PLANS: list[tuple[str, Callable[[], Stream[Any]], str]] = [
    (
        "a source",
        lambda: actors(Failing, 1).produce(Failing.third_fails) | gather_async(2),
        r"stage Failing.produce\(Failing.third_fails\) failed on item 2 in Failing\[0\]: LookupError: the third",
    ),
    (
        "a constructor",
        lambda: actors(Failing, 2, when_built=True).produce(Failing.number) | gather_sync(),
        r"stage actors\(Failing, 2\) failed in Failing\[0\]: ValueError: not built",
    ),
    (
        "a placed stage",
        lambda: from_items([7]) | actors(Failing, 1).stage(Failing.refuse),
        r"stage Failing.stage\(Failing.refuse\) failed on item 0 in Failing\[0\]: ValueError: refused 7",
    ),
    (
        "a stage fused into a placed one",
        lambda: from_items([1, 2]) | fails_at_two | actors(Arithmetic, 1).stage(Arithmetic.square),
        r"stage fails_at_two failed on item 1 in Arithmetic\[0\]: ValueError: cannot take 2",
    ),
    (
        "a stage on the driver",
        lambda: from_items([1, 2]) | fails_at_two,
        "stage fails_at_two failed on item 1 in driver: ValueError: cannot take 2",
    ),
    (
        "an expansion on the driver",
        lambda: from_items([1, 2]) | flat_map(yields_then_fails),
        EXPANDED + " driver: ValueError",
    ),
    (
        "an expansion in a shard",
        lambda: from_shards([[1, 2]]) | flat_map(yields_then_fails) | gather_sync(),
        EXPANDED + r" shards\[0\]: ValueError",
    ),
    (
        "the end of an expansion on the driver",
        lambda: from_items([1, 2]) | expand(Unfinished),
        "stage Unfinished failed on item 1 in driver: ValueError: no end",
    ),
    (
        "the end of an expansion in a shard",
        lambda: from_shards([[1, 2]]) | expand(Unfinished) | gather_sync(),
        r"stage Unfinished failed on item 2 in shards\[0\]: ValueError: no end",
    ),
    (
        "the making of a state on the driver",
        lambda: from_items([1]) | expand(Unmade),
        "stage Unmade failed on item 0 in driver: ValueError: no state",
    ),
    (
        "the making of a state in a shard",
        lambda: from_shards([[1]]) | expand(Unmade) | gather_sync(),
        r"stage Unmade failed on item 0 in shards\[0\]: ValueError: no state",
    ),
    (
        "a predicate on the driver",
        lambda: from_items([1, 2]).filter(lambda number: fails_at_two(number) > 0),
        r"stage filter\(lambda\) failed on item 1 in driver: ValueError",
    ),
    (
        "a predicate in a shard",
        lambda: from_shards([[1, 2]]).filter(lambda number: fails_at_two(number) > 0) | gather_sync(),
        r"stage filter\(lambda\) failed on item 1 in shards\[0\]: ValueError",
    ),
    (
        "a tap",
        lambda: from_items([1, 2]).tap(fails_at_two),
        r"stage tap\(fails_at_two\) failed on item 1 in driver: ValueError",
    ),
    (
        "the message of a reply",
        lambda: (actors(Counter, 1).produce(Counter.next_number) | gather_sync().with_source()).reply(
            Counter.scaled, fails_at_two
        ),
        r"stage reply\(Counter.scaled\) failed on item 1 in driver: ValueError",
    ),
]


@pytest.mark.parametrize(("make", "message"), [pytest.param(*row, id=name) for name, *row in PLANS])
def test_an_error_names_where_it_came_from(make: Callable[[], Stream[Any]], message: str) -> None:
    with pytest.raises(StageError, match=message) as caught:
        list(make().run())
    assert "test_failures.py:" in caught.value.site
    assert isinstance(caught.value.__cause__, ValueError | LookupError)


@pytest.mark.parametrize(
    "make",
    [
        lambda: actors(Failing, 1).produce(Failing.stops) | gather_sync(),
        lambda: from_shards([[1, 2, 3]]) | stops_at_two | gather_sync(),
        lambda: from_items([1, 2, 3]) | stops_at_two,
        lambda: from_items([1, 2, 3]) | actors(Failing, 1).stage(Failing.stops_at),
        lambda: from_items([1, 2, 3]).filter(lambda number: stops_at_two(number) > 0),
        lambda: from_items([1, 2, 3]) | flat_map(stops_inside),
        lambda: from_shards([[1, 2, 3]]) | flat_map(stops_inside) | gather_sync(),
    ],
    ids=["source", "shard", "driver", "placed", "predicate", "expansion", "expansion in a shard"],
)
def test_a_stop_iteration_of_user_code_is_an_error_and_never_the_end(make: Callable[[], Stream[Any]]) -> None:
    with pytest.raises(StageError, match="StopIteration") as caught:
        list(make().run())
    assert type(caught.value.__cause__) is StopIteration


def test_errors_in_actors_travel_with_their_type_where_they_can(engine: EngineName) -> None:
    failing = actors(Failing, 1)
    with pytest.raises(StageError, match="StopIteration") as caught:
        list((failing.produce(Failing.stops) | gather_sync()).run(engine))
    assert type(caught.value.__cause__) is StopIteration


def test_an_error_that_cannot_travel_keeps_name_and_text(engine: EngineName) -> None:
    with pytest.raises(StageError, match="OddError: odd text") as caught:
        list((actors(Failing, 1).produce(Failing.odd_error) | gather_sync()).run(engine))
    if engine == "inline":
        assert type(caught.value.__cause__) is OddError
    else:
        assert str(caught.value.__cause__) == "OddError: odd text"
        assert "in odd_error" in str(caught.value)


def test_an_error_of_a_class_in_the_main_program_travels_as_itself(engine: EngineName) -> None:
    """As a class that is defined inside of a function does, which no plain pickle finds."""

    class LocalError(Exception):
        pass

    def fails(number: int) -> int:
        raise LocalError(number)

    with pytest.raises(StageError, match="LocalError: 7") as caught:
        list((from_shards([[7]]) | fails | gather_sync()).run(engine))
    assert type(caught.value.__cause__) is LocalError


def test_an_error_leads_back_to_itself_through_no_cause() -> None:
    with pytest.raises(StageError) as caught:
        list((from_shards([[2]]) | fails_at_two | gather_sync()).run())
    seen = set[int]()
    error: BaseException | None = caught.value
    while error is not None:
        assert id(error) not in seen
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    assert len(seen) >= 2
