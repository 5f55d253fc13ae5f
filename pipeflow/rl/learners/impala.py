"""IMPALA's learner: an actor-critic on trajectories that older weights made, corrected by V-trace.

Apart from `actor_critic`, whose targets the workers compute with the values of the policy that acted: here the
targets are of the current policy and the current values, so they are computed where those are. How a fragment
is evaluated stands here too, since APPO (`pipeflow.rl.learners.appo`) evaluates its target network alike.
Source: Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner
Architectures" (2018), section 4.2, with Adam in place of RMSProp and means in place of sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeflow.rl.batches import Report, Sequences, Trajectories
from pipeflow.rl.learners.learner import Learner
from pipeflow.rl.losses import masked_mean, normalise_advantages
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.policies import ActorCritic, PolicySpec
from pipeflow.rl.schedules import Schedule
from pipeflow.rl.threads import torch_threads
from pipeflow.rl.vtrace import vtrace

_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True)
class VTraceSettings:
    """How V-trace corrects: gamma, the discount, lam and the clips of `pipeflow.rl.vtrace.vtrace`."""

    gamma: float = 0.99
    lam: float = 1.0
    rho_clip: float = 1.0
    c_clip: float = 1.0

    def of(self, batch: Trajectories, evaluated: EvaluatedFragment) -> VTraceTargets:
        """Targets for the policy that evaluated the batch, of scaled rewards."""
        value_targets, advantages = vtrace(
            evaluated.log_probs.detach().cpu().numpy() - batch.log_probs,
            batch.rewards * batch.reward_scale,
            evaluated.values.detach().cpu().numpy(),
            evaluated.next_values,
            batch.terminated,
            batch.truncated,
            self.gamma,
            lam=self.lam,
            rho_clip=self.rho_clip,
            c_clip=self.c_clip,
            advantage_rho_clip=self.rho_clip,
            valid=batch.valid,
        )
        return VTraceTargets(value_targets.astype(np.float32), advantages.astype(np.float32))


@dataclass(frozen=True, eq=False)
class VTraceTargets:
    """What a policy learns from a fragment: value_targets and advantages, [T, N]."""

    value_targets: NDArray[np.float32]
    advantages: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EvaluatedFragment:
    """What a policy says of a fragment that another one acted out.

    log_probs: [T, N], of the fragment's actions. entropies, values: [T, N]. These three are differentiable.
    next_values: [T, N], V of the true next observations; without meaning where `terminated`.
    """

    log_probs: Tensor
    entropies: Tensor
    values: Tensor
    next_values: NDArray[np.float32]

    @classmethod
    def by(cls, policy: ActorCritic, batch: Trajectories, device: torch.device) -> EvaluatedFragment:
        """Evaluate all rows in one pass, and with them the observations that end an episode or the fragment."""
        length, width = batch.rewards.shape
        rows, ends = length * width, len(batch.final_rows)
        observations = np.concatenate(
            [_rows(batch.observations), batch.last_observations, batch.final_observations]
        )
        if policy.spec.observations.mask is not None:
            # Where nobody acts, or it does not matter how, a mask may allow nothing: that is no fault.
            unread = np.concatenate([~_rows(batch.valid), np.ones(width + ends, np.bool_)])
            observations[unread, policy.spec.observations.mask] = 1
        no_actions = np.zeros((width + ends, *batch.actions.shape[2:]), batch.actions.dtype)
        actions = np.concatenate([_rows(batch.actions), no_actions])
        if batch.initial_state.shape[1]:
            order, sequences = _episodes(batch)
            back = to_tensor(np.argsort(order), device)
            found = policy.evaluate(
                to_tensor(observations[order], device), to_tensor(actions[order], device), sequences
            )
            log_probs, entropies, values = (column[back] for column in found)
        else:
            log_probs, entropies, values = policy.evaluate(
                to_tensor(observations, device), to_tensor(actions, device)
            )
        known = values.detach().cpu().numpy()
        next_values = known[width : rows + width].copy()
        next_values[batch.final_rows] = known[rows + width :]
        shape = (length, width)
        return cls(
            log_probs=log_probs[:rows].view(shape),
            entropies=entropies[:rows].view(shape),
            values=values[:rows].view(shape),
            next_values=next_values.reshape(shape),
        )


def _episodes(batch: Trajectories) -> tuple[NDArray[np.int64], Sequences]:
    """The rows of a fragment, its last observations and its final ones, numbered in this order, as sequences.

    Each sequence is what the fragment holds of one episode, with the observation that follows its last row; a
    reset row is a sequence of its own. Returns the order in which the rows are sequences, and these.
    """
    length, width = batch.rewards.shape
    final_times, final_columns = np.divmod(batch.final_rows, width)
    columns = np.concatenate([np.tile(np.arange(width), length + 1), final_columns])
    # A final observation stands between the row that led to it and the next.
    times = np.concatenate([np.repeat(np.arange(length + 1), width), final_times + 0.5])
    closes = np.concatenate([~_rows(batch.valid), np.ones(width + len(final_times), np.bool_)])
    order = np.lexsort((times, columns))
    starts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(closes[order])[:-1] + 1])
    first = order[starts]
    # Only an episode that the fragment before this one began has a state that is not zero.
    states = np.where((times[first] == 0)[:, None], batch.initial_state[columns[first]], np.float32(0.0))
    return order, Sequences(np.diff(starts, append=len(order)), states)


def _rows(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    return array.reshape(-1, *array.shape[2:])


class IMPALALearner(Learner):
    """One optimiser step for every batch of trajectories, however old.

    targets: how V-trace corrects. value_coef, entropy_coef: weights in the loss. normalise: scale the advantages
    of a batch to mean 0 and standard deviation 1. The rest as in `Learner`.
    """

    def __init__(
        self,
        policy: PolicySpec,
        *,
        targets: VTraceSettings,
        lr: float | Schedule = 3e-4,
        value_coef: float = 0.5,
        entropy_coef: float = 0.01,
        normalise: bool = False,
        max_grad_norm: float | None = 0.5,
        seed: int = 0,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        super().__init__(
            policy, lr=lr, max_grad_norm=max_grad_norm, seed=seed, device=device, threads=threads
        )
        self._targets = targets
        self._value_coef = value_coef
        self._entropy_coef = entropy_coef
        self._normalise = normalise

    def update(self, batch: Trajectories, /) -> Report:
        """Improve the policy on one batch; `policy_lag` in the report says how many versions older it is."""
        with torch_threads(self._threads):
            lr = self.begin_update()
            loss, metrics = self._loss(batch)
            outcome = self.descend(loss)
        named = dict(zip(_METRICS, metrics.tolist(), strict=True))
        return self.report(batch, {**named, "grad_norm": outcome.gradient_norm, "learning_rate": lr})

    def _loss(self, batch: Trajectories) -> tuple[Tensor, Tensor]:
        """The loss, and a vector of the quantities named in _METRICS."""
        evaluated = EvaluatedFragment.by(self.policy, batch, self._device)
        targets = self._targets.of(batch, evaluated)
        valid = to_tensor(batch.valid, self._device)
        advantages = to_tensor(targets.advantages, self._device)
        if self._normalise:
            advantages = normalise_advantages(advantages, valid)
        errors = (evaluated.values - to_tensor(targets.value_targets, self._device)).square()
        ratios = (evaluated.log_probs.detach() - to_tensor(batch.log_probs, self._device)).exp()
        policy_loss = masked_mean(-evaluated.log_probs * advantages, valid)
        value_error = masked_mean(errors, valid)
        entropy = masked_mean(evaluated.entropies, valid)
        loss = policy_loss + self._value_coef * value_error - self._entropy_coef * entropy
        record = torch.stack([policy_loss, value_error, entropy, masked_mean(ratios, valid)])
        return loss, record.detach()


_METRICS = ("policy_loss", "value_loss", "entropy", "importance_ratio")
