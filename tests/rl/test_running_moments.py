"""Moments merge exactly, whatever the split; nothing is counted twice; evaluation leaves them alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeflow.rl.running_moments import Moments, ReturnTracker
from tests.cases import Case
from tests.rl.selected_cases import selected


@pytest.mark.parametrize("case", selected("running_stats", "RMS-01", "RMS-05"))
def test_merging_batches_gives_the_moments_of_all_rows(case: Case) -> None:
    moments = Moments.empty(())
    for batch in case["inputs"]["batches"]:
        moments = moments.merged(Moments.of(np.array(batch)))
    expected = case["expected"]
    assert moments.count == expected["count"]
    assert moments.mean == pytest.approx(expected["mean"], abs=case["tolerance"])
    assert moments.variance == pytest.approx(expected["var"], abs=case["tolerance"])
    for wrong in case.get("wrong_values", {}).values():
        assert moments.mean != pytest.approx(wrong, abs=case["tolerance"])


@pytest.mark.parametrize("case", selected("running_stats", "RMS-02"))
def test_workers_report_new_data_only_so_that_old_samples_are_not_added_again(case: Case) -> None:
    learner = Moments.of(np.array(case["inputs"]["base"]))
    for new in case["inputs"]["worker_new"]:
        learner = learner.merged(Moments.of(np.array(new)))
    # A second sync, in which no worker has anything new.
    for _ in case["inputs"]["worker_new"]:
        learner = learner.merged(Moments.empty(()))
    expected = case["expected"]
    assert learner.count == expected["count"] != case["wrong_values"]["count"]
    assert learner.mean == pytest.approx(expected["mean"], abs=case["tolerance"])
    assert learner.variance == pytest.approx(expected["var"], abs=case["tolerance"])


@pytest.mark.parametrize("case", selected("running_stats", "RMS-04"))
def test_normalising_evaluation_observations_does_not_change_the_moments(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    trained = Moments.of(np.array(inputs["train"]))
    normalised = trained.normalise(np.array(inputs["eval_obs"]), inputs["clip"], inputs["eps"])
    assert normalised.tolist() == pytest.approx(expected["normalised_eval"], abs=case["tolerance"])
    assert trained.count == expected["count_after_eval"] != case["wrong_values"]["count_after_eval"]


ROWS = arrays(np.float64, st.tuples(st.integers(0, 8), st.just(2)), elements=st.floats(-1e3, 1e3))


@given(ROWS, ROWS, ROWS)
def test_any_order_of_merging_gives_the_moments_of_all_rows(
    a: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    b: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    c: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> None:
    whole = Moments.of(np.concatenate([a, b, c]))
    left = Moments.of(a).merged(Moments.of(b)).merged(Moments.of(c))
    right = Moments.of(c).merged(Moments.of(a).merged(Moments.of(b)))
    for merged in (left, right):
        assert merged.count == whole.count
        np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(merged.variance, whole.variance, rtol=1e-9, atol=1e-6)


def test_moments_are_taken_per_element_in_float64() -> None:
    batch = np.array([[1e7, 0.0], [1e7 + 2, 4.0]], dtype=np.float32)
    moments = Moments.of(batch)
    assert moments.mean.dtype == np.float64
    assert moments.mean.tolist() == [1e7 + 1, 2.0]
    assert moments.variance.tolist() == [1.0, 4.0]


def test_normalising_with_the_moments_of_nothing_only_clips() -> None:
    normalised = Moments.empty((2,)).normalise(np.array([[1.0, -30.0]]), clip=10.0, epsilon=0.0)
    assert normalised.dtype == np.float32
    assert normalised.tolist() == [[1.0, -10.0]]


def test_an_element_that_never_varied_normalises_to_zero() -> None:
    normalised = Moments.of(np.full((4, 1), 3.0)).normalise(np.array([[3.0]]))
    assert normalised.tolist() == [[0.0]]


def test_normalising_does_not_write_to_its_input() -> None:
    observations = np.array([[4.0]])
    observations.flags.writeable = False
    Moments.of(np.array([[0.0], [2.0]])).normalise(observations)
    assert observations.tolist() == [[4.0]]


def test_moments_of_different_quantities_do_not_merge() -> None:
    with pytest.raises(ValueError, match=r"shape \(2,\) with those of shape \(3,\)"):
        Moments.empty((2,)).merged(Moments.empty((3,)))


def test_moments_need_an_axis_of_rows() -> None:
    with pytest.raises(ValueError, match="rows along axis 0"):
        Moments.of(np.array(1.0))


@pytest.mark.parametrize("case", selected("returns", "RET-02"))
def test_the_running_return_restarts_where_an_episode_ends(case: Case) -> None:
    for flag in ("terminated", "truncated"):
        tracker = ReturnTracker(1, case["inputs"]["gamma"])
        returns = []
        for reward, ends in zip(case["inputs"]["rewards"], case["inputs"]["ends"], strict=True):
            flags = {"terminated": np.array([False]), "truncated": np.array([False])}
            flags[flag] = np.array([bool(ends)])
            returns += tracker.update(np.array([reward]), **flags, valid=np.array([True])).tolist()
        assert returns == pytest.approx(case["expected"]["running_returns"], abs=case["tolerance"])
        assert returns != pytest.approx(case["wrong_values"]["running_returns"], abs=case["tolerance"])


def test_a_reset_row_leaves_the_running_return_as_it_was() -> None:
    tracker = ReturnTracker(2, 0.5)
    no, yes = np.array([False, False]), np.array([True, True])
    tracker.update(np.array([4.0, 4.0]), no, no, yes)
    returns = tracker.update(np.array([1.0, 9.0]), no, no, np.array([True, False]))
    assert returns.tolist() == [3.0, 4.0]


def test_a_discount_outside_the_unit_interval_is_refused() -> None:
    with pytest.raises(ValueError, match=r"gamma must lie in \[0, 1\], got 1.5"):
        ReturnTracker(1, 1.5)
