"""Environments whose agents come and go as a script says, and policies for them whose values can be foretold.

Apart from the tests, since several of their modules use the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from pipeflow.rl.batches import ActionArray, ObservationArray, Trajectories
from pipeflow.rl.multi_agent.batches import MultiAgentTrajectories
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker
from pipeflow.rl.policy import Acted, StateArray
from pipeflow.rl.spaces import ObservationCodec, observation_codec

OBSERVATION = spaces.Box(0.0, 1e6, (1,), np.float32)


@dataclass(frozen=True)
class Frame:
    """What a step says, by agent: numbers observed, rewards, and who ended."""

    observed: Mapping[str, float]
    rewards: Mapping[str, float] = field(default_factory=dict)
    terminated: Sequence[str] = ()
    truncated: Sequence[str] = ()


class Scripted:
    """Plays the same frames in every episode, the first at the reset, and keeps the actions that it is given."""

    def __init__(self, frames: Sequence[Frame], agents: Sequence[str] = ("a", "b")) -> None:
        self.possible_agents = list(agents)
        self.seeds: list[int | None] = []
        self.actions: list[dict[str, Any]] = []
        self._frames = frames
        self._next = 0

    def observation_space(self, agent: str, /) -> Space[Any]:
        return OBSERVATION

    def action_space(self, agent: str, /) -> Space[Any]:
        return spaces.Discrete(2)

    def reset(self, *, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.seeds.append(seed)
        self._next = 1
        return _observations(self._frames[0]), {}

    def step(self, actions: dict[str, Any], /) -> Any:
        self.actions.append(actions)
        frame = self._frames[self._next]
        self._next += 1
        terminated = dict.fromkeys(frame.terminated, True)
        truncated = dict.fromkeys(frame.truncated, True)
        return _observations(frame), dict(frame.rewards), terminated, truncated, {}

    def close(self) -> None:
        pass


def _observations(frame: Frame) -> dict[str, NDArray[np.float32]]:
    return {agent: np.full(1, number, np.float32) for agent, number in frame.observed.items()}


class Tenfold:
    """Values every observation at ten times its number, and counts in its state how often an agent acted."""

    def act(self, observations: ObservationArray, state: StateArray, generator: np.random.Generator) -> Acted:
        count = len(observations)
        return Acted(
            np.ones(count, np.int64),
            np.full(count, -0.5, np.float32),
            self.value(observations, state),
            state + 1,
        )

    def greedy(self, observations: ObservationArray, state: StateArray) -> tuple[ActionArray, StateArray]:
        return np.ones(len(observations), np.int64), state + 1

    def value(self, observations: ObservationArray, state: StateArray) -> NDArray[np.float32]:
        # The state shows after the point, so that a state that is behind or ahead shows as well.
        return (10 * observations[:, 0] + state[:, 0] / 10).astype(np.float32)

    def parameters_numpy(self) -> dict[str, NDArray[np.generic]]:
        return {}

    def load_numpy(self, parameters: Mapping[str, NDArray[np.generic]]) -> None:
        pass


@dataclass(frozen=True)
class TenfoldSpec:
    """Describes `Tenfold`."""

    observations: ObservationCodec = field(default_factory=lambda: observation_codec(OBSERVATION))
    state_width: int = 1

    def build(self, seed: int, device: str = "cpu") -> Tenfold:
        return Tenfold()


def all_shared(agent: str) -> str:
    """One policy for all agents."""
    return "shared"


def by_name(agent: str) -> str:
    """A policy for each agent, of its name."""
    return agent


def spec(frames: Sequence[Frame], agents: Sequence[str] = ("a", "b")) -> MultiAgentEnvSpec:
    """The description of a scripted environment."""
    return MultiAgentEnvSpec(Scripted, {"frames": frames, "agents": agents})


def tenfold(policy_of: Callable[[str], str], *policies: str) -> PolicyMap:
    """A `Tenfold` under each of these ids."""
    return PolicyMap({policy: TenfoldSpec() for policy in policies}, policy_of)


def worker(frames: Sequence[Frame], fragment_length: int, num_envs: int = 1) -> MultiAgentWorker:
    """A worker whose agents "a" and "b" share a policy, so that column 0 is a's and column 1 b's."""
    policies = tenfold(all_shared, "shared")
    return MultiAgentWorker(spec(frames), policies, num_envs=num_envs, fragment_length=fragment_length)


def shared(trajectories: MultiAgentTrajectories) -> Trajectories:
    """The experience of the shared policy."""
    return trajectories.by_policy["shared"]


def rows(trajectories: Trajectories, column: int) -> list[tuple[float, float, float, str]]:
    """One column's rows: what was observed, the reward, the true next observation, and t or c where it ended."""
    following = trajectories.next_observations()
    return [
        (
            float(trajectories.observations[t, column, 0]),
            float(trajectories.rewards[t, column]),
            float(following[t, column, 0]),
            "t" * bool(trajectories.terminated[t, column]) + "c" * bool(trajectories.truncated[t, column]),
        )
        for t in range(len(trajectories.rewards))
        if trajectories.valid[t, column]
    ]
