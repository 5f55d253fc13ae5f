"""Environments of the tests of reports; naming one as `tests.faults.environments:ID` registers it.

In a module of their own, since Ray's workers, which know nothing of the driver's registrations, import it by name.
"""

from __future__ import annotations

from typing import Any, final

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from tests.faults.mortal import once


@final
class BrokenSimulatorError(Exception):
    """What an environment of the user's own raises."""


@final
class BrokenSimulator:
    """An actor whose environment is broken for good."""

    def sample(self) -> int:
        """Never a number."""
        message = "the simulator's licence has run out"
        raise BrokenSimulatorError(message)


class Telling(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Episodes of five steps of reward 1; observes the threads that torch has, and a number drawn at random."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1e6, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._steps: int | None = None

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._observation(), {}

    @override
    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        if self._steps is None:
            message = "stepped before it was reset"
            raise AssertionError(message)
        self._steps += 1
        return self._observation(), 1.0, self._steps == 5, False, {}

    def _observation(self) -> NDArray[np.float32]:
        return np.array([torch.get_num_threads(), self.np_random.random()], np.float32)


class Breaking(Telling):
    """Raises once in all runs that share a folder: `where` is "step", in the third one, or "reset"."""

    def __init__(self, folder: str, where: str) -> None:
        super().__init__()
        self._folder, self._where = folder, where

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        if self._where == "reset" and self._steps == 5:
            self._break()
        return super().reset(seed=seed, options=options)

    @override
    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        if self._where == "step" and self._steps == 2:
            self._break()
        return super().step(action)

    def _break(self) -> None:
        if once(self._folder, "broken"):
            message = "broken for a moment"
            raise BrokenSimulatorError(message)


gymnasium.register("Telling-v0", entry_point="tests.faults.environments:Telling")
gymnasium.register("Breaking-v0", entry_point="tests.faults.environments:Breaking")
