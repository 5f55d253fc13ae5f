"""Returns and advantages: the numeric cases, the rule that joined episodes equal split ones, and the stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeflow.rl.batches import Advantages, Trajectories
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.returns import discounted_returns, gae, generalized_advantage_estimation
from pipeflow.rl.running_moments import Moments, ReturnTracker
from tests.cases import Case, cases
from tests.rl.read_only import read_only
from tests.rl.selected_cases import selected


def flags(values: list[int]) -> NDArray[np.bool_]:
    return np.array(values, dtype=np.bool_)


@pytest.mark.parametrize("case", cases("gae"))
def test_gae_gives_the_numbers_of_the_case(case: Case) -> None:
    inputs, expected, tolerance = case["inputs"], case["expected"], case["tolerance"]
    rewards = np.array(inputs["rewards"])
    rewards.setflags(write=False)
    advantages, value_targets = generalized_advantage_estimation(
        rewards,
        np.array(inputs["values"]),
        np.array(inputs["next_values"]),
        flags(inputs["terminated"]),
        flags(inputs["truncated"]),
        inputs["gamma"],
        inputs["lam"],
    )
    np.testing.assert_allclose(advantages, expected["advantages"], rtol=0, atol=tolerance)
    if "value_targets" in expected:
        np.testing.assert_allclose(value_targets, expected["value_targets"], rtol=0, atol=tolerance)
    if "reported_rewards" in expected:
        np.testing.assert_array_equal(rewards, expected["reported_rewards"])
    for name, wrong in case.get("wrong_values", {}).items():
        if name != "reported_rewards":
            assert not np.allclose(advantages, wrong, rtol=0, atol=tolerance), name


@pytest.mark.parametrize("case", cases("autoreset"))
def test_reset_rows_of_next_step_environments_are_dropped(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    values = np.array(inputs["values"])
    valid = flags([1, 1, 0, 1, 1])
    assert np.flatnonzero(valid).tolist() == expected["valid_rows"]
    advantages, _ = generalized_advantage_estimation(
        np.array(inputs["rewards"]),
        values,
        np.append(values[1:], inputs["last_value"]),
        flags(inputs["terminated"]),
        flags(inputs["truncated"]),
        inputs["gamma"],
        inputs["lam"],
        valid,
    )
    np.testing.assert_allclose(
        advantages[valid], expected["advantages_on_valid_rows"], rtol=0, atol=case["tolerance"]
    )
    assert advantages[2] == 0.0
    assert valid.sum() != case["wrong_values"]["number_of_rows_used"]


@pytest.mark.parametrize("case", selected("returns", "RET-01"))
def test_discounted_returns_restart_at_every_end(case: Case) -> None:
    inputs = case["inputs"]
    returns = discounted_returns(
        np.array(inputs["rewards"]),
        flags(inputs["terminated"]),
        flags(inputs["truncated"]),
        np.array(inputs["bootstrap"], dtype=np.float64),
        inputs["gamma"],
    )
    np.testing.assert_allclose(returns, case["expected"]["returns"], rtol=0, atol=case["tolerance"])


@pytest.mark.parametrize("case", selected("returns", "RET-02"))
def test_running_returns_are_cleared_at_every_end(case: Case) -> None:
    inputs = case["inputs"]
    tracker, never = ReturnTracker(1, inputs["gamma"]), flags([0])
    running = [
        tracker.update(np.array([reward]), never, flags([end]), flags([1])).item()
        for reward, end in zip(inputs["rewards"], inputs["ends"], strict=True)
    ]
    np.testing.assert_allclose(running, case["expected"]["running_returns"], rtol=0, atol=case["tolerance"])
    assert running != pytest.approx(case["wrong_values"]["running_returns"])


@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    ends=st.lists(st.sampled_from(["terminated", "truncated"]), min_size=4, max_size=4),
    gamma=st.floats(0, 1),
    lam=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_joined_episodes_equal_split_ones(
    lengths: list[int], ends: list[str], gamma: float, lam: float, seed: int
) -> None:
    total = sum(lengths)
    rewards, values, next_values = np.random.default_rng(seed).normal(size=(3, total))
    terminated, truncated = np.zeros(total, np.bool_), np.zeros(total, np.bool_)
    stops = np.cumsum(lengths)
    for stop, end in zip(stops, ends, strict=False):
        (terminated if end == "terminated" else truncated)[stop - 1] = True

    joined, joined_targets = generalized_advantage_estimation(
        rewards, values, next_values, terminated, truncated, gamma, lam
    )
    joined_returns = discounted_returns(rewards, terminated, truncated, next_values, gamma)
    for stop, length in zip(stops, lengths, strict=True):
        one = slice(stop - length, stop)
        alone, targets = generalized_advantage_estimation(
            rewards[one], values[one], next_values[one], terminated[one], truncated[one], gamma, lam
        )
        np.testing.assert_array_equal(joined[one], alone)
        np.testing.assert_array_equal(joined_targets[one], targets)
        alone_returns = discounted_returns(
            rewards[one], terminated[one], truncated[one], next_values[one], gamma
        )
        np.testing.assert_array_equal(joined_returns[one], alone_returns)


def test_columns_are_independent_of_each_other() -> None:
    rng = np.random.default_rng(0)
    rewards, values, next_values = rng.normal(size=(3, 7, 3))
    terminated, truncated = rng.random((2, 7, 3)) < 0.2
    together, _ = generalized_advantage_estimation(
        rewards, values, next_values, terminated, truncated, 0.9, 0.8
    )
    for n in range(3):
        alone, _ = generalized_advantage_estimation(
            rewards[:, n], values[:, n], next_values[:, n], terminated[:, n], truncated[:, n], 0.9, 0.8
        )
        np.testing.assert_array_equal(together[:, n], alone)


def test_lambda_of_one_is_the_discounted_return_less_the_value() -> None:
    rng = np.random.default_rng(1)
    rewards, values = rng.normal(size=(2, 6))
    next_values = np.append(values[1:], 0.7)
    none = np.zeros(6, np.bool_)
    advantages, _ = generalized_advantage_estimation(rewards, values, next_values, none, none, 0.9, 1.0)
    np.testing.assert_allclose(
        advantages + values, discounted_returns(rewards, none, none, next_values, 0.9), atol=1e-12
    )


def test_a_value_at_a_termination_is_never_read() -> None:
    advantages, _ = generalized_advantage_estimation(
        np.array([1.0]), np.array([0.5]), np.array([np.nan]), flags([1]), flags([0]), 0.9, 0.95
    )
    assert advantages.tolist() == [0.5]


def test_termination_wins_where_both_flags_are_set() -> None:
    returns = discounted_returns(np.array([1.0]), flags([1]), flags([1]), np.array([100.0]), 0.9)
    assert returns.tolist() == [1.0]


def test_a_fragment_without_steps_has_no_advantages() -> None:
    empty, none = np.zeros((0, 2)), np.zeros((0, 2), np.bool_)
    advantages, targets = generalized_advantage_estimation(empty, empty, empty, none, none, 0.9, 0.9)
    assert advantages.shape == targets.shape == (0, 2)


def trajectories(valid: list[list[int]], reward_scale: float = 1.0) -> Trajectories:
    """Two steps of two sub-environments, of which the first terminates in its first step."""
    shape = (2, 2)
    return read_only(
        Trajectories(
            observations=np.arange(8, dtype=np.float32).reshape(2, 2, 2),
            actions=np.arange(4).reshape(shape),
            log_probs=np.full(shape, -0.5, np.float32),
            values=np.zeros(shape, np.float32),
            next_values=np.zeros(shape, np.float32),
            rewards=np.array([[1.0, 2.0], [3.0, 4.0]], np.float32),
            reward_scale=np.full(2, reward_scale, np.float32),
            terminated=np.array([[True, False], [False, False]]),
            truncated=np.zeros(shape, np.bool_),
            valid=np.array(valid, np.bool_),
            final_observations=np.zeros((1, 2), np.float32),
            final_rows=np.array([0]),
            last_observations=np.zeros((2, 2), np.float32),
            initial_state=np.zeros((2, 0), np.float32),
            version=3,
            episodes=EpisodeStats(np.array([5.0]), np.array([2])),
            observation_moments=Moments.empty((2,)),
        )
    )


def test_the_stage_keeps_the_valid_rows_and_what_travels_with_them() -> None:
    rows = gae(0.5, 1.0)(trajectories([[1, 1], [0, 1]]))
    assert isinstance(rows, Advantages)
    assert rows.steps == 3
    assert rows.observations.tolist() == [[0, 1], [2, 3], [6, 7]]
    assert rows.actions.tolist() == [0, 1, 3]
    assert rows.advantages.tolist() == [1.0, 4.0, 4.0]
    assert rows.advantages.dtype == rows.value_targets.dtype == np.float32
    assert (rows.version, rows.episodes.mean_return) == (3, 5.0)
    assert rows.observation_moments is not None


def test_the_stage_scales_rewards() -> None:
    rows = gae(0.5, 1.0)(trajectories([[1, 1], [1, 1]], reward_scale=0.1))
    np.testing.assert_allclose(rows.advantages, [0.1, 0.4, 0.3, 0.4], rtol=1e-6)


@pytest.mark.parametrize(("gamma", "lam"), [(1.1, 0.9), (0.9, -0.1)])
def test_the_stage_refuses_a_factor_outside_of_0_and_1(gamma: float, lam: float) -> None:
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        gae(gamma, lam)


def test_rows_of_a_policy_with_memory_stand_sequence_by_sequence() -> None:
    fragment = replace(trajectories([[1, 1], [1, 1]]), initial_state=np.array([[0.5], [0.25]], np.float32))
    rows = gae(0.5, 1.0)(fragment)
    assert rows.actions.tolist() == [0, 2, 1, 3]  # column by column
    assert rows.advantages.tolist() == [1.0, 3.0, 4.0, 4.0]
    assert rows.sequences is not None
    assert rows.sequences.lengths.tolist() == [1, 1, 2]  # the first column's episode ends in its first step
    assert rows.sequences.states.tolist() == [[0.5], [0.0], [0.25]]


def test_a_sequence_has_no_reset_rows() -> None:
    fragment = trajectories([[1, 0], [0, 1]])
    rows = gae(0.5, 1.0)(replace(fragment, initial_state=np.ones((2, 3), np.float32)))
    assert rows.actions.tolist() == [0, 3]
    assert rows.sequences is not None
    assert rows.sequences.lengths.tolist() == [1, 1]
    # The second column begins with a reset, behind which nothing is remembered.
    assert rows.sequences.states.tolist() == [[1.0] * 3, [0.0] * 3]


def test_without_memory_there_are_no_sequences() -> None:
    assert gae()(trajectories([[1, 1], [0, 1]])).sequences is None
