"""V-trace: the numeric cases, and what must follow from its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeflow.rl.returns import generalized_advantage_estimation
from pipeflow.rl.vtrace import vtrace
from tests.cases import Case, cases


def numbered(number: str) -> Case:
    # Any, in Case: what a ParameterSet holds is known to nobody else.
    found: list[Any] = [case.values[0] for case in cases("vtrace") if str(case.id).startswith(number)]
    case: Case = found[0]
    return case


# Any: the arguments have several dtypes, by name.
def arguments(case: Case) -> dict[str, Any]:
    inputs = case["inputs"]
    flags = {name: np.array(inputs[name], np.bool_) for name in ("terminated", "truncated")}
    numbers = {name: np.array(inputs[name]) for name in ("rewards", "values", "next_values", "log_rhos")}
    clips = {
        "rho_clip": inputs["rho_bar"],
        "c_clip": inputs["c_bar"],
        "advantage_rho_clip": inputs["pg_rho_bar"],
    }
    return {**flags, **numbers, **clips, "gamma": inputs["gamma"]}


# Any: likewise.
def random_fragment(rows: int = 12, seed: int = 0) -> dict[str, Any]:
    """Two columns whose next values are those of the next rows, except where an episode ends."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows + 1, 2))
    terminated, truncated = rng.random((2, rows, 2)) < 0.15
    truncated &= ~terminated
    return {
        "rewards": rng.normal(size=(rows, 2)),
        "values": values[:-1],
        "next_values": np.where(truncated, rng.normal(size=(rows, 2)), values[1:]),
        "terminated": terminated,
        "truncated": truncated,
    }


@pytest.mark.parametrize("case", cases("vtrace"))
def test_targets_and_advantages_are_those_of_the_case(case: Case) -> None:
    targets, advantages = vtrace(**arguments(case))
    np.testing.assert_allclose(targets, case["expected"]["vs"], rtol=0, atol=case["tolerance"])
    np.testing.assert_allclose(advantages, case["expected"]["pg_advantages"], rtol=0, atol=case["tolerance"])


@pytest.mark.parametrize("case", cases("vtrace"))
def test_columns_do_not_touch(case: Case) -> None:
    given = arguments(case)
    two: dict[str, Any] = {
        name: np.stack([value, value[::-1]], axis=1) if isinstance(value, np.ndarray) else value
        for name, value in given.items()
    }
    targets, advantages = vtrace(**two)
    np.testing.assert_array_equal(targets[:, 0], vtrace(**given)[0])
    np.testing.assert_array_equal(advantages[:, 0], vtrace(**given)[1])


def test_the_values_that_peers_gave_are_not_ours() -> None:
    leaked, swapped, dropped = numbered("VTR-01"), numbered("VTR-02"), numbered("VTR-04")
    assert vtrace(**arguments(leaked))[1][1] != leaked["wrong_values"]["pg_advantage_at_1"]
    targets, advantages = vtrace(**arguments(swapped))
    assert not np.allclose(targets, swapped["wrong_values"]["swapped_vs"])
    assert not np.allclose(advantages, swapped["wrong_values"]["swapped_pg"])
    assert vtrace(**arguments(dropped))[0][:2].tolist() != dropped["wrong_values"]["drop_last_vs"]


def test_log_rhos_are_of_the_trained_policy_over_the_acting_one() -> None:
    inputs = numbered("VTR-02")["inputs"]
    difference = np.array(inputs["target_log_probs"]) - np.array(inputs["behaviour_log_probs"])
    np.testing.assert_allclose(difference, inputs["log_rhos"], atol=1e-12)


def test_on_policy_the_targets_are_the_sampled_returns() -> None:
    fragment = random_fragment()
    for lam in (0.5, 1.0):
        targets, _ = vtrace(np.zeros((12, 2)), gamma=0.9, lam=lam, **fragment)
        _, returns = generalized_advantage_estimation(gamma=0.9, lam=lam, **fragment)
        np.testing.assert_allclose(targets, returns, atol=1e-12)
    targets, advantages = vtrace(np.zeros((12, 2)), gamma=0.9, **fragment)
    expected, returns = generalized_advantage_estimation(gamma=0.9, lam=1.0, **fragment)
    np.testing.assert_allclose(targets, returns, atol=1e-12)
    np.testing.assert_allclose(advantages, expected, atol=1e-12)


def test_with_lambda_0_the_targets_are_one_step_ahead() -> None:
    fragment = random_fragment()
    targets, _ = vtrace(np.zeros((12, 2)), gamma=0.9, lam=0.0, **fragment)
    _, expected = generalized_advantage_estimation(gamma=0.9, lam=0.0, **fragment)
    np.testing.assert_allclose(targets, expected, atol=1e-12)


def test_an_action_that_the_policy_would_never_take_teaches_nothing() -> None:
    fragment = random_fragment()
    targets, advantages = vtrace(np.full((12, 2), -np.inf), gamma=0.9, **fragment)
    np.testing.assert_array_equal(targets, fragment["values"])
    np.testing.assert_array_equal(advantages, np.zeros((12, 2)))


def test_what_stands_behind_a_termination_is_not_read() -> None:
    terminated = np.array([False, True, False])
    flat, at_nan, at_zero = np.zeros(3), np.array([0.0, np.nan, 0.0]), np.zeros(3)
    never = np.zeros(3, np.bool_)
    np.testing.assert_array_equal(
        vtrace(flat, np.ones(3), flat, at_nan, terminated, never, 0.5),
        vtrace(flat, np.ones(3), flat, at_zero, terminated, never, 0.5),
    )


def test_a_reset_row_keeps_its_value_and_reaches_no_other_row() -> None:
    targets, advantages = vtrace(
        log_rhos=np.full(3, 30.0),
        rewards=np.array([1.0, 0.0, 1.0]),
        values=np.array([0.5, 7.0, 0.25]),
        next_values=np.array([9.0, 0.25, 1.0]),
        terminated=np.array([True, False, False]),
        truncated=np.zeros(3, np.bool_),
        gamma=0.5,
        valid=np.array([True, False, True]),
    )
    np.testing.assert_allclose(targets, [1.0, 7.0, 1.5], atol=1e-12)
    np.testing.assert_allclose(advantages, [0.5, 0.0, 1.25], atol=1e-12)
