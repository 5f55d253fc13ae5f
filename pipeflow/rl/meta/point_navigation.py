"""A point in the plane that walks to a goal it cannot see: the smallest family of tasks that asks for adaptation.

The policy sees its own position alone, so without trying it cannot know the task; what it earned near the goal
tells. Registered with gymnasium as `POINT_NAVIGATION`, single and vectorised: a hundred points cost as much as
one. Source: Finn et al., "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks" (2017), section
5.3, there with actions that are the velocity itself, clipped to [-0.1, 0.1].
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from typing_extensions import override

Points = NDArray[np.float32]

POINT_NAVIGATION = f"{__name__}:pipeflow/PointNavigation-v0"
"""The id of the environment, with the module that registers it."""

_STEP = 0.1  # the largest step along either axis
_ARRIVED = 0.01  # so near the goal an episode ends


class PointNavigation(gymnasium.Env[Points, Points]):
    """One point, which starts in the origin.

    Observations: [2] float32, the position. Actions: [2] float32 in [-1, 1], the step in units of 0.1. Rewards:
    minus the squared distance to the goal after the step. An episode terminates within 0.01 of the goal, and is
    truncated after `horizon` steps.
    goal_x, goal_y: the task; Finn et al. draw either from [-0.5, 0.5].
    """

    def __init__(self, goal_x: float = 0.5, goal_y: float = 0.5, horizon: int = 100) -> None:
        self.observation_space, self.action_space = _spaces()
        self._points = PointNavigationVector(1, goal_x, goal_y, horizon)

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Points, dict[str, Any]]:
        """Back to the origin."""
        super().reset(seed=seed)
        return self._points.reset()[0][0], {}

    @override
    def step(self, action: Points) -> tuple[Points, float, bool, bool, dict[str, Any]]:
        """Walk one step."""
        observations, rewards, terminated, truncated, infos = self._points.step(np.asarray(action)[None])
        last = infos.get("final_obs", observations)
        return last[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), {}


class PointNavigationVector(VectorEnv[Points, Points, NDArray[np.generic]]):
    """As many independent points as asked for, all of one task: see `PointNavigation`."""

    def __init__(self, num_envs: int, goal_x: float = 0.5, goal_y: float = 0.5, horizon: int = 100) -> None:
        if horizon < 1:
            raise ValueError(f"horizon must be at least 1, got {horizon}")
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._goal = np.array([goal_x, goal_y], np.float32)
        self._horizon = horizon
        self._positions = np.zeros((num_envs, 2), np.float32)
        self._steps = np.zeros(num_envs, np.int64)

    @override
    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Points, dict[str, Any]]:
        """All points back to the origin."""
        self._positions = np.zeros_like(self._positions)
        self._steps = np.zeros_like(self._steps)
        return self._positions, {}

    @override
    def step(
        self, actions: Points
    ) -> tuple[Points, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Every point walks one step; those whose episode ends are back in the origin at once."""
        positions = self._positions + np.float32(_STEP) * np.clip(actions, -1.0, 1.0, dtype=np.float32)
        squared = np.square(positions - self._goal).sum(axis=1)
        self._steps = self._steps + 1
        terminated = squared < _ARRIVED**2
        truncated = (self._steps >= self._horizon) & ~terminated
        ended = terminated | truncated
        infos: dict[str, Any] = {}
        self._positions = positions
        if ended.any():
            infos["final_obs"] = positions
            self._positions = np.where(ended[:, None], np.float32(0.0), positions)
            self._steps[ended] = 0
        return self._positions, -squared, terminated, truncated, infos


def _spaces() -> tuple[Box[np.float32], Box[np.float32]]:
    return Box(-np.inf, np.inf, (2,), np.float32), Box(-1.0, 1.0, (2,), np.float32)


gymnasium.register(
    id=POINT_NAVIGATION.partition(":")[2],
    entry_point=f"{__name__}:PointNavigation",
    vector_entry_point=f"{__name__}:PointNavigationVector",
)
