"""Deep Q-learning: one optimiser step on a sample of replay, against a target network.

Apart from `learner`, which holds what is not specific to it, and from `losses`, which are of policies.
Sources: Mnih et al., "Human-level control through deep reinforcement learning" (2015); van Hasselt et al., "Deep
Reinforcement Learning with Double Q-learning" (2016).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from typing_extensions import override

from pipeflow.rl.action_values import ActionValueSpec, QNetwork
from pipeflow.rl.learners.learner import Learner, StateValue, arrays_under, flatten_parameters
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.replay_batches import Priorities, Samples, TDReport
from pipeflow.rl.schedules import Schedule
from pipeflow.rl.threads import torch_threads


class DQNLearner(Learner[QNetwork]):
    """Q-learning on samples of one replay buffer or several.

    double: the online network chooses the action whose value the target network gives. target_every: environment
    steps stored from one copy of the online network into the target to the next, counted whatever a vector of
    environments or a batch is wide; None leaves it to `update_target`. tau: how far the target moves at each of
    them, 1 copies. huber: error from which the loss grows linearly. The rest as in `Learner`; steps are
    environment steps stored.
    Raises ValueError for a target_every, tau or huber that is not positive, or a tau over 1.
    """

    def __init__(
        self,
        policy: ActionValueSpec,
        *,
        lr: float | Schedule = 1e-3,
        double: bool = True,
        target_every: int | None = 500,
        tau: float = 1.0,
        huber: float = 1.0,
        max_grad_norm: float | None = 10.0,
        seed: int = 0,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        if target_every is not None and target_every < 1:
            raise ValueError(f"target_every must be at least 1 environment step, got {target_every}")
        if not 0.0 < tau <= 1.0:
            raise ValueError(f"tau must be in (0, 1], got {tau}; 1 copies the online network")
        if huber <= 0.0:
            raise ValueError(f"huber must be positive, got {huber}")
        super().__init__(
            policy, lr=lr, max_grad_norm=max_grad_norm, seed=seed, device=device, threads=threads
        )
        self._double = double
        self._target_every = target_every
        self._tau = tau
        self._huber = huber
        self._target_updates = 0
        self._adopt_target(copy.deepcopy(self.policy))

    def update(self, samples: Samples, /) -> TDReport:
        """One step down the weighted Huber loss of a sample, and then a new target where one is due."""
        with torch_threads(self._threads):
            return self._updated(samples)

    def update_target(self) -> None:
        """Move the target network by `tau` towards the online network."""
        with torch.no_grad():
            self._target_parameters.lerp_(self._parameters, self._tau)
            # Buffers are no parameters; a running statistic is copied whole.
            for target, online in zip(self._target.buffers(), self.policy.buffers(), strict=True):
                target.copy_(online)
        self._target_updates += 1

    def _updated(self, samples: Samples) -> TDReport:
        lr = self.begin_update()
        targets = self._targets(samples)
        observations = to_tensor(samples.observations, self._device)
        actions = to_tensor(samples.actions, self._device).long()
        values = self.policy(observations).gather(1, actions.unsqueeze(1)).squeeze(1)
        losses = functional.huber_loss(values, targets, reduction="none", delta=self._huber)
        outcome = self.descend((to_tensor(samples.weights, self._device) * losses).mean())
        errors = (targets - values.detach()).abs().cpu().numpy().astype(np.float64)
        before = self.lifetime_steps
        self.count_update(samples.new_env_steps)
        if target_due(before, self.lifetime_steps, self._target_every):
            self.update_target()
        return TDReport(
            version=self.version,
            steps=samples.steps,
            lifetime_steps=self.lifetime_steps,
            episodes=samples.episodes,
            metrics={
                "loss": float(np.average(losses.detach().cpu().numpy(), weights=samples.weights)),
                "td_error": float(errors.mean()),
                "q_value": float(values.detach().mean()),
                "grad_norm": outcome.gradient_norm,
                "learning_rate": lr,
                "target_updates": self._target_updates,
                "skipped_updates": self._skipped_updates,
            },
            priorities=Priorities(samples.indices, samples.generations, errors),
        )

    def _targets(self, samples: Samples) -> Tensor:
        """What the values of the sampled actions [B] should be; a constant."""
        with torch.no_grad():
            following = to_tensor(samples.next_observations, self._device)
            values = self._target(following)
            chooser = self.policy(following) if self._double else values
            best = values.gather(1, chooser.argmax(dim=1, keepdim=True)).squeeze(1)
            terminated = to_tensor(samples.terminated, self._device)
            # Not a product: where an episode ended, a mask may allow no action, and the best value is -inf.
            bootstrap = torch.where(terminated | best.isneginf(), 0.0, best)
            return to_tensor(samples.rewards, self._device) + (
                to_tensor(samples.discounts, self._device) * bootstrap
            )

    def _adopt_target(self, target: QNetwork) -> None:
        self._target = target.requires_grad_(False)
        self._target_parameters = flatten_parameters(self._target)

    @override
    def state(self) -> dict[str, StateValue]:
        state = super().state()
        state["target_updates"] = self._target_updates
        for name, array in self._target.parameters_numpy().items():
            state[f"target/{name}"] = array
        return state

    @override
    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        super().load_state(state)
        self._target.load_numpy(arrays_under("target/", state))
        self._target_updates = int(state["target_updates"])

    @override
    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        twin = super().__deepcopy__(memo)
        twin._adopt_target(copy.deepcopy(self._target, memo))
        return twin


def target_due(before: int, now: int, every: int | None) -> bool:
    """Whether a multiple of `every` environment steps lies after `before` and not after `now`.

    It depends on counters alone: neither on how many steps come at once nor on how often somebody asks.
    """
    return every is not None and now // every > before // every
