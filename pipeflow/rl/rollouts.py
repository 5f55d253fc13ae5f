"""The rollout worker: an actor that steps environments under the current policy and hands out trajectories.

Apart from the environments, which know nothing of policies, and from the returns, which are a stage of the
plan. This is where the convention of the trajectories is made: which value belongs to which next observation,
which rows are real, and that statistics are of new data only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeflow.dsl import current_shard
from pipeflow.rl.batches import ActionArray, ObservationArray, Trajectories, Weights
from pipeflow.rl.environments import EnvSpec, EnvStep
from pipeflow.rl.episodes import EpisodeTracker
from pipeflow.rl.policy import Acted, ActsByFragment, FragmentActing, PolicyDescription, StateArray
from pipeflow.rl.running_moments import Moments, ReturnTracker
from pipeflow.rl.seeding import derive_seed, generator_state, restore_generator
from pipeflow.rl.threads import torch_threads
from pipeflow.state.values import (
    StateValue,
    arrays_under,
    prefixed,
    saved_array,
    saved_number,
    under,
)

_VARIANCE_FLOOR = 1e-8  # added to the variance of returns: with no reward yet it is zero


class RolloutWorker:
    """Steps `num_envs` copies of an environment, `fragment_length` vector steps at a time.

    env, policy: descriptions; the policy starts with the weights of a learner of the same seed. seed: of the
    run; every sub-environment and the sampling of actions get streams of their own from it, the shard's index
    and nothing else. index: of this worker among its group; None asks the shard that it runs in. gamma:
    discount of the running returns that scale rewards. normalise_observations, normalise_rewards: collect
    statistics of what this worker sees, and apply those that came with the last weights; nothing is
    normalised before the first came.
    threads: that torch computes with.
    Raises ValueError for an image whose normalisation is asked for: pixels are scaled in the network.
    """

    def __init__(
        self,
        env: EnvSpec,
        policy: PolicyDescription,
        *,
        num_envs: int = 8,
        fragment_length: int = 128,
        seed: int = 0,
        index: int | None = None,
        gamma: float = 0.99,
        normalise_observations: bool = False,
        normalise_rewards: bool = False,
        threads: int = 1,
    ) -> None:
        if num_envs < 1 or fragment_length < 1:
            raise ValueError(
                f"num_envs and fragment_length must be at least 1, got {num_envs} and {fragment_length}"
            )
        if normalise_observations and policy.observations.is_image:
            raise ValueError("images are not normalised by statistics, the network scales them; turn it off")
        index = current_shard() if index is None else index
        self._env = env.make(num_envs, derive_seed(seed, "worker", index, "environments"))
        self._generator = np.random.default_rng(derive_seed(seed, "worker", index, "actions"))
        self._policy = policy.build(derive_seed(seed, "policy"))
        self._state: StateArray = np.zeros((num_envs, policy.state_width), np.float32)
        self._fragment_length = fragment_length
        self._threads = threads
        self._normalise_observations = normalise_observations
        self._normalise_rewards = normalise_rewards
        self._episodes = EpisodeTracker(num_envs)
        self._returns = ReturnTracker(num_envs, gamma)
        self._version = 0
        self._observation_moments: Moments | None = None
        self._reward_scale = 1.0
        self._observations: ObservationArray | None = (
            None  # what to act on next, not normalised; None before the reset
        )

    def set_weights(self, weights: Weights, /) -> None:
        """Act with these weights, and normalise with these statistics, from the next `sample` on."""
        self._policy.load_numpy(weights.parameters)
        self._version = weights.version
        if self._normalise_observations:
            self._observation_moments = weights.observation_moments
        if self._normalise_rewards and weights.return_moments is not None:
            self._reward_scale = 1.0 / float(np.sqrt(weights.return_moments.variance + _VARIANCE_FLOOR))

    def sample(self) -> Trajectories:
        """The next `fragment_length` vector steps; episodes go on over the ends of fragments."""
        with torch_threads(self._threads):
            return self._sampled()

    def _sampled(self) -> Trajectories:
        first = self._env.reset() if self._observations is None else self._observations
        steps, num_envs = self._fragment_length, self._env.num_envs
        codec, actions_codec = self._env.observations, self._env.actions
        raw: ObservationArray = np.empty((steps + 1, num_envs, *codec.shape), codec.dtype)
        seen: ObservationArray = np.empty_like(raw) if self._normalise_observations else raw
        actions: ActionArray = np.empty((steps, num_envs, *actions_codec.shape), actions_codec.dtype)
        log_probs = np.empty((steps, num_envs), np.float32)
        values = np.empty((steps + 1, num_envs), np.float32)
        rewards = np.empty((steps, num_envs), np.float32)
        terminated = np.empty((steps, num_envs), np.bool_)
        truncated = np.empty((steps, num_envs), np.bool_)
        valid = np.empty((steps, num_envs), np.bool_)
        returns = np.empty((steps, num_envs)) if self._normalise_rewards else None
        finals: list[_Finals] = []
        initial_state = self._state
        acting = self._acting()

        raw[0] = first
        for t in range(steps):
            if seen is not raw:
                seen[t] = self._normalised(raw[t])
            state = self._state
            if acting is None:
                actions[t], log_probs[t], values[t], state = self._act(seen[t], state)
            else:
                actions[t] = acting.act(seen[t])
            step = self._env.step(actions[t])
            raw[t + 1], rewards[t] = step.observations, step.rewards
            terminated[t], truncated[t], valid[t] = step.terminated, step.truncated, step.valid
            if len(step.final_indices):
                finals.append(_Finals(t, step, state[step.final_indices]))
            self._state = self._kept(state, step)
            if returns is not None:
                returns[t] = self._returns.update(step.rewards, step.terminated, step.truncated, step.valid)
        self._episodes.update(rewards, terminated, truncated, valid)
        self._observations = raw[steps].copy()  # a view would hold the whole fragment in memory
        if seen is not raw:
            seen[steps] = self._normalised(raw[steps])
        if acting is None:
            values[steps] = self._policy.value(seen[steps], self._state)
        else:
            log_probs = acting.log_probs(actions)
            rows = seen.reshape(-1, *codec.shape)
            values = self._policy.value(rows, np.zeros((len(rows), 0), np.float32)).reshape(values.shape)
        final_observations = np.concatenate(
            [raw[:0, 0], *(self._normalised(final.step.final_observations) for final in finals)]
        )

        return Trajectories(
            observations=seen[:steps],
            actions=actions,
            log_probs=log_probs,
            values=values[:steps],
            next_values=self._next_values(values[1:], finals, final_observations),
            rewards=rewards,
            reward_scale=np.full(num_envs, self._reward_scale, np.float32),
            terminated=terminated,
            truncated=truncated,
            valid=valid,
            final_observations=final_observations,
            final_rows=np.concatenate(
                [
                    np.zeros(0, np.int64),
                    *(final.time * num_envs + final.step.final_indices for final in finals),
                ]
            ),
            last_observations=seen[steps].copy(),
            initial_state=initial_state,
            version=self._version,
            episodes=self._episodes.collect(),
            observation_moments=(
                None if seen is raw else Moments.of(raw[:steps][valid]).sparing(self._env.observations.mask)
            ),
            return_moments=None if returns is None else Moments.of(returns[valid]),
        )

    def state(self) -> dict[str, StateValue]:
        """All that the next `sample` depends on, under flat names.

        "environments_saved" is 0 if the environments cannot be saved: see `environment_state`.
        """
        state: dict[str, StateValue] = {
            "version": self._version,
            "reward_scale": self._reward_scale,
            "generator": generator_state(self._generator),
            "recurrent_state": self._state.copy(),
            **prefixed("parameters/", {**self._policy.parameters_numpy()}),
            **prefixed("episodes/", self._episodes.state()),
            **prefixed("returns/", self._returns.state()),
            **self._env.state(),
        }
        if self._observation_moments is not None:
            state.update(prefixed("observation_moments/", self._observation_moments.state()))
        if self._observations is not None:
            state["observations"] = self._observations.copy()
        return state

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on where the worker that gave this state stood: the next samples are, bit for bit, its next ones.

        If the environments were not saved, new episodes begin in all of them, and those that were running are
        forgotten. Only a new worker of the same configuration may be given a state.
        Raises ValueError if the state is of a worker of another configuration.
        """
        self._policy.load_numpy(arrays_under("parameters/", state))
        self._version = int(saved_number("version", state))
        self._reward_scale = float(saved_number("reward_scale", state))
        restore_generator(self._generator, saved_array("generator", state, generator_state(self._generator)))
        moments = under("observation_moments/", state)
        self._observation_moments = Moments.of_state(moments) if moments else None
        if not self._env.load_state(state):
            self._episodes.load_finished(under("episodes/", state))
            return
        self._episodes.load_state(under("episodes/", state))
        self._returns.load_state(under("returns/", state))
        self._state = saved_array("recurrent_state", state, self._state)
        if "observations" in state:
            codec = self._env.observations
            room: ObservationArray = np.empty((self._env.num_envs, *codec.shape), codec.dtype)
            self._observations = saved_array("observations", state, room)

    def close(self) -> None:
        """Close the environments; the worker cannot sample after it."""
        self._env.close()

    def _acting(self) -> FragmentActing | None:
        """What acts out the next fragment instead of `_act`, where the policy has it."""
        if not isinstance(self._policy, ActsByFragment):
            return None
        return self._policy.act_out(self._fragment_length, self._env.num_envs, self._generator)

    def _act(self, observations: ObservationArray, state: StateArray) -> Acted:
        """One action for each sub-environment; how actions are drawn is the policy's, or a subclass's."""
        return self._policy.act(observations, state, self._generator)

    def _kept(self, state: StateArray, step: EnvStep) -> StateArray:
        """The state to act with next: zeros where an episode begins."""
        if state.shape[1] == 0:
            return state
        restarts = step.terminated | step.truncated | ~step.valid
        return np.where(restarts[:, None], np.float32(0.0), state)

    def _next_values(
        self, following: NDArray[np.float32], finals: list[_Finals], final_observations: ObservationArray
    ) -> NDArray[np.float32]:
        """V of the true next observations: at a truncation the final one, else that of the following row."""
        next_values = following.copy()
        truncated = [final.step.truncated[final.step.final_indices] for final in finals]
        if any(flags.any() for flags in truncated):
            kept = np.concatenate(truncated)
            states = np.concatenate([final.states for final in finals])[kept]
            times = np.concatenate([np.full(len(final.states), final.time) for final in finals])[kept]
            columns = np.concatenate([final.step.final_indices for final in finals])[kept]
            # All of them at once: one forward pass, however many episodes were truncated.
            next_values[times, columns] = self._policy.value(final_observations[kept], states)
        return next_values

    def _normalised(self, observations: ObservationArray) -> ObservationArray:
        moments = self._observation_moments
        return observations if moments is None else moments.normalise(observations)


class _Finals(NamedTuple):
    """Episodes that ended at one step of a fragment, with the policy's states behind their last observations."""

    time: int
    step: EnvStep
    states: StateArray
