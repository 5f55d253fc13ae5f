"""One environment: found by name or made by a factory, and checked at every step.

Apart from `environments`, which runs many of them as one vector. What an environment does wrong is reported
here, with its place, before gymnasium's vector code would bury it in an array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec as Registration
from typing_extensions import override


class UnknownEnvironment(ValueError):
    """No environment is registered under the id."""


class BadEnvironment(ValueError):
    """An environment that breaks gymnasium's contract: a wrong shape, nan, infinity, or a missing value."""


def registration(env_id: str) -> Registration:
    """Gymnasium's entry for an id.

    env_id: such as "CartPole-v1", or "ale_py:ALE/Pong-v5" with the module that registers it.
    Raises UnknownEnvironment if the module cannot be imported or the id is not registered.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        try:
            import_module(module)
        except ImportError as error:
            raise UnknownEnvironment(
                f"cannot import {module!r}, the module of environment {env_id!r}: {error}; install it, or "
                "correct the id"
            ) from error
    entry = gymnasium.registry.get(name)
    if entry is None:
        known = {known.lower(): known for known in gymnasium.registry}
        close = [known[match] for match in get_close_matches(name.lower(), known, n=3)]
        hint = f"did you mean {' or '.join(close)}? If not, " if close else ""
        raise UnknownEnvironment(
            f"no environment {name!r} is registered; {hint}name the module that registers it, as in "
            '"ale_py:ALE/Pong-v5", or pass a class or a function that makes it'
        )
    return entry


# An environment's observations and actions have whatever types it likes, and gymnasium leaves them to Any.
def make_environment(
    env: str | Callable[..., gymnasium.Env[Any, Any]], kwargs: Mapping[str, object]
) -> gymnasium.Env[Any, Any]:
    """A new environment of a registered id, or of a class or factory called with `kwargs`.

    Raises UnknownEnvironment for an id that is not registered, BadEnvironment if it is registered for vectors
    alone, or if the factory made something else.
    """
    if isinstance(env, str):
        if registration(env).entry_point is None:
            raise BadEnvironment(
                f"{env} exists only as a vector of environments, which stacks no frames and takes no keywords but "
                "its own; leave frame_stack and other keywords out"
            )
        # The checker's warnings would repeat what CheckedEnvironment raises.
        keywords: dict[str, Any] = {"disable_env_checker": True, **kwargs}
        return gymnasium.make(registration(env), **keywords)
    made = env(**kwargs)
    if not isinstance(made, gymnasium.Env):  # pyright: ignore[reportUnnecessaryIsInstance] unchecked callers
        raise BadEnvironment(
            f"{environment_name(env)} made an object of type {type(made).__name__}, which is no "
            "gymnasium.Env; make a single environment, not a vector of them"
        )
    return made


def environment_name(env: str | Callable[..., object]) -> str:
    """What messages call an environment: its id, or the name of its class or factory."""
    return env if isinstance(env, str) else getattr(env, "__qualname__", repr(env))


class CheckedEnvironment(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment with the promised shapes, rewards that are floats, and last observations that stay.

    The last observation of an episode is copied, because the reset that follows at once may overwrite it.
    Infos are dropped: nothing here reads them, and gymnasium spends much of a vector step on putting them
    together.

    place: what messages call this environment.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], place: str) -> None:
        super().__init__(env)
        self._place = place
        self._space = env.observation_space
        self._shape, self._dtype = self._space.shape, self._space.dtype

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode. Raises BadEnvironment if the result is not gymnasium's."""
        result: Any = self.env.reset(seed=seed, options=options)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise BadEnvironment(
                f"{self._place}: reset returned {type(result).__name__} where gymnasium's API has "
                "(observation, info); port the environment, or wrap it with shimmy"
            )
        observation = result[0]
        self._check(observation)
        return observation, {}

    @override
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action. Raises BadEnvironment if the result is not gymnasium's."""
        result: tuple[Any, ...] = self.env.step(action)
        if len(result) != 5:
            raise BadEnvironment(
                f"{self._place}: step returned {len(result)} values where gymnasium has 5: (observation, "
                "reward, terminated, truncated, info); port the environment, or wrap it with shimmy"
            )
        observation, reward, terminated, truncated, _ = result
        self._check(observation)
        if terminated or truncated:
            observation = deepcopy(observation)
        return observation, self._number(reward), bool(terminated), bool(truncated), {}

    def _check(self, observation: object) -> None:
        if (
            isinstance(observation, np.ndarray)
            and observation.shape == self._shape
            and observation.dtype == self._dtype
        ):
            return
        fault = observation_fault(self._space, observation, "")
        if fault is not None:
            raise BadEnvironment(
                f"{self._place}: the observation{fault}; correct its observation_space or its observations"
            )

    def _number(self, reward: object) -> float:
        if isinstance(reward, float):
            return reward
        array = np.asarray(reward)
        if array.size != 1 or not (np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
            raise BadEnvironment(f"{self._place}: the reward is {reward!r}, where one number is needed")
        return float(array.reshape(()))


def observation_fault(space: spaces.Space[Any], observation: object, path: str) -> str | None:
    """What in an observation does not fit the space's structure, shape or kind of number, if anything."""
    if isinstance(space, spaces.Dict):
        if not (isinstance(observation, Mapping) and observation.keys() == space.spaces.keys()):
            found = list(observation) if isinstance(observation, Mapping) else type(observation).__name__
            return f"{path} is {found} where the space has a dict of {list(space.spaces)}"
        parts = [(part, observation[key], f"{path}[{key!r}]") for key, part in space.spaces.items()]
    elif isinstance(space, spaces.Tuple):
        if not (isinstance(observation, tuple) and len(observation) == len(space.spaces)):
            return (
                f"{path} is {type(observation).__name__} where the space has a tuple of {len(space.spaces)}"
            )
        parts = [(part, observation[i], f"{path}[{i}]") for i, part in enumerate(space.spaces)]
    else:
        array = np.asarray(observation)
        if array.shape != space.shape:
            return f"{path} has shape {array.shape} where the space says {space.shape}"
        if space.dtype is not None and not np.can_cast(array.dtype, space.dtype, "same_kind"):
            return f"{path} has dtype {array.dtype} where the space says {space.dtype}"
        return None
    return next((fault for part in parts if (fault := observation_fault(*part)) is not None), None)
