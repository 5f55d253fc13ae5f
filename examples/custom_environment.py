"""An environment class of your own, which needs no registration, and PPO on it.

python examples/custom_environment.py [updates]
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from typing_extensions import override

from pipeflow import take
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.rl.environments import EnvSpec

Observation = NDArray[np.float32]


class Corridor(gymnasium.Env[Observation, np.int64]):
    """Walk right to the end of a corridor; every step costs a little, the end pays."""

    def __init__(self, length: int = 8) -> None:
        self.observation_space = Box(0.0, 1.0, (1,), np.float32)
        self.action_space = Discrete(2)
        self._length = length
        self._position = 0

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._position = 0
        return self._observed(), {}

    @override
    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._position = max(0, self._position + (1 if action == 1 else -1))
        done = self._position == self._length
        return self._observed(), 1.0 if done else -0.05, done, False, {}

    def _observed(self) -> Observation:
        return np.array([self._position / self._length], np.float32)


def main(updates: int) -> None:
    config = PPOConfig(env=EnvSpec(Corridor, {"length": 8}), workers=2, seed=1)
    for report in (ppo(config) | take(updates)).run():
        played = report.episodes
        print(f"mean return {played.mean_return:6.2f}, mean length {played.mean_length:5.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
