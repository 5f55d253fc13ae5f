"""Faults of RLlib Flow in how plans are written: numbers 21, 24 and 25 of its table."""

from __future__ import annotations

from typing import Any, assert_type

import pytest

from pipeflow import (
    Placed,
    PlanError,
    Stage,
    Stream,
    actors,
    batch,
    from_items,
    from_shards,
    gather_rounds,
    gather_sync,
    stage,
)
from tests.lowering.actors import Arithmetic


def halved(number: int) -> float:
    return number / 2


def joined(texts: list[str]) -> str:
    return "".join(texts)


def test_fault_21_a_stage_that_does_not_fit_is_refused_where_it_is_written() -> None:
    """Flow found it in a worker, deep in a run. tests/typing has what mypy and pyright say before that."""
    numbers: Any = from_items([1, 2]) | halved | batch(2)
    with pytest.raises(PlanError) as caught:
        _ = numbers | halved
    assert "test_writing_faults.py:" in str(caught.value)
    assert "halved takes int, but batch(2) (" in str(caught.value)
    assert "delivers list[float]; put a stage between them that makes int" in str(caught.value)


def test_fault_21_an_operator_does_not_change_the_type_of_its_items() -> None:
    """None is an item like any other, and a gather of either mode delivers the same type."""
    maybe: list[int | None] = [1, None, 2]
    assert list((from_shards([maybe]) | gather_sync()).run()) == [1, None, 2]
    kept = from_items(maybe).filter(lambda item: item != 1)
    assert list(kept.run()) == [None, 2]


def training(made: Stage[int, int], learnt: Placed[int, int, Arithmetic]) -> Stream[int]:
    """A plan with two places to fill."""
    return from_shards([[1, 2], [3, 4]]) | made | gather_sync() | learnt


def test_fault_24_a_variant_of_an_algorithm_is_another_stage_in_the_same_plan() -> None:
    """Flow had hooks of a configuration, and globals."""

    @stage
    def shifted(number: int) -> int:
        return number + 1

    @stage
    def kept(number: int) -> int:
        return number

    pool = actors(Arithmetic, 1)
    plain = training(kept, pool.stage(Arithmetic.square))
    variant = training(shifted, pool.stage(Arithmetic.square).repeat(2))
    assert_type(variant, Stream[int])
    assert list(plain.run()) == [1, 9, 4, 16]
    assert list(variant.run()) == [2**4, 4**4, 3**4, 5**4]
    assert "kept" not in variant.explain()


def test_fault_24_a_part_of_a_plan_that_does_not_fit_is_refused() -> None:
    wrong: Any = stage(joined)
    with pytest.raises(PlanError, match=r"joined takes list\[str\], but from_shards .* delivers int"):
        training(wrong, actors(Arithmetic, 1).stage(Arithmetic.square))


def test_fault_25_populations_and_inner_loops_are_plans_of_ordinary_operators() -> None:
    """Flow left the dataflow for MAML, MBMPO and Dreamer, and never had ES; tests/algorithms learns with such."""
    pool = actors(Arithmetic, 3)
    inner = from_items([2, 3]) | pool.stage(Arithmetic.square).repeat(2)
    assert list(inner.run()) == [2**4, 3**4]
    population = from_items(range(6)) | pool.scatter() | pool.stage(Arithmetic.square) | gather_rounds() | max
    assert list(population.run()) == [4, 25]
