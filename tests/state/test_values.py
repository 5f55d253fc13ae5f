"""Flat states: parts under prefixes, and values that are what is needed or are refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeflow.state.values import StateValue, arrays_under, prefixed, saved_array, saved_number, under

STATE: dict[str, StateValue] = {"a/x": np.arange(3), "a/n": 2**80, "ab": 0.5}


def test_a_part_under_a_prefix_comes_back() -> None:
    assert under("a/", STATE) == {"x": STATE["a/x"], "n": 2**80}
    assert prefixed("a/", under("a/", STATE)) == {"a/x": STATE["a/x"], "a/n": 2**80}
    assert list(arrays_under("a/", STATE)) == ["x"]


def test_numbers_are_exact_whatever_their_size() -> None:
    assert int(saved_number("a/n", STATE)) == 2**80


@pytest.mark.parametrize("name", ["a/x", "c"])
def test_what_is_no_number_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"no number '{name}'"):
        saved_number(name, STATE)


def test_an_array_is_copied() -> None:
    found = saved_array("a/x", STATE, np.zeros(3, np.int64))
    found += 1
    assert np.asarray(STATE["a/x"]).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "like", "message"),
    [
        ("a/x", np.zeros(4, np.int64), r"the state has int64\[3\] for 'a/x' where int64\[4\] is needed"),
        ("a/x", np.zeros(3), r"the state has int64\[3\] for 'a/x' where float64\[3\] is needed"),
        ("ab", np.zeros(3), r"the state has 0.5 for 'ab' where float64\[3\] is needed"),
        ("c", np.zeros(3), r"the state has None for 'c'"),
    ],
)
def test_an_array_of_another_form_is_refused(name: str, like: NDArray[np.generic], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        saved_array(name, STATE, like)
