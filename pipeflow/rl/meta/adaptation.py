"""The inner loop of meta-learning: a policy's parameters after gradient steps on rollouts of one task.

Apart from the worker, which adapts to act, and from the learner, which differentiates through the adaptation:
both call this one function, so that the learner optimises the very policy that the worker had acted with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.func import functional_call

from pipeflow.rl.batches import Advantages
from pipeflow.rl.losses import normalise_advantages
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.policies import ActorCritic

Parameters: TypeAlias = Mapping[str, Tensor]
"""A policy's parameters by name."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """The columns of `Advantages` as tensors; the advantages have mean 0 and deviation 1."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor

    @classmethod
    def of(cls, batch: Advantages, device: torch.device) -> Rollout:
        """The batch on `device`."""
        return cls(
            to_tensor(batch.observations, device),
            to_tensor(batch.actions, device),
            to_tensor(batch.log_probs, device),
            normalise_advantages(to_tensor(batch.advantages, device)),
        )


def log_ratio(policy: ActorCritic, parameters: Parameters, rollout: Rollout) -> Tensor:
    """log pi(a|s) of the policy with these parameters, less that of the policy that acted: [B]."""
    distribution, _ = functional_call(policy, dict(parameters), (rollout.observations,))
    log_probs: Tensor = distribution.log_prob(rollout.actions)
    return log_probs - rollout.log_probs


def adapted(
    policy: ActorCritic,
    parameters: Parameters,
    rollouts: Sequence[Rollout],
    step_size: float,
    *,
    differentiable: bool,
) -> Parameters:
    """The parameters after one step of gradient ascent on each of the rollouts, in order.

    What is ascended is the mean of the probability ratio times the advantage. Its gradient is the policy
    gradient, and its second derivative, unlike that of the log-probability, is an estimate of the policy
    gradient's own derivative: the low variance curvature estimator of Rothfuss et al., "ProMP: Proximal
    Meta-Policy Search" (2019), section 4.

    policy: whose network it is; its own parameters are not read. parameters: to start from, which require
    gradients. rollouts: each collected with the parameters after the steps before it. differentiable: whether
    the steps themselves are differentiated later; without, the result depends on `parameters` as if every
    gradient were a constant (first-order MAML).
    Source: Finn et al., "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks" (2017), algorithm 3.
    """
    for rollout in rollouts:
        objective = (log_ratio(policy, parameters, rollout).exp() * rollout.advantages).mean()
        # A policy has parameters that its actions do not depend on, such as a value head: their gradient is 0.
        gradients = torch.autograd.grad(
            objective, list(parameters.values()), create_graph=differentiable, materialize_grads=True
        )
        parameters = {
            name: parameter + step_size * gradient
            for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True)
        }
    return parameters
