"""Decentralised PPO's worker: it samples, differentiates minibatches, and applies what all workers averaged.

Apart from `ppo`, whose loss it has: here a worker and a learner are one actor, and every worker holds the same
parameters because all of them apply the same gradients.
Source: Wijmans et al., "DD-PPO: Learning Near-Perfect PointGoal Navigators from 2.5 Billion Frames" (2020),
section 3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from typing_extensions import override

from pipeflow.rl.batches import Trajectories
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.gradients import Gradients
from pipeflow.rl.learners.gradient_learner import GradientLearner
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.learners.ppo_loss import METRICS
from pipeflow.rl.learners.ppo_rows import Rows
from pipeflow.rl.minibatches import Minibatch
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.schedules import Schedule
from pipeflow.rl.threads import torch_threads
from pipeflow.state.values import StateValue, prefixed, under

_ROLLOUTS = "rollouts/"


class DecentralisedPPOWorker(PPOLearner, GradientLearner):
    """A rollout worker that learns, and applies the mean of all workers' gradients.

    The arguments are those of `RolloutWorker` and of `PPOLearner`.

    All workers have one seed, of which each derives streams of its own for whatever may differ between them.
    """

    def __init__(
        self,
        env: EnvSpec,
        policy: PolicySpec,
        *,
        num_envs: int = 8,
        fragment_length: int = 128,
        lr: float | Schedule = 3e-4,
        clip: float = 0.2,
        value_clip: float | None = None,
        value_coef: float = 0.5,
        entropy_coef: float = 0.0,
        max_grad_norm: float | None = 0.5,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        super().__init__(
            policy,
            lr=lr,
            clip=clip,
            value_clip=value_clip,
            value_coef=value_coef,
            entropy_coef=entropy_coef,
            max_grad_norm=max_grad_norm,
            seed=seed,
            threads=threads,
        )
        self._rollouts = RolloutWorker(
            env, policy, num_envs=num_envs, fragment_length=fragment_length, seed=seed, threads=threads
        )

    def sample(self) -> Trajectories:
        """The next fragment, with this worker's own newest parameters."""
        self._rollouts.set_weights(self.weights())
        return self._rollouts.sample()

    def gradients(self, minibatch: Minibatch, /) -> Gradients:
        """The gradient of PPO's mean loss over the rows; zero where there is no row."""
        rows = minibatch.rows
        parameters = list(self.policy.parameters())
        if rows.steps:
            with torch_threads(self._threads):
                record = self.minibatch_gradient()(Rows.of(rows, self._device))
            values = self.gradient()
            metrics = dict(zip(METRICS, record.tolist(), strict=True))
        else:
            values = np.zeros(sum(parameter.numel() for parameter in parameters), np.float32)
            metrics = dict.fromkeys(METRICS, float("nan"))
        return Gradients(
            values=values,
            rows=rows.steps,
            steps=minibatch.new_steps,
            version=self.version,
            episodes=minibatch.episodes,
            metrics=metrics,
        )

    @override
    def state(self) -> dict[str, StateValue]:
        """All that the next fragments and updates depend on: the learner's state, and the rollouts'."""
        return {**super().state(), **prefixed(_ROLLOUTS, self._rollouts.state())}

    @override
    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on where the worker stood that gave this state.

        Raises ValueError if it is of another configuration.
        """
        learner = {name: value for name, value in state.items() if not name.startswith(_ROLLOUTS)}
        super().load_state(learner)
        self._rollouts.load_state(under(_ROLLOUTS, state))

    def close(self) -> None:
        """Close the environments; the worker cannot sample after it."""
        self._rollouts.close()
