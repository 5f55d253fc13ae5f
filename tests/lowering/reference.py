"""What a synchronous plan delivers, computed with plain lists: the reference that the executor is held against.

A plan is drawn as data (`Shards`, `Items`, `RoundRobin` and the steps on them), from which both the expression
and its reference are made.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from pipeflow.dsl import (
    Stream,
    actors,
    batch,
    every,
    flat_map,
    flatten,
    from_items,
    from_shards,
    gather_rounds,
    gather_sync,
    take,
)
from tests.lowering.actors import Arithmetic

# A step by its name and its number: `("take", 3)`. All of them turn a list of numbers into a list of numbers.
Step: TypeAlias = tuple[str, int]
Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class Items:
    """Items on the driver, and steps on them."""

    items: tuple[int, ...]
    steps: Steps


@dataclass(frozen=True)
class Shards:
    """Shards with steps of their own, gathered in rounds, and steps after it."""

    shards: tuple[tuple[int, ...], ...]
    in_shards: Steps
    as_rounds: bool
    steps: Steps


@dataclass(frozen=True)
class RoundRobin:
    """Branches in turns, and steps after the union."""

    branches: tuple[Plan, ...]
    weights: tuple[int, ...]
    steps: Steps


Plan: TypeAlias = Items | Shards | RoundRobin


def expression(plan: Plan) -> Stream[int]:
    """The plan as an expression."""
    built: Stream[int] = _built(plan)
    return built


# `Any`, here and in `_applied`: a stream or a parallel stream of numbers, as `|` takes both.
def _built(plan: Plan) -> Any:
    match plan:
        case Items(items, steps):
            return _applied(from_items(items), steps)
        case Shards(shards, in_shards, as_rounds, steps):
            parallel = _applied(from_shards(shards), in_shards)
            gathered = parallel | gather_rounds() | flatten() if as_rounds else parallel | gather_sync()
            return _applied(gathered, steps)
        case RoundRobin(branches, weights, steps):
            union = _built(branches[0])
            for branch in branches[1:]:
                union = union & _built(branch)
            return _applied(union.round_robin(*weights), steps)


def expected(plan: Plan) -> list[int]:
    """The items that the plan delivers."""
    match plan:
        case Items(items, steps):
            return _stepped(list(items), steps)
        case Shards(shards, in_shards, _, steps):
            made = [_stepped(list(shard), in_shards) for shard in shards]
            longest = max(len(shard) for shard in made)
            rounds = [shard[k] for k in range(longest) for shard in made if k < len(shard)]
            return _stepped(rounds, steps)
        case RoundRobin(branches, weights, steps):
            return _stepped(list(_in_turns([expected(branch) for branch in branches], weights)), steps)


def _in_turns(branches: list[list[int]], weights: tuple[int, ...]) -> Iterator[int]:
    while any(branches):
        for branch, weight in zip(branches, weights, strict=True):
            yield from branch[:weight]
            del branch[:weight]


def _applied(stream: Any, steps: Steps) -> Any:
    for name, n in steps:
        match name:
            case "add":
                stream = stream.map(functools.partial(operator.add, n))
            case "filter":
                stream = stream.filter(functools.partial(_divides, n))
            case "repeat":
                stream = stream | flat_map(functools.partial(_repeated, n))
            case "take":
                stream = stream | take(n)
            case "every":
                stream = stream | every(n)
            case "sums":
                stream = stream | batch(n) | sum
            case "rebatch":
                stream = stream | batch(n) | flatten()
            case "place":  # in the driver's half only: what stands before it moves into the actor
                stream = stream | actors(Arithmetic, n % 2 + 1).stage(Arithmetic.square).max_in_flight(n)
            case _:
                raise AssertionError(name)
    return stream


def _stepped(items: list[int], steps: Steps) -> list[int]:
    for name, n in steps:
        match name:
            case "add":
                items = [x + n for x in items]
            case "filter":
                items = [x for x in items if x % n == 0]
            case "repeat":
                items = [x for x in items for _ in range(x % n)]
            case "take":
                items = items[:n]
            case "every":
                items = items[n - 1 :: n]
            case "sums":
                items = [sum(items[k : k + n]) for k in range(0, len(items), n)]
            case "rebatch":
                pass
            case "place":
                items = [x * x for x in items]
            case _:
                raise AssertionError(name)
    return items


def _divides(n: int, x: int) -> bool:
    return x % n == 0


def _repeated(n: int, x: int) -> list[int]:
    return [x] * (x % n)


_NAMES = ["add", "repeat", "take", "every", "sums", "rebatch"]
_IN_SHARDS = st.tuples(st.sampled_from([*_NAMES, "filter"]), st.integers(1, 4))
_IN_BRANCHES = st.tuples(st.sampled_from([*_NAMES, "place"]), st.integers(1, 4))
_ON_THE_DRIVER = st.tuples(st.sampled_from([*_NAMES, "place", "filter"]), st.integers(1, 4))
_NUMBERS = st.lists(st.integers(0, 9), max_size=7).map(tuple)


def _steps(step: st.SearchStrategy[Step]) -> st.SearchStrategy[Steps]:
    return st.lists(step, max_size=4).map(tuple)


def _sources(step: st.SearchStrategy[Step]) -> st.SearchStrategy[Plan]:
    """Sources, and steps on the driver behind them."""
    items = st.builds(Items, _NUMBERS, _steps(step))
    shards = st.builds(
        Shards,
        st.lists(_NUMBERS, min_size=1, max_size=3).map(tuple),
        _steps(_IN_SHARDS),
        st.booleans(),
        _steps(step),
    )
    return items | shards


@st.composite
def _round_robins(
    draw: st.DrawFn, inner: st.SearchStrategy[Plan], step: st.SearchStrategy[Step]
) -> RoundRobin:
    branches = draw(st.lists(inner, min_size=2, max_size=3).map(tuple))
    weights = draw(st.lists(st.integers(1, 3), min_size=len(branches), max_size=len(branches)).map(tuple))
    return RoundRobin(branches, weights, draw(_steps(step)))


# A filter's rejection passes its branch's turn (law 11), which plain lists do not say: no filter on the driver in
# a branch; the reference interpreter has them there.
_BRANCHES: st.SearchStrategy[Plan] = st.recursive(
    _sources(_IN_BRANCHES), lambda inner: _round_robins(inner, _IN_BRANCHES), max_leaves=3
)
PLANS: st.SearchStrategy[Plan] = _sources(_ON_THE_DRIVER) | _round_robins(_BRANCHES, _ON_THE_DRIVER)
