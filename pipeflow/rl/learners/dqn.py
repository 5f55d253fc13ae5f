"""Deep Q-learning: one optimiser step on a sample of replay, against a target network.

Apart from `learner`, which holds what is not specific to it, and from `losses`, which are of policies.
Sources: Mnih et al., "Human-level control through deep reinforcement learning" (2015); van Hasselt et al., "Deep
Reinforcement Learning with Double Q-learning" (2016).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from typing_extensions import override

from pipeflow.dsl.checks import check_positive
from pipeflow.rl.action_values import ActionValueSpec, QNetwork
from pipeflow.rl.learners.dqn_gradient import ActionValueGradient
from pipeflow.rl.learners.learner import Learner, StepOutcome, flatten_parameters
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.replay_batches import Samples, TDReport
from pipeflow.rl.schedules import Schedule
from pipeflow.rl.threads import torch_threads
from pipeflow.state.values import StateValue, arrays_under

_Values: TypeAlias = Callable[[Tensor], Tensor]  # Q [B, A] of observations [B, *obs]


class DQNLearner(Learner[QNetwork]):
    """Q-learning on samples of one replay buffer or several.

    double: the online network chooses the action whose value the target network gives. target_every: environment
    steps stored from one copy of the online network into the target to the next, counted whatever a vector of
    environments or a batch is wide; None leaves it to `update_target`. tau: how far the target moves at each of
    them, 1 copies. huber: error from which the loss grows linearly. minibatches: optimiser steps of an update,
    each on one of so many equal parts of the sample; the target may move after the last. The rest as in `Learner`;
    steps are environment steps stored.
    Raises ValueError for a target_every, tau, huber or minibatches that is not positive, or a tau over 1.
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
        minibatches: int = 1,
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
        check_positive(minibatches, "minibatches")
        super().__init__(
            policy, lr=lr, max_grad_norm=max_grad_norm, seed=seed, device=device, threads=threads
        )
        self._double = double
        self._target_every = target_every
        self._tau = tau
        self._huber = huber
        self._minibatches = minibatches
        self._target_updates = 0
        self._adopt_target(copy.deepcopy(self.policy))

    def update(self, samples: Samples, /) -> TDReport:
        """Step down the weighted Huber loss of a sample, and then set a new target where one is due.

        Raises ValueError for a sample that cannot be parted into minibatches.
        """
        if samples.steps % self._minibatches != 0:
            message = (
                f"a sample of {samples.steps} rows cannot be parted into {self._minibatches} minibatches"
            )
            raise ValueError(message)
        with torch_threads(self._threads):
            return self._updated(samples)

    def update_target(self) -> None:
        """Move the target network by `tau` towards the online network."""
        with torch.no_grad():
            self._target_parameters.lerp_(self._parameters, self._tau)
            # Buffers are no parameters; a running statistic is copied whole.
            for target, online in self._buffers:
                target.copy_(online)
        self._target_updates += 1

    def _updated(self, samples: Samples) -> TDReport:
        lr = self.begin_update()
        values, targets, outcomes = self._descended(_Rows.of(samples, self._device))
        errors = np.abs(targets - values)
        within = np.minimum(errors, self._huber)
        losses = within * (errors - 0.5 * within)
        if target_due(self.lifetime_steps, self.lifetime_steps + samples.new_env_steps, self._target_every):
            self.update_target()
        report = self.report(
            samples,
            {
                "loss": float(np.dot(samples.weights, losses) / np.add.reduce(samples.weights)),
                "td_error": float(np.add.reduce(errors)) / samples.steps,
                "q_value": float(np.add.reduce(values)) / samples.steps,
                "grad_norm": sum(outcome.gradient_norm for outcome in outcomes) / len(outcomes),
                "learning_rate": lr,
                "target_updates": self._target_updates,
            },
        )
        return TDReport.of(report, samples, errors)

    def _descended(self, rows: _Rows) -> tuple[NDArray[np.float32], NDArray[np.float32], list[StepOutcome]]:
        """One step for each minibatch.

        Returns the values of the actions [B], what they should have been [B], both before their step, and what the
        steps did.
        """
        values: list[Tensor] = []
        targets: list[Tensor] = []
        outcomes: list[StepOutcome] = []
        for minibatch in rows.split(self._minibatches):
            if self._passes is None:
                value, target = self._by_autograd(minibatch)
            else:
                value, target = self._by_hand(minibatch, *self._passes)
            outcomes.append(self.step())
            values.append(value)
            targets.append(target)
        return torch.cat(values).cpu().numpy(), torch.cat(targets).cpu().numpy(), outcomes

    def _by_autograd(self, rows: _Rows) -> tuple[Tensor, Tensor]:
        """Set the parameters' gradient to that of the loss; returns values and targets."""
        with torch.no_grad():
            targets = self._targets(rows, self.policy, self._target)
        values = self.policy(rows.observations).gather(1, rows.actions).squeeze(1)
        losses = functional.huber_loss(values, targets, reduction="none", delta=self._huber)
        self.differentiate((rows.weights * losses).mean())
        return values.detach(), targets

    def _by_hand(
        self, rows: _Rows, online: ActionValueGradient, target: ActionValueGradient
    ) -> tuple[Tensor, Tensor]:
        """What `_by_autograd` does, without a graph."""
        targets = self._targets(rows, online, target)
        passed = online.forward(rows.observations)
        values = passed.values.gather(1, rows.actions).squeeze(1)
        # The derivative of Huber's loss is the error, and no more than its threshold.
        slopes = (values - targets).clamp_(-self._huber, self._huber).mul_(rows.weights).div_(len(values))
        online.backward(
            passed, torch.zeros_like(passed.values).scatter_(1, rows.actions, slopes.unsqueeze(1))
        )
        return values, targets

    def _targets(self, rows: _Rows, online: _Values, target: _Values) -> Tensor:
        """What the values of the sampled actions [B] should be."""
        following = target(rows.next_observations)
        if self._double:
            best = following.gather(1, online(rows.next_observations).argmax(dim=1, keepdim=True)).squeeze(1)
        else:
            best = following.amax(dim=1)
        worthless = rows.terminated
        if self.policy.spec.observations.mask is not None:
            worthless = worthless | best.isneginf()  # where the mask allows no action
        # Not a product: what is read behind a termination may be anything.
        return best.masked_fill_(worthless, 0.0).mul_(rows.discounts).add_(rows.rewards)

    def _adopt_target(self, target: QNetwork) -> None:
        self._target = target.requires_grad_(False)
        self._target_parameters = flatten_parameters(self._target)
        self._buffers = list(zip(self._target.buffers(), self.policy.buffers(), strict=True))
        online, behind = ActionValueGradient.of(self.policy), ActionValueGradient.of(self._target)
        self._passes = None if online is None or behind is None else (online, behind)

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


class _Rows(NamedTuple):
    """Sampled transitions as tensors: see `Samples`. actions: [B, 1]."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    next_observations: Tensor
    terminated: Tensor
    discounts: Tensor
    weights: Tensor

    @classmethod
    def of(cls, samples: Samples, device: torch.device) -> Self:
        """The rows of a sample, on a device."""
        return cls(
            observations=to_tensor(samples.observations, device),
            actions=to_tensor(samples.actions, device).long().unsqueeze(1),
            rewards=to_tensor(samples.rewards, device),
            next_observations=to_tensor(samples.next_observations, device),
            terminated=to_tensor(samples.terminated, device),
            discounts=to_tensor(samples.discounts, device),
            weights=to_tensor(samples.weights, device),
        )

    def split(self, count: int) -> Iterable[_Rows]:
        """So many parts, one after the other."""
        if count == 1:
            return (self,)
        return (_Rows(*columns) for columns in zip(*(column.chunk(count) for column in self), strict=True))


def target_due(before: int, now: int, every: int | None) -> bool:
    """Whether a multiple of `every` environment steps lies after `before` and not after `now`.

    It depends on counters alone: neither on how many steps come at once nor on how often somebody asks.
    """
    return every is not None and now // every > before // every
