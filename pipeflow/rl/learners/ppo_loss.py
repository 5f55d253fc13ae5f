"""PPO's loss of a minibatch: differentiable for any policy, and its gradient in closed form for categorical ones.

Apart from `ppo`, which decides what is trained on when. The closed form is the derivative of the same formulas;
with `backpropagation` it spares small networks autograd's graph, which costs more than their arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from pipeflow.rl.distributions import masked
from pipeflow.rl.learners.ppo_rows import Rows
from pipeflow.rl.losses import (
    approx_kl,
    clip_fraction,
    clipped_surrogate_loss,
    normalise_advantages,
    value_loss,
)
from pipeflow.rl.policies import ActorCritic

METRICS: tuple[str, ...] = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")


class OutputGradient(NamedTuple):
    """The gradient of a mean loss in the logits [B, K] and in the values [B], and the record of METRICS."""

    logits: Tensor
    values: Tensor
    record: Tensor


@dataclass(frozen=True)
class PPOLoss:
    """The clipped surrogate, the value loss and the entropy bonus, each a mean over rows.

    clip: of the probability ratio. value_clip: of the change of a value, None for none. value_coef,
    entropy_coef: weights. normalise: the advantages of a minibatch to mean 0 and standard deviation 1.

    A subclass may add to the loss by overriding `__call__`, and to what is recorded by overriding `metrics`, the
    names of what is in a record, as well; those of METRICS come first.
    """

    metrics: ClassVar[tuple[str, ...]] = METRICS

    clip: float = 0.2
    value_clip: float | None = None
    value_coef: float = 0.5
    entropy_coef: float = 0.0
    normalise: bool = True

    def __call__(self, policy: ActorCritic, rows: Rows) -> tuple[Tensor, Tensor]:
        """The loss, differentiable, and its record: a vector of the quantities named in `metrics`."""
        log_probs, entropies, values = policy.evaluate(rows.observations, rows.actions, rows.sequences)
        log_ratio = log_probs - rows.log_probs
        policy_loss = clipped_surrogate_loss(log_ratio, self._advantages(rows), self.clip)
        value_error = value_loss(values, rows.value_targets, rows.values, self.value_clip)
        entropy = entropies.mean()
        loss = policy_loss + self.value_coef * value_error
        if self.entropy_coef != 0.0:
            loss = loss - self.entropy_coef * entropy
        with torch.no_grad():
            record = [
                policy_loss,
                value_error,
                entropy,
                approx_kl(log_ratio),
                clip_fraction(log_ratio, self.clip),
            ]
            return loss, torch.stack(record)

    def categorical_gradient(
        self, logits: Tensor, values: Tensor, rows: Rows, mask: slice | None
    ) -> OutputGradient:
        """The derivative of the loss of a categorical policy in what its network gave.

        logits: [B, K]. values: [B]. mask: where the observations say which actions are allowed, None for all.
        Raises NoValidAction if the mask of a row allows no action.
        """
        if mask is not None:
            logits = masked(logits, rows.observations[:, mask] != 0, (logits.shape[1],))
        actions = rows.actions.unsqueeze(1)
        log_probabilities = torch.log_softmax(logits, dim=1)
        probabilities = log_probabilities.exp()
        if mask is not None:  # 0 * -inf is no entropy
            log_probabilities = log_probabilities.clamp(min=torch.finfo(logits.dtype).min)
        log_ratio = log_probabilities.gather(1, actions).squeeze(1) - rows.log_probs
        entropies = (probabilities * log_probabilities).sum(dim=1).neg_()
        ratio_change = log_ratio.expm1()  # exact where the ratio is close to 1, as the divergence needs it
        ratio = ratio_change + 1.0

        advantages = self._advantages(rows)
        unclipped, clipped = ratio * advantages, ratio.clamp(1.0 - self.clip, 1.0 + self.clip) * advantages
        surrogates = torch.minimum(unclipped, clipped)
        share = 1.0 / len(values)  # of a row in a mean
        # d ratio / d log_prob is the ratio itself; where the clipped one is less, it is a constant. (Put so that a
        # nan is kept, and the step skipped.)
        by_log_prob = torch.where(clipped < unclipped, 0.0, unclipped).mul_(-share).unsqueeze(1)
        # d log_prob / d logits is one at the action, less the probabilities.
        by_logits = (probabilities * by_log_prob).neg_().scatter_add_(1, actions, by_log_prob)
        if self.entropy_coef != 0.0:
            # d entropy / d logits is -p (log p + entropy).
            surprises = log_probabilities + entropies.unsqueeze(1)
            by_logits += (probabilities * surprises).mul_(self.entropy_coef * share)

        errors = values - rows.value_targets
        squares = errors.square()
        if self.value_clip is not None:
            change = values - rows.values
            clipped_errors = (
                rows.values + change.clamp(-self.value_clip, self.value_clip) - rows.value_targets
            )
            clipped_squares = clipped_errors.square()
            # Inside of the clip the two are one; outside of it the clipped one is a constant.
            constant = (squares < clipped_squares) & (change.abs() > self.value_clip)
            errors = errors.masked_fill(constant, 0.0)
            squares = torch.maximum(squares, clipped_squares)
        quantities = (
            surrogates.neg_(),
            squares,
            entropies,
            ratio_change - log_ratio,
            (ratio_change.abs() > self.clip).to(values.dtype),
        )
        return OutputGradient(
            by_logits,
            errors.mul(2.0 * self.value_coef * share),
            torch.stack(quantities).mean(dim=1),
        )

    def _advantages(self, rows: Rows) -> Tensor:
        return normalise_advantages(rows.advantages) if self.normalise else rows.advantages
