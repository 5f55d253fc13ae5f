"""The linear baseline: what it can predict leaves no advantage, and ends of episodes restart returns and time."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeflow.rl.batches import Trajectories
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.meta.baseline import advantages_over_baseline, fitted_values


def trajectories(
    rewards: NDArray[np.float32],
    terminated: NDArray[np.bool_] | None = None,
    valid: NDArray[np.bool_] | None = None,
) -> Trajectories:
    steps, envs = rewards.shape
    rows = np.arange(steps * envs, dtype=np.float32).reshape(steps, envs)
    ended = np.zeros((steps, envs), np.bool_) if terminated is None else terminated
    return Trajectories(
        observations=np.zeros((steps, envs, 1), np.float32),
        actions=rows[..., None],
        log_probs=rows,
        values=np.full((steps, envs), np.nan, np.float32),
        next_values=np.full((steps, envs), np.nan, np.float32),
        rewards=rewards,
        reward_scale=np.ones(envs, np.float32),
        terminated=ended,
        truncated=np.zeros((steps, envs), np.bool_),
        valid=np.ones((steps, envs), np.bool_) if valid is None else valid,
        final_observations=np.zeros((np.count_nonzero(ended), 1), np.float32),
        final_rows=np.flatnonzero(ended),
        last_observations=np.zeros((envs, 1), np.float32),
        initial_state=np.zeros((envs, 0), np.float32),
        version=7,
        episodes=EpisodeStats(np.array([1.0]), np.array([2])),
    )


def test_value_targets_are_returns_to_go_within_the_rollouts() -> None:
    rewards = np.array([[1.0], [2.0], [4.0]], np.float32)
    rows = advantages_over_baseline(trajectories(rewards), gamma=0.5)
    assert rows.value_targets.tolist() == [1 + 0.5 * (2 + 0.5 * 4), 2 + 0.5 * 4, 4]
    np.testing.assert_allclose(rows.values + rows.advantages, rows.value_targets, rtol=1e-6)
    assert (rows.version, rows.episodes.mean_return) == (7, 1.0)


def test_returns_and_time_restart_with_the_episode() -> None:
    rewards = np.ones((6, 1), np.float32)
    ends = np.array([[False], [False], [True], [False], [False], [True]])
    rows = advantages_over_baseline(trajectories(rewards, ends), gamma=1.0)
    assert rows.value_targets.tolist() == [3, 2, 1, 3, 2, 1]
    # Linear in the time of the episode, hence foreseen but for the ridge; in that of the fragment not.
    np.testing.assert_allclose(rows.advantages, 0.0, atol=0.03)


def test_reset_rows_are_dropped() -> None:
    valid = np.array([[True, True], [False, True], [True, True]])
    ends = np.array([[True, False], [False, False], [False, False]])
    rows = advantages_over_baseline(trajectories(np.ones((3, 2), np.float32) * valid, ends, valid), gamma=1.0)
    assert rows.actions[:, 0].tolist() == rows.log_probs.tolist() == [0, 1, 3, 4, 5]
    assert rows.value_targets.tolist() == [1, 3, 2, 1, 1]


def test_what_is_linear_in_the_features_is_foreseen() -> None:
    rng = np.random.default_rng(0)
    observations, times = rng.normal(size=(200, 2)), rng.integers(0, 100, size=200)
    t = times / 100.0
    returns = 3.0 + observations @ [1.0, -2.0] + observations[:, 0] ** 2 - 4.0 * t + 5.0 * t**3
    np.testing.assert_allclose(fitted_values(observations, times, returns), returns, atol=1e-3)


def test_the_baseline_of_a_constant_is_the_constant_and_of_noise_its_mean() -> None:
    rng = np.random.default_rng(0)
    observations, times = np.zeros((4000, 1)), np.zeros(4000, np.int64)
    returns = rng.normal(2.0, 1.0, size=4000)
    assert fitted_values(observations, times, returns) == pytest.approx(returns.mean(), rel=1e-6)


def test_no_array_is_written_to() -> None:
    given = trajectories(np.ones((3, 2), np.float32))
    for array in (given.rewards, given.observations, given.actions, given.log_probs):
        array.setflags(write=False)
    advantages_over_baseline(given, gamma=0.9)
