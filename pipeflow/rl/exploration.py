"""Exploration of action values: epsilon-greedy choice, and the rollout worker that acts with it.

Apart from the network, which only knows what is best, and from the schedules, which only know numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from pipeflow.dsl import current_shard
from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.batches import ObservationArray, Trajectories
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.policy import Acted, StateArray
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.schedules import Constant, Schedule, as_schedule, per_worker_epsilon


@dataclass(frozen=True)
class EpsilonLadder:
    """A fixed rate for every sub-environment of every worker, spread so that together they cover many.

    base, alpha: as in `per_worker_epsilon`. workers: how many there are; each of their sub-environments is one
    of the paper's actors.
    """

    workers: int
    base: float = 0.4
    alpha: float = 7.0

    def rates(self, index: int, num_envs: int) -> NDArray[np.float64]:
        """The rates [num_envs] of one worker's sub-environments.

        Raises ValueError if the index is not of one of the workers.
        """
        first, count = index * num_envs, self.workers * num_envs
        return np.array(
            [per_worker_epsilon(self.base, self.alpha, first + i, count) for i in range(num_envs)]
        )


def epsilon_greedy(
    greedy: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    epsilon: NDArray[np.float64] | float,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The greedy action, or with probability epsilon one drawn uniformly among those allowed.

    greedy: [N], allowed themselves. allowed: [N, A], at least one a row. epsilon: a rate, or [N] of them.
    Returns (actions [N], their log-probabilities [N] under this mixture).
    """
    # The largest of uniform numbers, of which those of excluded actions are negative, is a uniform choice.
    uniform = np.where(allowed, generator.random(allowed.shape), -1.0).argmax(axis=1)
    explores = generator.random(len(greedy)) < epsilon
    actions = np.where(explores, uniform, greedy)
    probabilities = epsilon / allowed.sum(axis=1) + np.where(
        actions == greedy, 1.0 - np.asarray(epsilon), 0.0
    )
    return actions, np.log(probabilities).astype(np.float32)


class EpsilonGreedyWorker(RolloutWorker):
    """A rollout worker that acts epsilon-greedily on action values.

    epsilon: a rate; or a schedule over the environment steps that this worker itself has taken, in force for a
    fragment at a time; or an `EpsilonLadder`. The rest as in `RolloutWorker`; nothing is normalised, since replay
    keeps observations for longer than statistics stay the same.
    """

    def __init__(
        self,
        env: EnvSpec,
        policy: ActionValueSpec,
        *,
        epsilon: float | Schedule | EpsilonLadder = 0.1,
        num_envs: int = 8,
        fragment_length: int = 4,
        seed: int = 0,
        index: int | None = None,
        threads: int = 1,
    ) -> None:
        index = current_shard() if index is None else index
        super().__init__(
            env,
            policy,
            num_envs=num_envs,
            fragment_length=fragment_length,
            seed=seed,
            index=index,
            threads=threads,
        )
        self._spec = policy
        ladder = epsilon.rates(index, num_envs) if isinstance(epsilon, EpsilonLadder) else None
        self._ladder = ladder
        self._schedule = Constant(0.0) if isinstance(epsilon, EpsilonLadder) else as_schedule(epsilon)
        self._lifetime_steps = 0

    @property
    def epsilon(self) -> NDArray[np.float64] | float:
        """The rate that the next fragment is acted out with, or [num_envs] of them."""
        return self._schedule(self._lifetime_steps) if self._ladder is None else self._ladder

    @override
    def sample(self) -> Trajectories:
        trajectories = super().sample()
        self._lifetime_steps += trajectories.steps
        return trajectories

    @override
    def _act(self, observations: ObservationArray, state: StateArray) -> Acted:
        acted = self._policy.act(observations, state, self._generator)
        actions, log_probs = epsilon_greedy(
            acted.actions.astype(np.int64, copy=False),
            self._spec.allowed(observations),
            self.epsilon,
            self._generator,
        )
        return Acted(actions, log_probs, acted.values, acted.state)
