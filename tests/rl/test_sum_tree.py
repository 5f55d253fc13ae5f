"""The sum tree against running sums taken one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeflow.rl.sum_tree import SumTree
from tests.cases import Case
from tests.rl.selected_cases import selected


def tree(*leaves: float) -> SumTree:
    made = SumTree(len(leaves))
    made.set(np.arange(len(leaves)), np.array(leaves))
    return made


def found_one_by_one(leaves: NDArray[np.float64], prefix: float) -> int:
    """The first leaf at which the running sum exceeds the prefix, else the last that is not 0."""
    running = 0.0
    for index, leaf in enumerate(leaves):
        running += leaf
        if running > prefix:
            return index
    return int(np.flatnonzero(leaves)[-1])


@pytest.mark.parametrize("case", selected("per", "PER-04"))
def test_per_04_a_capacity_that_is_no_power_of_two_is_searched_to_its_end(case: Case) -> None:
    leaves = tree(*case["inputs"]["leaves"])
    assert leaves.total == case["inputs"]["total"]
    assert leaves.find(np.array(case["inputs"]["queries"])).tolist() == case["expected"]["indices"]


def test_b43_a_prefix_that_reaches_the_total_finds_the_last_leaf_that_is_not_0() -> None:
    assert tree(1.0, 0.0, 2.0, 0.0).find(np.array([3.0, 1.0, 0.5])).tolist() == [2, 2, 0]


def test_b44_thousands_of_equal_leaves_are_each_found_in_their_own_place() -> None:
    leaves = tree(*[0.1] * 10_000)
    prefixes = np.linspace(0.05, leaves.total - 0.05, 10_000)
    np.testing.assert_array_equal(leaves.find(prefixes), np.arange(10_000))


# Whole numbers, so that both sums are exact.
@settings(deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=400).filter(any),
    st.integers(4, 40),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20),
)
def test_finds_what_running_sums_find(leaves: list[int], root: int, shares: list[float]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeflow.rl.sum_tree._ROOT_CHILDREN", root)  # so that small trees have levels
        made = tree(*map(float, leaves))
    array = made.leaves()
    prefixes: NDArray[np.float64] = np.array([share * made.total for share in shares], np.float64)
    assert made.total == sum(leaves)
    assert made.minimum == min(leaf for leaf in leaves if leaf)
    assert made.find(prefixes).tolist() == [found_one_by_one(array, prefix) for prefix in prefixes]


def test_a_changed_leaf_changes_the_sums_above_it_whatever_came_before() -> None:
    rng = np.random.default_rng(0)
    changed = SumTree(100_000)
    for _ in range(50):
        changed.set(rng.integers(0, 100_000, 64), rng.random(64))
    afresh = SumTree(100_000)
    afresh.set(np.arange(100_000), changed.leaves())
    prefixes = rng.random(1000) * changed.total
    assert changed.total == afresh.total
    assert changed.minimum == afresh.minimum
    np.testing.assert_array_equal(changed.find(prefixes), afresh.find(prefixes))


def test_of_equal_indices_the_last_value_counts() -> None:
    leaves = tree(1.0, 1.0, 1.0)
    leaves.set(np.array([1, 1]), np.array([5.0, 2.0]))
    assert leaves.leaves().tolist() == [1.0, 2.0, 1.0]
    assert (leaves.total, leaves.minimum) == (4.0, 1.0)


def test_a_leaf_set_to_0_is_neither_found_nor_the_smallest() -> None:
    leaves = tree(1.0, 2.0, 4.0)
    leaves.set(np.array([0]), np.array([0.0]))
    assert leaves.minimum == 2.0
    assert leaves.find(np.array([0.0])).tolist() == [1]


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_leaf_that_is_no_probability_is_refused_and_nothing_written(value: float) -> None:
    leaves = tree(1.0, 2.0)
    with pytest.raises(ValueError, match="finite and not negative"):
        leaves.set(np.array([0, 1]), np.array([3.0, value]))
    assert leaves.leaves().tolist() == [1.0, 2.0]


def test_b50_nothing_can_be_found_in_an_empty_tree() -> None:
    with pytest.raises(ValueError, match="all 0"):
        SumTree(3).find(np.array([0.0]))


def test_a_tree_needs_a_leaf() -> None:
    with pytest.raises(ValueError, match="capacity of at least 1, got 0"):
        SumTree(0)
