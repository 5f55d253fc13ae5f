"""CartPole for several agents, each with a cart and a pole of its own: the task of the two-trainer example.

Apart from the environments' protocol, of which this is one example. Agents leave at different times, when their
poles fall, and may come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Env, Space
from gymnasium.envs.classic_control import CartPoleEnv
from numpy.typing import NDArray

from pipeflow.rl.seeding import derive_seed

_SEED_BOUND = 2**31

MULTI_AGENT_CARTPOLE = f"{__name__}:MultiAgentCartPole"
"""Its name, which configurations that are saved hold."""


class MultiAgentCartPole:
    """Agents "0", "1", ... that balance poles independently, with CartPole-v1's dynamics and rewards.

    agents: how many. time_limit: of its own steps, after which an agent is truncated. returning: whether an
    agent that ended begins anew one step later, so that all keep learning however different their skills are;
    without it, it is gone until the others have ended as well.
    """

    def __init__(self, agents: int = 2, time_limit: int = 500, *, returning: bool = False) -> None:
        if agents < 1 or time_limit < 1:
            raise ValueError(f"agents and time_limit must be at least 1, got {agents} and {time_limit}")
        self._carts: dict[str, Env[NDArray[np.float32], Any]] = {
            str(agent): CartPoleEnv() for agent in range(agents)
        }
        self._time_limit = time_limit
        self._returning = returning
        # The steps that each agent which is there has taken.
        self._times: dict[str, int] = {}

    @property
    def possible_agents(self) -> Sequence[str]:
        """The agents' names."""
        return list(self._carts)

    def observation_space(self, agent: str, /) -> Space[Any]:
        """Position, velocity, angle, and angular velocity, as in CartPole-v1."""
        return self._carts[agent].observation_space

    def action_space(self, agent: str, /) -> Space[Any]:
        """Push to the left or to the right."""
        return self._carts[agent].action_space

    def reset(self, *, seed: int | None = None) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """Set up all poles. seed: each agent gets a stream of its own from it; None goes on with theirs."""
        self._times = dict.fromkeys(self._carts, 0)
        observations = {}
        for agent, cart in self._carts.items():
            own = None if seed is None else derive_seed(seed, agent) % _SEED_BOUND
            observations[agent], _ = cart.reset(seed=own)
        return observations, {}

    def step(
        self, actions: Mapping[str, Any], /
    ) -> tuple[
        dict[str, NDArray[np.float32]], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]
    ]:
        """Push the carts of all agents that are still there."""
        observations: dict[str, NDArray[np.float32]] = {}
        rewards: dict[str, float] = {}
        terminated: dict[str, bool] = {}
        truncated: dict[str, bool] = {}
        for agent, cart in self._carts.items():
            if agent in self._times:
                self._times[agent] += 1
                observations[agent], reward, terminated[agent], _, _ = cart.step(actions[agent])
                rewards[agent] = float(reward)
                truncated[agent] = self._times[agent] >= self._time_limit and not terminated[agent]
                if terminated[agent] or truncated[agent]:
                    del self._times[agent]
            elif self._returning:
                self._times[agent] = 0
                observations[agent], _ = cart.reset()
        return observations, rewards, terminated, truncated, {}

    def close(self) -> None:
        """Nothing is held."""
