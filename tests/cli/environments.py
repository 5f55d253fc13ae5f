"""Environments for the command line's tests; `--env tests.cli.environments:Misbehaving-v0` registers them."""

from __future__ import annotations

import math
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override


class Misbehaving(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Fifteen steps of reward 1; after ten of them something is wrong, unless `fault` is "none".

    "slow": from its third episode on, a step takes a tenth of a second.
    """

    def __init__(self, fault: str = "none") -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._fault = fault
        self._time = 0
        self._episodes = 0

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._time = 0
        self._episodes += 1
        return np.zeros(3, np.float32), {}

    @override
    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self._time += 1
        observation, reward = np.zeros(3, np.float32), 1.0
        if self._fault == "slow" and self._episodes > 2:
            time.sleep(0.1)
        if self._time > 10:
            match self._fault:
                case "nan reward":
                    reward = math.nan
                case "nan observation":
                    observation = np.full(3, np.nan, np.float32)
                case "shape":
                    observation = np.zeros(4, np.float32)
                case "exception":
                    raise RuntimeError("the user's own mistake")
                case _:
                    pass
        return observation, reward, self._time == 15, False, {}


class Speechless(Misbehaving):
    """Its observations are texts, which no policy reads."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Text(5)  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]


gymnasium.register("Misbehaving-v0", entry_point="tests.cli.environments:Misbehaving")
gymnasium.register("Speechless-v0", entry_point="tests.cli.environments:Speechless")
