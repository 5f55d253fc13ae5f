"""Evaluation: what a policy earns when it takes its most probable actions, measured beside the training.

Apart from the rollout workers so that nothing leaks: the environments are made for this call, their seeds are
of a stream of their own, the statistics that came with the weights are used and never updated, and the
training's counters know nothing of these steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeflow.dsl import NotReady
from pipeflow.rl.batches import ObservationArray, Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.policy import PolicyDescription
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.threads import torch_threads

_MOST_ENVIRONMENTS = 8


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The episodes that a version of the weights played greedily."""

    version: int
    episodes: EpisodeStats


class Evaluator:
    """An actor that evaluates beside the training: it plays once with whatever weights it was sent last.

    env, policy, episodes, seed: as in `evaluate`; all weights play the same episodes.
    """

    def __init__(self, env: EnvSpec, policy: PolicyDescription, *, episodes: int = 10, seed: int = 0) -> None:
        self._env = env
        self._policy = policy
        self._episodes = episodes
        self._seed = seed
        self._weights: Weights | None = None

    def set_weights(self, weights: Weights, /) -> None:
        """Play with these next; weights that came before and were not played with are forgotten."""
        self._weights = weights

    def evaluate(self) -> Evaluation | NotReady:
        """Play with the weights that came last; not ready until others have come.

        Raises ValueError if no episode is asked for.
        """
        weights, self._weights = self._weights, None
        if weights is None:
            return NotReady()
        episodes = evaluate(self._env, self._policy, weights, self._episodes, self._seed)
        return Evaluation(weights.version, episodes)


@torch_threads(1)
def evaluate(
    env: EnvSpec, policy: PolicyDescription, weights: Weights, episodes: int, seed: int
) -> EpisodeStats:
    """Play exactly `episodes` episodes greedily.

    Each sub-environment plays a share that is fixed beforehand: taking whichever episodes end first would
    favour the short ones. episodes: at least 1. seed: of the evaluation; the same seed plays the same
    episodes.
    Returns their undiscounted, unscaled returns and lengths.
    Raises ValueError if no episode is asked for.
    """
    if episodes < 1:
        raise ValueError(f"an evaluation needs at least 1 episode, got {episodes}")
    actor = policy.build(derive_seed(seed, "policy"))
    actor.load_numpy(weights.parameters)
    num_envs = min(episodes, _MOST_ENVIRONMENTS)
    # Episode k belongs to sub-environment k % num_envs, as its (k // num_envs)-th.
    remaining = np.bincount(np.arange(episodes) % num_envs, minlength=num_envs)
    returns, lengths = np.zeros(num_envs), np.zeros(num_envs, dtype=np.int64)
    finished_returns: list[NDArray[np.float64]] = []
    finished_lengths: list[NDArray[np.int64]] = []
    environments = env.make(num_envs, derive_seed(seed, "evaluation"))
    try:
        observations: ObservationArray = environments.reset()
        state = np.zeros((num_envs, policy.state_width), np.float32)
        while remaining.any():
            moments = weights.observation_moments
            seen = observations if moments is None else moments.normalise(observations)
            actions, state = actor.greedy(seen, state)
            step = environments.step(actions)
            observations = step.observations
            returns[step.valid] += step.rewards[step.valid]
            lengths += step.valid
            ended = (step.terminated | step.truncated) & step.valid
            if policy.state_width:
                state = np.where((ended | ~step.valid)[:, None], np.float32(0.0), state)
            if ended.any():
                counted = ended & (remaining > 0)
                finished_returns.append(returns[counted])
                finished_lengths.append(lengths[counted])
                remaining -= counted
                returns[ended], lengths[ended] = 0.0, 0
    finally:
        environments.close()
    return EpisodeStats(np.concatenate(finished_returns), np.concatenate(finished_lengths))
