"""Sums of n rewards, as a pure numpy function, and the stage that makes transitions of trajectories with it.

Apart from `returns`, whose sums run on to the end of a fragment and are for one update only. Here a sum is
taken before its row is stored, while rows still lie in the order of time. A replay buffer then holds complete
rows, so no window can cross its write pointer, or its end, or an episode's.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeflow.dsl import Stage, stage
from pipeflow.rl.batches import Trajectories
from pipeflow.rl.replay_batches import Transitions

_Scalar = TypeVar("_Scalar", bound=np.generic)


def n_step_returns(
    rewards: NDArray[np.floating],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    n: int,
    gamma: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Discounted sums of up to n rewards, which end with the episode and with the fragment.

    rewards, terminated, truncated: [T] or [T, N]. n: at least 1. gamma: in [0, 1].
    Returns (sums float64, steps int64), shaped as the rewards: the target of row t is
    ``sums[t] + gamma**steps[t] * Q(next of row t + steps[t] - 1)``, without the second term where that row
    terminated. A truncation and the end of the fragment shorten the window and leave the second term.
    Source: Hessel et al., "Rainbow" (2018), multi-step learning; time limits as in Pardo et al., "Time Limits in
    Reinforcement Learning" (2018), section 3.
    """
    going_on = ~(terminated | truncated)
    sums = rewards.astype(np.float64)
    steps = np.ones(sums.shape, np.int64)
    reaches = np.ones(sums.shape, np.bool_)  # whether the window of row t still holds row t + k
    for k in range(1, min(n, len(sums))):
        reaches = reaches[:-1] & going_on[k - 1 : -1]
        sums[:-k] += np.where(reaches, gamma**k * rewards[k:], 0.0)
        steps[:-k] += reaches
    return sums, steps


def n_step(n: int = 1, gamma: float = 0.99) -> Stage[Trajectories, Transitions]:
    """The stage that makes a transition of every real step, with a sum of up to n rewards; reset rows are dropped.

    A window ends with its episode and with its fragment. Behind a termination nothing is bootstrapped; behind a
    truncation, the final observation; at the fragment's end, the one that the next fragment begins with.
    Rewards are scaled by the trajectories' `reward_scale`. n: at least 1. gamma: in [0, 1].
    Raises ValueError for an n or a gamma outside of that, and for trajectories whose observations were
    normalised: what is stored must not depend on statistics that move on.
    """
    if n < 1:
        raise ValueError(f"n_step needs n of at least 1, got {n}")
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"n_step needs gamma in [0, 1], got {gamma}")

    def n_step(trajectories: Trajectories) -> Transitions:
        return _transitions(trajectories, n, gamma)

    return stage(n_step)


def _transitions(trajectories: Trajectories, n: int, gamma: float) -> Transitions:
    if trajectories.observation_moments is not None:
        raise ValueError(
            "the observations were normalised by statistics of the moment, and replay would keep them for long; "
            "turn normalise_observations off"
        )
    # A column whose agent did not act to the fragment's end ends before it, and so do its windows.
    last_of_column = np.zeros_like(trajectories.valid)
    last_of_column[:-1] = ~trajectories.valid[1:]
    sums, steps = n_step_returns(
        trajectories.rewards * trajectories.reward_scale,
        trajectories.terminated,
        trajectories.truncated | last_of_column,
        n,
        gamma,
    )
    width = trajectories.rewards.shape[1]
    # Rows are numbered t * N + n, so the last row of a window lies whole vector steps further on.
    rows = np.flatnonzero(trajectories.valid)
    used = steps.reshape(-1)[rows]
    last = rows + (used - 1) * width
    return Transitions(
        observations=_flat(trajectories.observations)[rows],
        actions=_flat(trajectories.actions)[rows],
        rewards=sums.reshape(-1)[rows].astype(np.float32),
        next_observations=_flat(trajectories.next_observations())[last],
        terminated=trajectories.terminated.reshape(-1)[last],
        discounts=np.power(gamma, used).astype(np.float32),
        env_steps=trajectories.steps,
        episodes=trajectories.episodes,
    )


def _flat(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    return array.reshape(-1, *array.shape[2:])
