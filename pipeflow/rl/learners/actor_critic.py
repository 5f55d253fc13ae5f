"""The advantage actor-critic: its loss, and the worker that differentiates it.

Apart from `ppo`, which takes steps of data and descends by itself: here the gradient is an item of the plan, so
that the plan decides whether gradients are averaged (A2C) or applied as they come (A3C).
Source: Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning" (2016), section 4, with GAE in
place of n-step advantages, and Adam in place of RMSProp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeflow.rl.batches import Advantages
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.gradients import Gradients
from pipeflow.rl.losses import normalise_advantages, value_loss
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.policies import ActorCritic, PolicySpec
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.threads import torch_threads


@dataclass(frozen=True)
class ActorCriticLoss:
    """The loss of advantage actor-critic methods.

    value_coef, entropy_coef: weights of the value loss and of the entropy bonus. normalise: scale the
    advantages of a batch to mean 0 and standard deviation 1.
    """

    value_coef: float = 0.5
    entropy_coef: float = 0.01
    normalise: bool = False

    def __call__(self, policy: ActorCritic, batch: Advantages) -> tuple[Tensor, Tensor]:
        """The mean loss over the rows, differentiable, and its parts: policy loss, value loss, entropy."""
        log_probs, entropies, values = policy.evaluate(
            to_tensor(batch.observations, "cpu"), to_tensor(batch.actions, "cpu"), batch.sequences
        )
        advantages = to_tensor(batch.advantages, "cpu")
        if self.normalise:
            advantages = normalise_advantages(advantages)
        policy_loss = -(log_probs * advantages).mean()
        value_error = value_loss(values, to_tensor(batch.value_targets, "cpu"))
        entropy = entropies.mean()
        loss = policy_loss + self.value_coef * value_error - self.entropy_coef * entropy
        return loss, torch.stack([policy_loss, value_error, entropy]).detach()


class GradientWorker(RolloutWorker):
    """A rollout worker that differentiates the loss of what it sampled, at the weights that it sampled with.

    loss: what is differentiated. The rest as in `RolloutWorker`.
    """

    def __init__(
        self,
        env: EnvSpec,
        policy: PolicySpec,
        *,
        loss: ActorCriticLoss,
        num_envs: int = 8,
        fragment_length: int = 128,
        seed: int = 0,
        index: int | None = None,
        gamma: float = 0.99,
        normalise_observations: bool = False,
        normalise_rewards: bool = False,
        threads: int = 1,
    ) -> None:
        super().__init__(
            env,
            policy,
            num_envs=num_envs,
            fragment_length=fragment_length,
            seed=seed,
            index=index,
            gamma=gamma,
            normalise_observations=normalise_observations,
            normalise_rewards=normalise_rewards,
            threads=threads,
        )
        self._loss = loss

    def gradients(self, batch: Advantages, /) -> Gradients:
        """The gradient of the mean loss over the rows of this worker's own batch.

        Of a batch without rows it is zero, with no steps, so that nothing is learnt from it.
        """
        policy = self._policy
        assert isinstance(policy, ActorCritic)  # a PolicySpec builds nothing else
        parameters = list(policy.parameters())
        if batch.steps:
            with torch_threads(self._threads):
                loss, parts = self._loss(policy, batch)
                found = torch.autograd.grad(loss, parameters, materialize_grads=True)
                values = torch.cat([gradient.reshape(-1) for gradient in found]).numpy()
            metrics = dict(zip(_METRICS, parts.tolist(), strict=True))
        else:
            values = np.zeros(sum(parameter.numel() for parameter in parameters), np.float32)
            metrics = dict.fromkeys(_METRICS, float("nan"))
        return Gradients(
            values=values,
            rows=batch.steps,
            steps=batch.steps,
            version=batch.version,
            episodes=batch.episodes,
            observation_moments=batch.observation_moments,
            return_moments=batch.return_moments,
            metrics=metrics,
        )


_METRICS: tuple[str, ...] = ("policy_loss", "value_loss", "entropy")
