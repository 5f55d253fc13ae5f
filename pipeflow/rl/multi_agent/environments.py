"""One environment with several agents: what it must offer, how it is described, and what is checked.

Apart from `vector`, which runs several copies and knows of policies. There is one protocol, and PettingZoo's
parallel API fulfils it as it is; so does any class with dictionaries by agent. What an environment does wrong
is reported here with the agent's name, before its numbers are put into an array with others'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from pipeflow.rl.environment_state import UnsavableEnvironment, environment_state, load_environment_state
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.single_environments import (
    BadEnvironment,
    UnknownEnvironment,
    environment_name,
    observation_fault,
)
from pipeflow.rl.spaces import ActionCodec, ObservationCodec, action_codec, observation_codec
from pipeflow.state.values import StateValue, prefixed, saved_array, saved_number, under

ByAgent: TypeAlias = "Mapping[str, Any]"
"""A value for each of some agents. Any: observations, actions and infos are of the environment's own types."""

# Environments that seed numpy's legacy generator refuse larger seeds.
_SEED_BOUND = 2**31


class MultiAgentEnvironment(Protocol):
    """PettingZoo's parallel API, in the part that is needed; agents are named by strings.

    An agent acts if the last reset or step observed it and did not end it. One that is left out of the
    observations is skipped: it does not act, and what it earns meanwhile belongs to its last action. One that is
    terminated or truncated is gone, until it is observed again; agents that were never there may come at any
    step. The episode is over when nobody is left.
    """

    @property
    def possible_agents(self) -> Sequence[str]:
        """All agents that may ever be there."""
        ...

    def observation_space(self, agent: str, /) -> Space[Any]:
        """The space of an agent's observations."""
        ...

    def action_space(self, agent: str, /) -> Space[Any]:
        """The space of an agent's actions."""
        ...

    def reset(self, *, seed: int | None = None) -> tuple[ByAgent, ByAgent]:
        """Start an episode: (observations, infos) of the agents that act first."""
        ...

    # A dict, and by any name, because PettingZoo says so.
    def step(self, actions: dict[str, Any], /) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Take an action of each acting agent: (observations, rewards, terminated, truncated, infos).

        An agent that is not named in one of them earned nothing, or did not end.
        """
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


@dataclass(frozen=True)
class AgentSpaces:
    """The spaces of one agent, and how they are encoded, of which its policy is described.

    The codecs raise UnsupportedSpace for a space that no policy is built for.
    """

    observation: Space[Any]
    action: Space[Any]

    @property
    def observations(self) -> ObservationCodec:
        """How its observations are encoded."""
        return observation_codec(self.observation)

    @property
    def actions(self) -> ActionCodec:
        """How its actions are encoded."""
        return action_codec(self.action)


@dataclass(frozen=True)
class MultiAgentEnvSpec:
    """A description of an environment with several agents, from which any process can make it.

    env: a class or factory that cloudpickle can send, its name, such as "package.module:Class", or the name of
    one of PettingZoo's modules, such as "mpe2.simple_spread_v3", whose `parallel_env` makes it. (For PettingZoo's
    other API, in which agents act one after the other, pass a factory that converts with
    `pettingzoo.utils.aec_to_parallel`.) kwargs: for its constructor.
    """

    env: str | Callable[..., MultiAgentEnvironment]
    kwargs: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What messages call it."""
        return environment_name(self.env)

    def spaces(self) -> Mapping[str, AgentSpaces]:
        """The spaces of every possible agent, in the environment's order.

        Makes an environment and closes it.
        Raises as `make` does.
        """
        env = self.make()
        try:
            return {
                agent: AgentSpaces(env.observation_space(agent), env.action_space(agent))
                for agent in env.possible_agents
            }
        finally:
            env.close()

    def make(self) -> MultiAgentEnvironment:
        """A new environment.

        Raises UnknownEnvironment if nothing of that name can be imported; BadEnvironment if the environment does
        not say which agents are possible.
        """
        make = _named(self.env) if isinstance(self.env, str) else self.env
        env = make(**self.kwargs)
        agents = list(getattr(env, "possible_agents", ()))
        if not agents or not all(isinstance(agent, str) for agent in agents):
            raise BadEnvironment(
                f"{self.name}: possible_agents is {agents}, where the names of all agents that may ever be there "
                "are needed, as strings; wrap the environment"
            )
        return env


class AgentsStep(NamedTuple):
    """What one step of one environment gave, by agent. Arrays may be overwritten by the next step.

    observations: of the agents that act next, and the last ones of those that ended; an agent that ended
    without being observed is not among them. rewards: finite. terminated, truncated: who ended, and how; never
    both. over: nobody is left.
    """

    observations: ByAgent
    rewards: Mapping[str, float]
    terminated: frozenset[str]
    truncated: frozenset[str]
    over: bool


class CheckedMultiAgentEnvironment:
    """An environment that keeps the protocol, or says which agent does not.

    spec: of the environment. seed: from which every episode gets a seed of its own, so that environments which
    draw a new one at each reset are reproducible too. place: what messages call it.
    """

    def __init__(self, spec: MultiAgentEnvSpec, seed: int, place: str) -> None:
        self._env = spec.make()
        self._spaces = {agent: self._env.observation_space(agent) for agent in self._env.possible_agents}
        self._seed = seed
        self._place = place
        self._episode = 0
        self._living: set[str] = set()

    def reset(self) -> ByAgent:
        """Start an episode: the observations of the agents that act first.

        Raises BadEnvironment if the result breaks the protocol.
        """
        seed = derive_seed(self._seed, "episode", self._episode) % _SEED_BOUND
        self._episode += 1
        result: Any = self._env.reset(seed=seed)
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], Mapping)):
            raise self._bad(
                "reset must return (observations, infos), the observations by agent: see MultiAgentEnvironment"
            )
        observations: ByAgent = result[0]
        self._check_observations(observations)
        if not observations:
            raise self._bad("reset observed no agent, so nobody could ever act")
        self._living = set(observations)
        return observations

    def step(self, actions: dict[str, Any]) -> AgentsStep:
        """Take a step. actions: of all agents that act, in the environment's form.

        Raises BadEnvironment if the result breaks the protocol.
        """
        result: Any = self._env.step(actions)
        if not (isinstance(result, tuple) and len(result) == 5):
            raise self._bad(
                "step must return (observations, rewards, terminated, truncated, infos), each by agent: see "
                "MultiAgentEnvironment"
            )
        observations, rewards, raw_terminated, raw_truncated, _ = result
        self._check_observations(observations)
        terminated = self._ended(raw_terminated, "terminated")
        # A terminal state has no future, whatever the clock says.
        truncated = self._ended(raw_truncated, "truncated") - terminated
        unobserved = sorted((truncated & self._living) - observations.keys())
        if unobserved:
            raise self._bad(
                f"agent {unobserved[0]!r} was truncated without a last observation, whose value its return needs; "
                "observe every agent that is truncated"
            )
        self._living = (self._living | observations.keys()) - terminated - truncated
        over = not self._living
        if self._living and getattr(self._env, "agents", None) == []:
            raise self._bad(
                f"no agents are left, yet {sorted(self._living)[0]!r} was neither terminated nor truncated"
            )
        return AgentsStep(
            # The reset that follows may overwrite them.
            deepcopy(observations) if over else observations,
            {agent: self._number(agent, reward) for agent, reward in rewards.items()},
            terminated,
            truncated,
            over,
        )

    def state(self) -> dict[str, StateValue]:
        """All that the next steps and resets depend on, under flat names.

        "saved" is 0 if the environment cannot be saved; then only the number of episodes is in the state.
        """
        state: dict[str, StateValue] = {"episode": self._episode, "saved": 0}
        try:
            state.update(prefixed("environment/", environment_state(self._env)))
        except UnsavableEnvironment:
            return state
        state["saved"] = 1
        state["living"] = self._flags_of_living()
        return state

    def load_state(self, state: Mapping[str, StateValue], /) -> bool:
        """Go on where the environment that gave this state stood; this one is new.

        Returns whether it was saved. If not, `reset` is to be called: it starts the next episode.
        Raises ValueError if the state is of another environment.
        """
        self._episode = int(saved_number("episode", state))
        if not saved_number("saved", state):
            return False
        load_environment_state(self._env, under("environment/", state))
        living = saved_array("living", state, self._flags_of_living())
        self._living = {agent for agent, lives in zip(self._spaces, living.tolist(), strict=True) if lives}
        return True

    def close(self) -> None:
        """Release what the environment holds."""
        self._env.close()

    def _flags_of_living(self) -> NDArray[np.bool_]:
        """Who of all possible agents is there, in their order."""
        return np.array([agent in self._living for agent in self._spaces], np.bool_)

    def _check_observations(self, observations: ByAgent) -> None:
        for agent, observation in observations.items():
            space = self._spaces.get(agent)
            if space is None:
                raise self._bad(
                    f"it observed agent {agent!r}, which is not among possible_agents {list(self._spaces)}"
                )
            fault = observation_fault(space, observation, "")
            if fault is not None:
                raise self._bad(
                    f"the observation of agent {agent!r}{fault}; correct its observation_space or its observations"
                )

    def _ended(self, flags: ByAgent, name: str) -> frozenset[str]:
        unknown = flags.keys() - self._spaces.keys()
        if unknown:
            raise self._bad(
                f"{name} names {sorted(unknown)[0]!r}, which is no agent; the end of an episode is said by the "
                "flags of all its agents"
            )
        return frozenset(agent for agent, flag in flags.items() if flag)

    def _number(self, agent: str, reward: Any) -> float:
        array = np.asarray(reward)
        if array.size == 1 and (np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
            value = float(array.reshape(()))
            if math.isfinite(value):
                return value
        raise self._bad(f"the reward of agent {agent!r} is {reward!r}, where one finite number is needed")

    def _bad(self, message: str) -> BadEnvironment:
        return BadEnvironment(f"{self._place}: {message}")


def _named(name: str) -> Callable[..., MultiAgentEnvironment]:
    module, _, attribute = name.partition(":")
    attribute = attribute or "parallel_env"
    try:
        found = import_module(module)
    except ImportError as error:
        raise UnknownEnvironment(
            f"cannot import {module!r}, where the environment {name!r} should be: {error}; install it, or correct "
            "the name"
        ) from error
    make: Callable[..., MultiAgentEnvironment] | None = getattr(found, attribute, None)
    if make is None:
        raise UnknownEnvironment(
            f"{module!r} has no {attribute}; name one of PettingZoo's modules, or what makes the environment, "
            'as in "package.module:Class"'
        )
    return make
