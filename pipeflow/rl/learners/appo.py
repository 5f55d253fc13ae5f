"""APPO's learner: PPO's clipped epochs on trajectories that older weights made, anchored to a target network.

Apart from `ppo`, whose batches are of the policy that it starts from, and from `impala`, which takes one step for
each batch: here a target network, which changes rarely, stands between the acting and the trained policy. V-trace
corrects from the acting policy to the target, and the clip holds the trained policy near the target, so several
passes over one batch do no harm.
Source: Luo et al., "IMPACT: Importance Weighted Asynchronous Architectures with Clipped Target Networks" (2020),
section 3; the penalty as in Schulman et al., "Proximal Policy Optimization Algorithms" (2017), section 4.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from pipeflow.dsl.checks import check_positive
from pipeflow.rl.batches import Report, Trajectories
from pipeflow.rl.learners.impala import EvaluatedFragment, VTraceSettings
from pipeflow.rl.learners.learner import Learner, StepOutcome
from pipeflow.rl.learners.ppo import run_epochs
from pipeflow.rl.losses import (
    approx_kl,
    clip_fraction,
    clipped_surrogate_loss,
    normalise_advantages,
    value_loss,
)
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.schedules import Schedule
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.threads import torch_threads
from pipeflow.state.values import StateValue, arrays_under

_RATIO_LIMIT = 2.0  # how much likelier than for the target an action may have been for the acting policy


class APPOLearner(Learner):
    """Clipped minibatch epochs for every batch of trajectories, against a target network.

    targets: how V-trace corrects. epochs: passes over a batch. minibatch_size: rows per optimiser step. clip: of
    the probability ratio to the target network. target_every: updates after which the target network becomes what
    the network is. value_coef, entropy_coef: weights in the loss. kl_coef: initial weight of the KL divergence
    from the target network. kl_target: the KL that this weight is adapted to after every update; None keeps it.
    normalise_advantages: within each minibatch. The rest as in `Learner`.
    Raises ValueError for a policy with memory, whose rows cannot be shuffled, and for counts below 1.
    """

    def __init__(
        self,
        policy: PolicySpec,
        *,
        targets: VTraceSettings,
        lr: float | Schedule = 3e-4,
        epochs: int = 2,
        minibatch_size: int = 256,
        clip: float = 0.2,
        target_every: int = 1,
        value_coef: float = 0.5,
        entropy_coef: float = 0.0,
        kl_coef: float = 0.0,
        kl_target: float | None = None,
        max_grad_norm: float | None = 0.5,
        normalise_advantages: bool = True,
        seed: int = 0,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        check_positive(epochs, "epochs")
        check_positive(minibatch_size, "minibatch_size")
        check_positive(target_every, "target_every")
        if policy.state_width:
            raise ValueError(
                "APPO shuffles rows, which a policy with memory cannot be given; use IMPALA or PPO"
            )
        super().__init__(
            policy, lr=lr, max_grad_norm=max_grad_norm, seed=seed, device=device, threads=threads
        )
        self._target = policy.build(derive_seed(seed, "policy"), device).requires_grad_(False)
        self._targets = targets
        self._epochs = epochs
        self._minibatch_size = minibatch_size
        self._clip = clip
        self._target_every = target_every
        self._value_coef = value_coef
        self._entropy_coef = entropy_coef
        self._kl_coef = kl_coef
        self._kl_target = kl_target
        self._normalise = normalise_advantages

    def update(self, batch: Trajectories, /) -> Report:
        """Improve the policy on one batch; `policy_lag` in the report says how many versions older it is."""
        with torch_threads(self._threads):
            return self._updated(batch)

    @override
    def state(self) -> dict[str, StateValue]:
        target = {f"target/{name}": array for name, array in self._target.parameters_numpy().items()}
        return {**super().state(), **target, "kl_coef": self._kl_coef}

    @override
    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        super().load_state(state)
        self._target.load_numpy(arrays_under("target/", state))
        self._kl_coef = float(state["kl_coef"])

    @override
    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        twin = super().__deepcopy__(memo)
        twin._target = copy.deepcopy(self._target, memo)
        return twin

    def _updated(self, batch: Trajectories) -> Report:
        lr = self.begin_update()
        rows = self._rows(batch)
        shuffler = torch.Generator().manual_seed(derive_seed(self._seed, "minibatches", self.version))
        outcomes: list[StepOutcome] = []
        records: list[Tensor] = []
        sizes: list[int] = []

        def assess(indices: Tensor) -> tuple[float, Tensor]:
            loss, record = self._loss(rows.take(indices.to(self._device)))
            records.append(record)
            sizes.append(len(indices))
            return 0.0, loss

        def shuffled() -> Iterator[Tensor]:
            yield from torch.split(torch.randperm(batch.steps, generator=shuffler), self._minibatch_size)

        epochs = self._epochs if batch.steps else 0
        run_epochs(epochs, shuffled, assess, lambda loss: outcomes.append(self.descend(loss)), None)
        means = np.full(len(_METRICS), np.nan)
        if records:
            means = np.average(torch.stack(records).cpu().numpy(), axis=0, weights=sizes)
        norms = [outcome.gradient_norm for outcome in outcomes if outcome.applied]
        metrics = dict(zip(_METRICS, means.tolist(), strict=True))
        report = self.report(
            batch,
            {
                **metrics,
                "kl_coef": self._kl_coef,
                "grad_norm": float(np.mean(norms)) if norms else float("nan"),
                "learning_rate": lr,
                "optimizer_steps": len(norms),
            },
        )
        if self.version % self._target_every == 0:
            self._target.load_state_dict(self.policy.state_dict())
        if records:
            self._kl_coef = adapted(self._kl_coef, metrics["approx_kl"], self._kl_target)
        return report

    def _rows(self, batch: Trajectories) -> _Rows:
        """The real rows, with their targets under the target network: these are the same in every epoch."""
        with torch.no_grad():
            evaluated = EvaluatedFragment.by(self._target, batch, self._device)
        targets = self._targets.of(batch, evaluated)
        valid = batch.valid

        def tensor(array: NDArray[np.generic]) -> Tensor:
            return to_tensor(array[valid], self._device)

        return _Rows(
            observations=tensor(batch.observations),
            actions=tensor(batch.actions),
            log_probs=tensor(batch.log_probs),
            target_log_probs=evaluated.log_probs[to_tensor(valid, self._device)],
            advantages=tensor(targets.advantages),
            value_targets=tensor(targets.value_targets),
        )

    def _loss(self, rows: _Rows) -> tuple[Tensor, Tensor]:
        """The loss of one minibatch, and its record: a vector of the quantities named in _METRICS."""
        log_probs, entropies, values = self.policy.evaluate(rows.observations, rows.actions)
        from_target = log_probs - rows.target_log_probs
        # min(mu / target, limit) * pi / mu, of the acting policy mu and the trained one pi.
        log_ratio = torch.minimum(from_target, log_probs - rows.log_probs + math.log(_RATIO_LIMIT))
        advantages = normalise_advantages(rows.advantages) if self._normalise else rows.advantages
        policy_loss = clipped_surrogate_loss(log_ratio, advantages, self._clip)
        value_error = value_loss(values, rows.value_targets)
        entropy, kl = entropies.mean(), approx_kl(from_target)
        loss = policy_loss + self._value_coef * value_error
        if self._entropy_coef != 0.0:
            loss = loss - self._entropy_coef * entropy
        if self._kl_coef != 0.0:
            loss = loss + self._kl_coef * kl
        record = [policy_loss, value_error, entropy, kl, clip_fraction(log_ratio, self._clip)]
        return loss, torch.stack(record).detach()


_METRICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")


def adapted(coefficient: float, kl: float, target: float | None) -> float:
    """The weight of the KL penalty after an update whose KL was `kl`; without a target it stays.

    Source: Schulman et al. (2017), section 4.
    """
    if target is None or target / 1.5 <= kl <= target * 1.5:
        return coefficient
    return coefficient * 2.0 if kl > target else coefficient / 2.0


@dataclass(frozen=True, eq=False)
class _Rows:
    """The real rows of a batch as tensors, with the log-probabilities of the acting and of the target policy."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    target_log_probs: Tensor
    advantages: Tensor
    value_targets: Tensor

    def take(self, indices: Tensor) -> _Rows:
        return _Rows(
            self.observations.index_select(0, indices),
            self.actions.index_select(0, indices),
            self.log_probs.index_select(0, indices),
            self.target_log_probs.index_select(0, indices),
            self.advantages.index_select(0, indices),
            self.value_targets.index_select(0, indices),
        )
