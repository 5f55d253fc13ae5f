"""Returns and advantages from rewards and values, as pure numpy functions, and the stage that applies them.

Apart from the losses, which are torch and need gradients: these targets are constants, and are computed where
the data are, inside the workers. `terminated` and `truncated` do two jobs and are never merged: a termination
zeroes the bootstrap, either one cuts the chain of sums, and the end of a fragment does neither.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeflow.dsl import Stage, stage
from pipeflow.rl.batches import Advantages, Sequences, Trajectories

_Scalar = TypeVar("_Scalar", bound=np.generic)


def generalized_advantage_estimation(
    rewards: NDArray[np.floating],
    values: NDArray[np.floating],
    next_values: NDArray[np.floating],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    gamma: float,
    lam: float,
    valid: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Advantages and value targets of one fragment.

    rewards, values, terminated, truncated: [T] or [T, N]. next_values: the same, V of the true next
    observation, used as given; it may be anything where `terminated`. gamma, lam: in [0, 1]. valid: the same
    shape, False for reset rows, which get an advantage of zero and reach no other row, because the done
    before them has cut the chain.
    Returns (advantages, value_targets), float64, shaped as the rewards; targets are advantages + values.
    Source: Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation"
    (2016), equation 16; time limits as in Pardo et al., "Time Limits in Reinforcement Learning" (2018),
    section 3.
    """
    # np.where and not a product: what stands in next_values at a termination may be nan.
    bootstrap = np.where(terminated, 0.0, next_values.astype(np.float64))
    baseline = values.astype(np.float64)
    deltas = rewards.astype(np.float64) + gamma * bootstrap - baseline
    decay = np.where(terminated | truncated, 0.0, gamma * lam)
    if valid is not None:
        deltas, decay = np.where(valid, deltas, 0.0), np.where(valid, decay, 0.0)
    advantages = backward_sums(deltas, decay)
    return advantages, advantages + baseline


def discounted_returns(
    rewards: NDArray[np.floating],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    bootstrap: NDArray[np.floating],
    gamma: float,
) -> NDArray[np.float64]:
    """Discounted reward to go, which restarts at the end of every episode.

    rewards, terminated, truncated: [T] or [T, N]. bootstrap: the same shape, V of the true next observation
    where the episode was truncated and in the last row; not read elsewhere. gamma: in [0, 1].
    Returns float64, shaped as the rewards.
    """
    cut = terminated | truncated
    cut_or_last = cut.copy()
    cut_or_last[-1:] = True
    tail = np.where(cut_or_last & ~terminated, bootstrap.astype(np.float64), 0.0)
    return backward_sums(rewards.astype(np.float64) + gamma * tail, np.where(cut, 0.0, gamma))


def gae(gamma: float = 0.99, lam: float = 0.95) -> Stage[Trajectories, Advantages]:
    """The stage that turns trajectories into rows with advantages and value targets; reset rows are dropped.

    Where the policy has a memory, the rows stand sequence by sequence, and a sequence ends with its episode or
    with the fragment. Rewards are scaled by the trajectories' `reward_scale` first. Sums are taken in float64, the
    rows are float32. gamma: discount, lam: the trade of bias for variance; both in [0, 1].
    Raises ValueError if either lies outside.
    """
    for name, value in (("gamma", gamma), ("lam", lam)):
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"gae needs {name} in [0, 1], got {value}")

    def gae(trajectories: Trajectories) -> Advantages:
        return _rows_with_advantages(trajectories, gamma, lam)

    return stage(gae)


def backward_sums(terms: NDArray[np.float64], decay: NDArray[np.float64]) -> NDArray[np.float64]:
    """y[t] = terms[t] + decay[t] * y[t + 1], with y[T] = 0; terms, decay: [T] or [T, N]."""
    sums = np.empty((len(terms), terms[0].size if len(terms) else 1))
    rows, factors = terms.reshape(sums.shape), decay.reshape(sums.shape)
    carry = np.zeros(sums.shape[1])
    for t in range(len(sums) - 1, -1, -1):
        carry *= factors[t]
        carry += rows[t]
        sums[t] = carry
    return sums.reshape(terms.shape)


def _rows_with_advantages(trajectories: Trajectories, gamma: float, lam: float) -> Advantages:
    valid = trajectories.valid
    advantages, value_targets = generalized_advantage_estimation(
        trajectories.rewards * trajectories.reward_scale,
        trajectories.values,
        trajectories.next_values,
        trajectories.terminated,
        trajectories.truncated,
        gamma,
        lam,
        valid,
    )
    sequences: Sequences | None = None
    if trajectories.initial_state.shape[1]:
        sequences = _sequences(trajectories)

    def rows(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
        if sequences is not None:  # sequence by sequence, so column by column
            return array.swapaxes(0, 1)[valid.T]
        # Where every row counts, flattening is a view; a boolean index copies.
        return array.reshape(-1, *array.shape[2:]) if valid.all() else array[valid]

    return Advantages(
        observations=rows(trajectories.observations),
        actions=rows(trajectories.actions),
        log_probs=rows(trajectories.log_probs),
        values=rows(trajectories.values),
        advantages=rows(advantages.astype(np.float32)),
        value_targets=rows(value_targets.astype(np.float32)),
        version=trajectories.version,
        episodes=trajectories.episodes,
        observation_moments=trajectories.observation_moments,
        return_moments=trajectories.return_moments,
        sequences=sequences,
    )


def _sequences(trajectories: Trajectories) -> Sequences:
    """The valid rows of each column, cut at the ends of episodes, column by column."""
    valid = trajectories.valid.T
    begins = trajectories.restarts().T
    begins[:, :1] = True
    begins &= valid
    columns, times = np.nonzero(begins)
    # Only the fragment's first row has a state that is not zero: it goes on with an episode.
    states = np.where((times == 0)[:, None], trajectories.initial_state[columns], np.float32(0.0))
    starts = np.flatnonzero(begins[valid])
    return Sequences(np.diff(starts, append=np.count_nonzero(valid)), states)
