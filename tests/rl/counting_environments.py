"""Environments whose every number can be foretold, and how tests run them.

Apart from the tests, since several of their modules use the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from pipeflow.rl.environments import EnvStep, VectorEnvironment
from pipeflow.rl.episodes import EpisodeStats, EpisodeTracker


class Counting(gymnasium.Env[Any, Any]):
    """Observes (episode, step), both from 0; each step's reward is 1.

    lengths: of the episodes in turn, the last one repeating. ends: "terminated" or "truncated".
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # gymnasium declares it on the instance

    def __init__(self, lengths: Sequence[int] = (3,), ends: str = "terminated") -> None:
        self.observation_space = spaces.Box(0.0, 1e6, (2,))
        self.action_space = spaces.Discrete(2)
        self._lengths, self._ends = lengths, ends
        self._episode, self._step = -1, 0

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._episode, self._step = self._episode + 1, 0
        return self._observation(), {}

    @override
    def step(self, action: Any) -> Any:
        self._step += 1
        length = self._lengths[min(self._episode, len(self._lengths) - 1)]
        end = self._step == length
        terminated, truncated = end and self._ends == "terminated", end and self._ends == "truncated"
        return self._observation(), 1.0, terminated, truncated, {}

    def _observation(self) -> Any:
        return np.array([self._episode, self._step], np.float32)


class Reusing(Counting):
    """Returns the same array from every call, overwritten."""

    def __init__(self, lengths: Sequence[int] = (3,), ends: str = "terminated") -> None:
        super().__init__(lengths, ends)
        self._array = np.zeros(2, np.float32)

    @override
    def _observation(self) -> Any:
        self._array[:] = (self._episode, self._step)
        return self._array


def no_action(environment: VectorEnvironment) -> NDArray[np.int64]:
    """Action 0 for each sub-environment."""
    return np.zeros(environment.num_envs, np.int64)


def play(environment: VectorEnvironment, steps: int) -> tuple[EpisodeStats, list[EnvStep]]:
    """Take `steps` steps from a reset: the episodes that ended, and what each step gave."""
    tracker = EpisodeTracker(environment.num_envs)
    environment.reset()
    taken = [environment.step(no_action(environment)) for _ in range(steps)]
    for step in taken:
        tracker.update(step.rewards, step.terminated, step.truncated, step.valid)
    return tracker.collect(), taken
