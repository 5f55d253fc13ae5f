"""Environments as vectors of sub-environments, with one behaviour whatever gymnasium does underneath.

Apart from the rollout worker, which should not know that there are three ways to reset an ended episode, that
some environments reuse their arrays, or that a reward may have the shape (1,). A step's result says for each
sub-environment what to act on next, whether the row carries data at all, and, where an episode ended, what
its true last observation was.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array
from gymnasium.wrappers import FrameStackObservation, TransformObservation
from numpy.typing import NDArray

from pipeflow.rl.environment_state import UnsavableEnvironment, environment_state, load_environment_state
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.single_environments import BadEnvironment as BadEnvironment
from pipeflow.rl.single_environments import (
    CheckedEnvironment,
    environment_name,
    make_environment,
    registration,
)
from pipeflow.rl.single_environments import UnknownEnvironment as UnknownEnvironment
from pipeflow.rl.spaces import InvalidObservation, action_codec, observation_codec
from pipeflow.state.values import StateValue, prefixed, saved_array, saved_number, under

# Environments that seed numpy's legacy generator, or ALE's, refuse larger seeds.
_SEED_BOUND = 2**31


@dataclass(frozen=True)
class EnvSpec:
    """A description of an environment, from which any process can make it.

    env: a registered id ("CartPole-v1", or "ale_py:ALE/Pong-v5" with the module that registers it), or a
    class or factory of single environments that cloudpickle can send.
    kwargs: for the environment's constructor.
    frame_stack: how many of the latest observations make one; after a reset the first one fills all places.
    """

    # The types of observations and actions are the environment's own, and gymnasium leaves them to Any.
    env: str | Callable[..., gymnasium.Env[Any, Any]]
    kwargs: Mapping[str, object] = field(default_factory=dict)
    frame_stack: int = 1

    def __post_init__(self) -> None:
        if self.frame_stack < 1:
            raise ValueError(f"frame_stack must be at least 1, got {self.frame_stack}")

    @property
    def name(self) -> str:
        """What messages call it."""
        return environment_name(self.env)

    def spaces(self) -> tuple[gymnasium.Space[object], gymnasium.Space[object]]:
        """The observation space and the action space of one environment.

        Makes an environment and closes it.
        Raises UnknownEnvironment for an id that is not registered.
        """
        vector = self._own_vector(1) if self._is_vector_only() else None
        if vector is not None:
            vector.close()
            return vector.single_observation_space, vector.single_action_space
        env = self._single()
        env.close()
        return env.observation_space, env.action_space

    def make(self, num_envs: int, seed: int) -> VectorEnvironment:
        """`num_envs` new environments as one.

        The environment's own vectorised implementation is used where it registered one and there are at least
        four, from where on it is many times faster; else gymnasium steps single environments one after the other.
        seed: from which every sub-environment gets a stream of its own.
        Raises UnknownEnvironment for an id that is not registered, UnsupportedSpace for a space that no
        policy is built for, BadEnvironment if a factory makes something else than an environment.
        """
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        wanted = num_envs >= _WORTH_A_VECTOR or self._is_vector_only()
        own = self._own_vector(num_envs) if wanted else None
        if own is not None:
            return VectorEnvironment(own, seed, self.name)
        makers = [partial(self._checked, index) for index in range(num_envs)]
        # No copy: encoding makes one.
        vector = SyncVectorEnv(makers, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
        return VectorEnvironment(vector, seed, self.name)

    def _single(self) -> gymnasium.Env[Any, Any]:
        env = make_environment(self.env, self.kwargs)
        if self.frame_stack == 1:
            return env
        # The stack keeps references, and the environment may reuse its arrays.
        kept = TransformObservation(env, deepcopy, env.observation_space)
        return FrameStackObservation(kept, self.frame_stack)

    def _checked(self, index: int) -> CheckedEnvironment:
        return CheckedEnvironment(self._single(), f"{self.name}, sub-environment {index}")

    def _is_vector_only(self) -> bool:
        return isinstance(self.env, str) and registration(self.env).entry_point is None

    def _own_vector(self, num_envs: int) -> VectorEnv[Any, Any, Any] | None:
        if not isinstance(self.env, str) or self.frame_stack > 1:
            return None
        entry = registration(self.env)
        if entry.vector_entry_point is None or entry.additional_wrappers:
            return None
        make = entry.vector_entry_point
        signature = inspect.signature(load_env_creator(make) if isinstance(make, str) else make)
        try:
            signature.bind(num_envs=num_envs, **{**entry.kwargs, **self.kwargs})
        except TypeError:
            return None  # It was asked for something that only the single environment offers.
        kwargs: dict[str, Any] = dict(self.kwargs)
        return gymnasium.make_vec(entry, num_envs, vectorization_mode="vector_entry_point", **kwargs)


# A vector step of numpy costs as much as so many single ones of Python, however few rows it has.
_WORTH_A_VECTOR = 4


class EnvStep(NamedTuple):
    """What one step of N sub-environments gave. Arrays are the receiver's own, but may be read-only.

    observations: [N, *obs] encoded, to act on next.
    rewards: [N] float32.
    terminated: [N] bool, the episode ended in a state without a future.
    truncated: [N] bool, the episode was cut off; its last observation has a value.
    final_observations: [K, *obs] encoded, the true last observations of the K sub-environments whose episodes
    ended.
    final_indices: [K] int64, which ones those are, ascending.
    valid: [N] bool, False for a row in which a sub-environment was only reset, whatever the action: no step,
    no data.
    """

    # A tuple, because one is made at every step and a frozen dataclass takes many times as long to make.
    observations: NDArray[np.float32] | NDArray[np.uint8]
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    final_observations: NDArray[np.float32] | NDArray[np.uint8]
    final_indices: NDArray[np.int64]
    valid: NDArray[np.bool_]


class VectorEnvironment:
    """N sub-environments that restart by themselves, each seeded by its own stream.

    env: any of gymnasium's vector environments; the autoreset mode is read from its metadata, and with
    DISABLED the resets are done here. (Its batches are whatever its spaces say, which gymnasium leaves to
    Any.) seed: from which the sub-environments' seeds are derived. name: what messages call it.
    Raises BadEnvironment if the environment does not say how it resets.

    num_envs: N. observations, actions: the codecs of the single spaces.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], seed: int, name: str) -> None:
        self._env = env
        self._name = name
        self._seed = seed
        # Where environments could not be saved they start anew, with other seeds than the ones before.
        self._restarts = 0
        self._seeded = False
        self._mode = _autoreset_mode(env, name)
        self.num_envs = env.num_envs
        self.observations = observation_codec(env.single_observation_space)
        self.actions = action_codec(env.single_action_space)
        # Which sub-environments the step to come will only reset; set for NEXT_STEP environments alone.
        self._resetting: NDArray[np.bool_] | None = None
        self._all_valid = _read_only(np.ones(self.num_envs, dtype=np.bool_))
        self._no_finals = _read_only(np.zeros((0, *self.observations.shape), dtype=self.observations.dtype))
        self._no_indices = _read_only(np.zeros(0, dtype=np.int64))

    def reset(self) -> NDArray[np.float32] | NDArray[np.uint8]:
        """Start an episode in every sub-environment.

        The first call seeds them; later ones go on with their streams.
        Returns [N, *obs], the encoded first observations.
        Raises BadEnvironment if an observation has a wrong shape, nan or infinity.
        """
        seed = derive_seed(self._seed, "restart", self._restarts) if self._restarts else self._seed
        seeded, self._seeded = self._seeded, True
        if seeded:
            observations, _ = self._env.reset()
        elif isinstance(self._env, SyncVectorEnv | AsyncVectorEnv):
            seeds: list[int | None] = [
                derive_seed(seed, "environment", index) % _SEED_BOUND for index in range(self.num_envs)
            ]
            observations, _ = self._env.reset(seed=seeds)
        else:
            # A custom vector environment draws for all of its rows from one generator.
            observations, _ = self._env.reset(seed=derive_seed(seed, "environments") % _SEED_BOUND)
        self._resetting = None
        return self._finite(self._encoded(observations))

    def step(self, actions: NDArray[np.int64 | np.float32]) -> EnvStep:
        """Take one action in every sub-environment, and restart those whose episode ended.

        actions: [N, *act] in the network's form; not written to.
        Raises BadEnvironment if an observation or reward has a wrong shape, nan or infinity.
        """
        raw, raw_rewards, raw_terminated, raw_truncated, infos = self._env.step(self.actions.to_env(actions))
        observations = self._finite(self._encoded(raw))
        rewards = self._rewards(raw_rewards)
        terminated = self._flags(raw_terminated, "terminated")
        truncated = self._flags(raw_truncated, "truncated")
        valid = self._all_valid
        if self._resetting is not None:
            valid = ~self._resetting
            rewards[self._resetting] = 0.0
            terminated &= valid
            truncated &= valid
            self._resetting = None
        ended = terminated | truncated
        if not np.count_nonzero(ended):
            return EnvStep(
                observations, rewards, terminated, truncated, self._no_finals, self._no_indices, valid
            )
        indices = np.flatnonzero(ended)
        if self._mode is AutoresetMode.SAME_STEP:
            finals = self._final_observations(infos, indices)
        else:
            finals = observations[indices]
        if self._mode is AutoresetMode.NEXT_STEP:
            self._resetting = ended
            if self.observations.mask is not None:
                # Whatever is chosen there is ignored, but something has to be, and the end may allow nothing.
                observations[indices, self.observations.mask] = 1.0
        elif self._mode is AutoresetMode.DISABLED:
            fresh, _ = self._env.reset(options={"reset_mask": ended.copy()})
            observations[indices] = self._finite(self._encoded(fresh)[indices], indices)
        return EnvStep(observations, rewards, terminated, truncated, finals, indices, valid)

    def state(self) -> dict[str, StateValue]:
        """All that the next steps and resets depend on, under flat names.

        "environments_saved" is 0 if these environments cannot be saved, and nothing of them is in the state.
        """
        state: dict[str, StateValue] = {"environments_restarts": self._restarts, "environments_saved": 0}
        try:
            state.update(prefixed("environments/", environment_state(self._env)))
        except UnsavableEnvironment:
            return state
        state["environments_saved"] = 1
        state["environments_seeded"] = int(self._seeded)
        if self._resetting is not None:
            state["environments_resetting"] = self._resetting.copy()
        return state

    def load_state(self, state: Mapping[str, StateValue], /) -> bool:
        """Go on where the environments that gave this state stood; this one is new.

        Returns whether they were saved. If not, `reset` is to be called: it starts episodes that are seeded
        otherwise than those before.
        Raises ValueError if the state is of other environments.
        """
        saved = bool(saved_number("environments_saved", state))
        self._restarts = int(saved_number("environments_restarts", state)) + (not saved)
        self._resetting = None
        self._seeded = saved and bool(saved_number("environments_seeded", state))
        if saved:
            load_environment_state(self._env, under("environments/", state))
            if "environments_resetting" in state:
                self._resetting = saved_array("environments_resetting", state, self._all_valid)
        return saved

    def close(self) -> None:
        """Release what the environments hold; they cannot be stepped after it."""
        self._env.close()

    # In these, `indices` are the sub-environments whose rows an array holds, all of them if None.
    def _encoded(
        self, batch: Any, indices: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32] | NDArray[np.uint8]:
        try:
            encoded = self.observations.encode(batch)
        except InvalidObservation as error:
            raise self._bad(f"the observation is wrong: {error}", error.row, indices) from error
        expected = self.num_envs if indices is None else len(indices)
        if len(encoded) != expected:
            raise self._bad(f"{len(encoded)} observations came from {expected} sub-environments", None)
        return encoded

    def _finite(
        self, encoded: NDArray[np.float32] | NDArray[np.uint8], indices: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32] | NDArray[np.uint8]:
        if encoded.dtype == np.float32:
            finite = np.isfinite(encoded)
            if np.count_nonzero(finite) < finite.size:
                row = int(np.flatnonzero(~finite.all(axis=1))[0])
                raise self._bad(f"the observation holds nan or infinity: {encoded[row]}", row, indices)
        return encoded

    def _rewards(self, values: Any) -> NDArray[np.float32]:
        rewards: NDArray[np.float32] = np.array(values, dtype=np.float32)
        if rewards.shape == (self.num_envs, 1):
            rewards = rewards[:, 0]
        if rewards.shape != (self.num_envs,):
            raise self._bad(f"rewards have shape {rewards.shape}, not {(self.num_envs,)}", None)
        finite = np.isfinite(rewards)
        if np.count_nonzero(finite) < self.num_envs:
            row = int(np.flatnonzero(~finite)[0])
            raise self._bad(f"the reward is {rewards[row]}", row)
        return rewards

    def _flags(self, values: Any, name: str) -> NDArray[np.bool_]:
        flags: NDArray[np.bool_] = np.array(values, dtype=np.bool_)
        if flags.shape != (self.num_envs,):
            raise self._bad(f"{name} has shape {flags.shape}, not {(self.num_envs,)}", None)
        return flags

    def _final_observations(
        self, infos: Mapping[str, Any], indices: NDArray[np.int64]
    ) -> NDArray[np.float32] | NDArray[np.uint8]:
        finals = infos.get("final_obs")
        if finals is None:
            raise self._bad(
                f"the episodes of sub-environments {indices.tolist()} ended, and its autoreset mode is "
                "SAME_STEP, yet infos hold no 'final_obs'; correct metadata['autoreset_mode'] or the infos",
                None,
            )
        if not (isinstance(finals, np.ndarray) and finals.dtype == object):
            return self._finite(self._encoded(finals)[indices], indices)
        space = self._env.single_observation_space
        empty = create_empty_array(space, n=len(indices))
        # None is what gymnasium gives for a space without arrays, which no codec would have taken.
        assert empty is not None
        batch = concatenate(space, [finals[index] for index in indices], empty)
        return self._finite(self._encoded(batch, indices), indices)

    def _bad(self, message: str, row: int | None, indices: NDArray[np.int64] | None = None) -> BadEnvironment:
        if row is None:
            return BadEnvironment(f"{self._name}: {message}")
        index = row if indices is None else int(indices[row])
        return BadEnvironment(f"{self._name}, sub-environment {index}: {message}")


def _autoreset_mode(env: VectorEnv[Any, Any, Any], name: str) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode")
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        raise BadEnvironment(
            f"{name}: metadata['autoreset_mode'] is {mode!r}, so nobody knows what follows the end of an "
            "episode; set it to one of gymnasium.vector.AutoresetMode"
        ) from error


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
