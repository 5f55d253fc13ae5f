"""Proximal policy optimisation: clipped updates over several epochs of shuffled minibatches.

Apart from `learner`, which holds what is not specific to PPO, and from `losses`, which holds the formulas.
Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017); the details after Huang et al.,
"The 37 Implementation Details of PPO" (2022), with the value loss a plain mean squared error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeflow.rl.batches import Advantages, Report, Sequences
from pipeflow.rl.learners.learner import Learner, StepOutcome
from pipeflow.rl.losses import (
    approx_kl,
    clip_fraction,
    clipped_surrogate_loss,
    explained_variance,
    normalise_advantages,
    value_loss,
)
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.schedules import Schedule
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.threads import torch_threads

_Minibatch = TypeVar("_Minibatch")
_Loss = TypeVar("_Loss")

_KL_TOLERANCE = 1.5  # how far over target_kl a minibatch may be: the factor of OpenAI's Spinning Up


class PPOLearner(Learner):
    """PPO over batches of rows with advantages.

    epochs: passes over a batch. minibatch_size: rows per optimiser step; the last of an epoch may be shorter,
    and its loss is the mean over its own rows. A policy with memory is given whole sequences, so that its
    minibatches have about so many rows. clip: of the probability ratio. value_clip: of the change of a
    value, None for none. value_coef, entropy_coef: weights in the loss. target_kl: stops the update at the
    first minibatch whose approximate KL is over 1.5 times this, before that minibatch's step; None never
    stops. normalise_advantages: within each minibatch. The rest as in `Learner`.
    """

    def __init__(
        self,
        policy: PolicySpec,
        *,
        lr: float | Schedule = 3e-4,
        epochs: int = 4,
        minibatch_size: int = 256,
        clip: float = 0.2,
        value_clip: float | None = None,
        value_coef: float = 0.5,
        entropy_coef: float = 0.0,
        max_grad_norm: float | None = 0.5,
        target_kl: float | None = None,
        normalise_advantages: bool = True,
        seed: int = 0,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        if epochs < 1 or minibatch_size < 1:
            raise ValueError(
                f"epochs and minibatch_size must be at least 1, got {epochs} and {minibatch_size}"
            )
        super().__init__(
            policy, lr=lr, max_grad_norm=max_grad_norm, seed=seed, device=device, threads=threads
        )
        self._epochs = epochs
        self._minibatch_size = minibatch_size
        self._clip = clip
        self._value_clip = value_clip
        self._value_coef = value_coef
        self._entropy_coef = entropy_coef
        self._kl_limit = None if target_kl is None else _KL_TOLERANCE * target_kl
        self._normalise = normalise_advantages

    def update(self, batch: Advantages, /) -> Report:
        """Improve the policy on one batch.

        It should be of the newest weights: `policy_lag` in the report says how many versions older it is.
        A batch with fewer rows than a minibatch is one minibatch: how many of a round's rows are reset rows,
        which are dropped, cannot be known beforehand. A batch without rows changes nothing, but counts as an
        update.
        Raises ValueError if the policy has a memory and the batch does not say what its sequences are.
        """
        with torch_threads(self._threads):
            return self._updated(batch)

    def _updated(self, batch: Advantages) -> Report:
        lr = self.begin_update()
        if batch.steps == 0:
            return self._report(batch, lr, {}, optimizer_steps=0, complete_epochs=0)
        rows = Rows.of(batch, self._device)
        shuffler = torch.Generator().manual_seed(derive_seed(self._seed, "minibatches", self.version))
        outcomes: list[StepOutcome] = []
        records: list[Tensor] = []
        sizes: list[int] = []

        def assess(minibatch: Rows) -> tuple[float, Tensor]:
            loss, record = self.loss(minibatch)
            records.append(record)
            sizes.append(len(minibatch.advantages))
            kl = 0.0 if self._kl_limit is None else record[METRICS.index("approx_kl")].item()
            return kl, loss

        def shuffled() -> Iterator[Rows]:
            return rows.shuffled(self._minibatch_size, shuffler)

        passes = run_epochs(
            self._epochs, shuffled, assess, lambda loss: outcomes.append(self.descend(loss)), self._kl_limit
        )
        means = np.average(torch.stack(records).cpu().numpy(), axis=0, weights=sizes)
        norms = [outcome.gradient_norm for outcome in outcomes if outcome.applied]
        losses = {
            **dict(zip(METRICS, means.tolist(), strict=True)),
            "explained_variance": explained_variance(rows.values, rows.value_targets).item(),
            "grad_norm": float(np.mean(norms)) if norms else float("nan"),
        }
        return self._report(batch, lr, losses, len(norms), passes.complete_epochs)

    def _report(
        self,
        batch: Advantages,
        lr: float,
        losses: dict[str, float],
        optimizer_steps: int,
        complete_epochs: int,
    ) -> Report:
        return self.report(
            batch,
            {
                **losses,
                "learning_rate": lr,
                "optimizer_steps": optimizer_steps,
                "complete_epochs": complete_epochs,
            },
        )

    def loss(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """The loss of one minibatch, and its record: a vector of the quantities named in METRICS."""
        log_probs, entropies, values = self.policy.evaluate(rows.observations, rows.actions, rows.sequences)
        log_ratio = log_probs - rows.log_probs
        advantages = normalise_advantages(rows.advantages) if self._normalise else rows.advantages
        policy_loss = clipped_surrogate_loss(log_ratio, advantages, self._clip)
        value_error = value_loss(values, rows.value_targets, rows.values, self._value_clip)
        entropy = entropies.mean()
        loss = policy_loss + self._value_coef * value_error
        if self._entropy_coef != 0.0:
            loss = loss - self._entropy_coef * entropy
        with torch.no_grad():
            record = [
                policy_loss,
                value_error,
                entropy,
                approx_kl(log_ratio),
                clip_fraction(log_ratio, self._clip),
            ]
            return loss, torch.stack(record)


METRICS: tuple[str, ...] = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")


@dataclass(frozen=True)
class EpochsDone:
    """How far a loop over epochs came.

    steps: minibatches applied. complete_epochs: epochs that no stop cut short.
    """

    steps: int
    complete_epochs: int


def run_epochs(
    epochs: int,
    minibatches: Callable[[], Iterable[_Minibatch]],
    assess: Callable[[_Minibatch], tuple[float, _Loss]],
    apply: Callable[[_Loss], object],
    kl_limit: float | None,
) -> EpochsDone:
    """Go over the minibatches epoch by epoch, until the KL of one is over the limit; that one is not applied.

    minibatches: called once an epoch. assess: a minibatch's approximate KL, and its loss. apply: takes the
    step. kl_limit: None never stops.
    """
    steps = 0
    for epoch in range(epochs):
        for minibatch in minibatches():
            kl, loss = assess(minibatch)
            if kl_limit is not None and kl > kl_limit:
                return EpochsDone(steps, complete_epochs=epoch)
            apply(loss)
            steps += 1
    return EpochsDone(steps, complete_epochs=epochs)


def split_by_rows(
    order: NDArray[np.int64], lengths: NDArray[np.int64], rows: int
) -> Sequence[NDArray[np.int64]]:
    """Consecutive parts of `order`, indices of sequences of these lengths, each with about so many rows.

    A part ends with the sequence that reaches the next multiple of `rows`; no part is empty.
    """
    starts = np.cumsum(lengths[order]) - lengths[order]
    return np.split(order, np.flatnonzero(np.diff(starts // rows)) + 1)


@dataclass(frozen=True, eq=False)
class Rows:
    """The columns of `Advantages` as tensors."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    value_targets: Tensor
    sequences: Sequences | None

    @classmethod
    def of(cls, batch: Advantages, device: torch.device) -> Rows:
        return cls(
            to_tensor(batch.observations, device),
            to_tensor(batch.actions, device),
            to_tensor(batch.log_probs, device),
            to_tensor(batch.values, device),
            to_tensor(batch.advantages, device),
            to_tensor(batch.value_targets, device),
            batch.sequences,
        )

    def shuffled(self, minibatch_size: int, generator: torch.Generator) -> Iterator[Rows]:
        """All rows in random order, in minibatches of that many, or of whole sequences with about so many."""
        if self.sequences is None:
            for indices in torch.split(
                torch.randperm(len(self.advantages), generator=generator), minibatch_size
            ):
                yield self.take(indices, None)
            return
        order = torch.randperm(len(self.sequences.lengths), generator=generator).numpy()
        for chosen in split_by_rows(order, self.sequences.lengths, minibatch_size):
            sequences, rows = self.sequences.take(chosen)
            yield self.take(torch.from_numpy(rows), sequences)

    def take(self, indices: Tensor, sequences: Sequences | None) -> Rows:
        indices = indices.to(self.advantages.device)
        return Rows(
            self.observations.index_select(0, indices),
            self.actions.index_select(0, indices),
            self.log_probs.index_select(0, indices),
            self.values.index_select(0, indices),
            self.advantages.index_select(0, indices),
            self.value_targets.index_select(0, indices),
            sequences,
        )
