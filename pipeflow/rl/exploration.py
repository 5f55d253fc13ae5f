"""Exploration of action values: epsilon-greedy choice, and the rollout worker that acts with it.

A worker acts with an `EpsilonGreedyFragment`; where the number of agents differs from step to step, that of
`rl.multi_agent` acts with `epsilon_greedy`. Apart from the network, which only knows what is best, and from the
schedules, which only know numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from pipeflow.dsl import current_shard
from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.batches import ActionArray, ObservationArray, Trajectories
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.policy import Policy
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.schedules import Constant, Schedule, as_schedule, per_worker_epsilon
from pipeflow.state.values import StateValue, saved_number


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
    explores = generator.random(len(greedy)) < np.asarray(epsilon)
    actions = np.where(explores, uniform, greedy)
    return actions, _log_probs(actions == greedy, allowed.sum(axis=1), epsilon)


class EpsilonGreedyFragment:
    """One fragment acted out epsilon-greedily; whatever is random in it is drawn for all steps at once.

    policy: gives the greedy actions. spec: what it was built from. epsilon: a rate, or [N] of them. steps: T.
    num_envs: N.
    """

    def __init__(
        self,
        policy: Policy,
        spec: ActionValueSpec,
        epsilon: NDArray[np.float64] | float,
        *,
        steps: int,
        num_envs: int,
        generator: np.random.Generator,
    ) -> None:
        self._policy = policy
        self._spec = spec
        self._epsilon = epsilon
        self._state = np.zeros((num_envs, 0), np.float32)
        self._noise = generator.random((steps, num_envs, spec.num_actions))
        self._explores = generator.random((steps, num_envs)) < np.asarray(epsilon)
        self._somebody_explores = np.any(self._explores, axis=1)
        self._greedy = np.empty((steps, num_envs), np.int64)
        self._choices = np.full((steps, num_envs), spec.num_actions)
        self._step = 0

    def act(self, observations: ObservationArray) -> ActionArray:
        """The next step's action for each of N observations [N, *obs]."""
        step = self._step
        self._step += 1
        greedy, _ = self._policy.greedy(observations, self._state)
        self._greedy[step] = greedy
        noise = self._noise[step]
        if self._spec.observations.mask is not None:
            allowed = self._spec.allowed(observations)
            self._choices[step] = allowed.sum(axis=1)
            noise = np.where(allowed, noise, -1.0)
        if not self._somebody_explores[step]:
            return greedy
        # The largest of uniform numbers, of which those of excluded actions are negative, is a uniform choice.
        return np.where(self._explores[step], noise.argmax(axis=1), greedy)

    def log_probs(self, actions: ActionArray) -> NDArray[np.float32]:
        """Log-probabilities [T, N] of the actions [T, N] that all steps took, under this mixture."""
        return _log_probs(actions == self._greedy, self._choices, self._epsilon)


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
    def state(self) -> dict[str, StateValue]:
        return {**super().state(), "lifetime_steps": self._lifetime_steps}

    @override
    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        super().load_state(state)
        self._lifetime_steps = int(saved_number("lifetime_steps", state))

    @override
    def _acting(self) -> EpsilonGreedyFragment:
        return EpsilonGreedyFragment(
            self._policy,
            self._spec,
            self.epsilon,
            steps=self._fragment_length,
            num_envs=self._env.num_envs,
            generator=self._generator,
        )


def _log_probs(
    are_greedy: NDArray[np.bool_], choices: NDArray[np.int64], epsilon: NDArray[np.float64] | float
) -> NDArray[np.float32]:
    """Of actions [..., N] that are greedy or not, each one of so many choices [..., N]."""
    probabilities = epsilon / choices + np.where(are_greedy, 1.0 - np.asarray(epsilon), 0.0)
    log_probs: NDArray[np.float32] = np.log(probabilities).astype(np.float32)
    return log_probs
