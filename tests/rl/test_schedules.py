"""Schedules hit their points, hold their ends, and depend on the lifetime step alone."""

from __future__ import annotations

import pytest

from pipeflow.rl.schedules import Constant, Linear, Piecewise, as_schedule, per_worker_epsilon
from tests.cases import Case
from tests.rl.selected_cases import selected


@pytest.mark.parametrize("case", selected("schedule", "SCH-01"))
def test_piecewise_interpolates_between_points_and_holds_the_last(case: Case) -> None:
    schedule = Piecewise(tuple((step, value) for step, value in case["inputs"]["points"]))
    values = [schedule(t) for t in case["inputs"]["t"]]
    assert values == pytest.approx(case["expected"]["values"], abs=case["tolerance"])


def test_piecewise_holds_the_first_value_before_the_first_point() -> None:
    assert Piecewise(((10, 3.0), (20, 1.0)))(5) == 3.0


@pytest.mark.parametrize("case", selected("schedule", "SCH-02"))
def test_linear_slopes_to_its_final_value_and_stays_there(case: Case) -> None:
    inputs = case["inputs"]
    schedule = Linear(inputs["start"], inputs["final"], inputs["steps"])
    values = [schedule(t) for t in inputs["t"]]
    assert values == pytest.approx(case["expected"]["values"], abs=case["tolerance"])
    assert values != pytest.approx(case["wrong_values"]["slope_to_zero"], abs=case["tolerance"])


def test_linear_is_exact_at_both_ends() -> None:
    schedule = Linear(0.1, 0.7, 3)
    assert schedule(0) == 0.1
    assert schedule(3) == 0.7


@pytest.mark.parametrize("case", selected("schedule", "SCH-07"))
def test_workers_explore_at_different_rates(case: Case) -> None:
    inputs = case["inputs"]
    count = inputs["num_workers"]
    epsilons = [per_worker_epsilon(inputs["base"], inputs["alpha"], index, count) for index in range(count)]
    assert epsilons == pytest.approx(case["expected"]["epsilons"], abs=case["tolerance"])


def test_a_single_worker_explores_at_the_base_rate() -> None:
    assert per_worker_epsilon(0.4, 7, 0, 1) == 0.4


def test_a_worker_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="worker index 2 is not one of 2 workers"):
        per_worker_epsilon(0.4, 7, 2, 2)


def test_a_number_is_a_constant_schedule_and_a_schedule_is_itself() -> None:
    assert as_schedule(3) == Constant(3.0)
    assert as_schedule(0.5)(10**9) == 0.5
    linear = Linear(1.0, 0.0, 10)
    assert as_schedule(linear) is linear


@pytest.mark.parametrize("steps", [0, -5])
def test_a_line_over_no_steps_is_refused(steps: int) -> None:
    with pytest.raises(ValueError, match=f"positive number of steps, got {steps}"):
        Linear(1.0, 0.0, steps)


def test_points_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="must increase, got 5 after 5"):
        Piecewise(((5, 1.0), (5, 2.0)))


def test_a_piecewise_schedule_needs_a_point() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Piecewise(())
