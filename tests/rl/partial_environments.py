"""Environments that show a part of their state, and what their best returns are.

Apart from the tests, since those of policies, of the plan and of its learning use the same ones.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

Bits = NDArray[np.float32]
Masked = dict[str, NDArray[np.generic]]


class Recall(gymnasium.Env[Bits, np.int64]):
    """Shows one of two cues in the first step; `delay` blank steps later, naming it earns 1, any else -1.

    Observes [cue 0, cue 1, "name it now"]. Without memory every policy's mean return is 0, with it 1 can be had.
    """

    def __init__(self, delay: int = 4) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (3,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._delay, self._step, self._cue = delay, 0, 0

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Bits, Any]:
        super().reset(seed=seed)
        self._step, self._cue = 0, int(self.np_random.integers(2))
        return self._seen(), {}

    @override
    def step(self, action: np.int64) -> tuple[Bits, float, bool, bool, Any]:
        self._step += 1
        if self._step <= self._delay:
            return self._seen(), 0.0, False, False, {}
        return self._seen(), 1.0 if action == self._cue else -1.0, True, False, {}

    def _seen(self) -> Bits:
        seen = np.zeros(3, np.float32)
        seen[self._cue] = self._step == 0
        seen[2] = self._step == self._delay
        return seen


class Positions(gymnasium.ObservationWrapper[Bits, np.int64, Bits]):
    """CartPole-v1 without its velocities: a cart's position and a pole's angle."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)

    @override
    def observation(self, observation: Bits) -> Bits:
        return observation[::2]


class Forbidding(gymnasium.Env[Masked, np.int64]):
    """Allows one random action but the last in each step, and raises for any other.

    After `length` steps the episode ends in a state that allows none.
    """

    def __init__(self, actions: int = 4, length: int = 5) -> None:
        # Any: a Dict's parts are of several kinds, and gymnasium's type for that is not the type of a batch.
        self.observation_space: spaces.Space[Any] = spaces.Dict(
            {
                "action_mask": spaces.MultiBinary(actions),
                "observation": spaces.Box(-1.0, 1.0, (2,), np.float32),
            }
        )
        self.action_space = spaces.Discrete(actions)
        self._length, self._step = length, 0
        self._mask = np.zeros(actions, np.int8)

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Masked, Any]:
        super().reset(seed=seed)
        self._step = 0
        return self._seen(), {}

    @override
    def step(self, action: np.int64) -> tuple[Masked, float, bool, bool, Any]:
        if not self._mask[action]:
            raise ValueError(f"action {action} is not allowed by {self._mask}")
        self._step += 1
        return self._seen(), float(action), self._step == self._length, False, {}

    def _seen(self) -> Masked:
        self._mask[:] = 0
        if self._step < self._length:
            self._mask[self.np_random.integers(len(self._mask), size=2)] = 1
        return {
            "action_mask": self._mask,
            "observation": self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32),
        }
