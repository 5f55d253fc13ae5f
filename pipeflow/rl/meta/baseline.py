"""Advantages over a baseline that is fitted to the very rollouts it judges, so that a new task needs no critic.

Apart from `pipeflow.rl.returns`, whose advantages need a value function: a value network has seen other tasks,
not the one just drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.batches import Advantages, Trajectories
from pipeflow.rl.returns import discounted_returns

_RIDGE = 1e-5  # weight of the penalty, as in Duan et al.
_TIME_UNIT = 100.0  # in steps, which keeps the powers of time near 1


def advantages_over_baseline(trajectories: Trajectories, gamma: float) -> Advantages:
    """Rows with the discounted reward to go, less what a linear baseline predicts of it.

    The objective is the return within the rollouts: what lies behind their last step, or behind a truncation,
    counts as nothing, since no value function could say more. The `values` of the result are the baseline's
    predictions. Reset rows are dropped. gamma: discount, in [0, 1].
    """
    rewards = trajectories.rewards * trajectories.reward_scale
    returns = discounted_returns(
        rewards, trajectories.terminated, trajectories.truncated, np.zeros_like(rewards), gamma
    )
    keep = trajectories.valid.reshape(-1)
    observations = trajectories.observations.reshape(-1, *trajectories.observations.shape[2:])[keep]
    targets = returns.reshape(-1)[keep]
    times = _episode_times(trajectories).reshape(-1)[keep]
    values = fitted_values(observations, times, targets)
    return Advantages(
        observations=observations,
        actions=trajectories.actions.reshape(-1, *trajectories.actions.shape[2:])[keep],
        log_probs=trajectories.log_probs.reshape(-1)[keep],
        values=values.astype(np.float32),
        advantages=(targets - values).astype(np.float32),
        value_targets=targets.astype(np.float32),
        version=trajectories.version,
        episodes=trajectories.episodes,
    )


def fitted_values(
    observations: NDArray[np.number], times: NDArray[np.integer], returns: NDArray[np.floating]
) -> NDArray[np.float64]:
    """What a ridge regression on observation and time makes of the returns that it was fitted to.

    The features are the observation, its square, time, its square and cube, and a constant.
    observations: [B, D]. times: [B], steps since the episode began. returns: [B].
    Returns [B].
    Source: Duan et al., "Benchmarking Deep Reinforcement Learning for Continuous Control" (2016), supplementary
    materials, section 2.
    """
    observed = observations.astype(np.float64)
    time = times.astype(np.float64)[:, None] / _TIME_UNIT
    features = np.concatenate([observed, observed**2, time, time**2, time**3, np.ones_like(time)], axis=1)
    normal = features.T @ features + _RIDGE * np.eye(features.shape[1])
    coefficients = np.linalg.solve(normal, features.T @ returns.astype(np.float64))
    return np.asarray(features @ coefficients, np.float64)


def _episode_times(trajectories: Trajectories) -> NDArray[np.int64]:
    """Steps since the beginning of the episode, or of the rollouts, [T, N]."""
    times = np.zeros(trajectories.rewards.shape, np.int64)
    restarts = trajectories.restarts()
    for t in range(1, len(times)):
        times[t] = np.where(restarts[t], 0, times[t - 1] + 1)
    return times
