"""Proximal policy optimisation: clipped updates over several epochs of shuffled minibatches.

Apart from `learner`, which holds what is not specific to PPO, and from `ppo_loss`, which holds what is optimised.
Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017); the details after Huang et al.,
"The 37 Implementation Details of PPO" (2022), with the value loss a plain mean squared error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from pipeflow.rl.backpropagation import PerceptronGradient
from pipeflow.rl.batches import Advantages, Report
from pipeflow.rl.learners.learner import Learner, StepOutcome
from pipeflow.rl.learners.ppo_loss import METRICS, PPOLoss
from pipeflow.rl.learners.ppo_rows import Rows
from pipeflow.rl.losses import explained_variance
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.schedules import Schedule
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.threads import torch_threads

_Minibatch = TypeVar("_Minibatch")
_Assessed = TypeVar("_Assessed")

_KL_TOLERANCE = 1.5  # how far over target_kl a minibatch may be: the factor of OpenAI's Spinning Up


class PPOLearner(Learner):
    """PPO over batches of rows with advantages.

    epochs: passes over a batch. minibatch_size: rows per optimiser step; the last of an epoch may be shorter,
    and its loss is the mean over its own rows. A policy with memory is given whole sequences, so that its
    minibatches have about so many rows. clip: of the probability ratio. value_clip: of the change of a
    value, None for none. value_coef, entropy_coef: weights in the loss. target_kl: stops the update at the
    first minibatch whose approximate KL is over 1.5 times this, before that minibatch's step; None never
    stops. normalise_advantages: within each minibatch. loss: one of your own, of a subclass of `PPOLoss`, in place
    of the one that clip, value_clip, value_coef, entropy_coef and normalise_advantages describe. The rest as in
    `Learner`.
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
        loss: PPOLoss | None = None,
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
        self.loss = loss or PPOLoss(clip, value_clip, value_coef, entropy_coef, normalise_advantages)
        self._kl_limit = None if target_kl is None else _KL_TOLERANCE * target_kl

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
        gradient_of = self.minibatch_gradient()
        outcomes: list[StepOutcome] = []
        records: list[Tensor] = []
        sizes: list[int] = []

        def assess(minibatch: Rows) -> tuple[float, None]:
            records.append(gradient_of(minibatch))
            sizes.append(len(minibatch.advantages))
            return 0.0 if self._kl_limit is None else records[-1][METRICS.index("approx_kl")].item(), None

        def shuffled() -> Iterator[Rows]:
            return rows.shuffled(self._minibatch_size, shuffler)

        passes = run_epochs(
            self._epochs, shuffled, assess, lambda _: outcomes.append(self.step()), self._kl_limit
        )
        means = np.average(torch.stack(records).cpu().numpy(), axis=0, weights=sizes)
        norms = [outcome.gradient_norm for outcome in outcomes if outcome.applied]
        losses = {
            **dict(zip(self.loss.metrics, means.tolist(), strict=True)),
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

    def minibatch_gradient(self) -> Callable[[Rows], Tensor]:
        """What sets the parameters' gradient to that of a minibatch's loss, and returns its record.

        In closed form for `PPOLoss` itself where the policy is a perceptron over categories, else by autograd. It
        is good for as long as the parameters keep their memory, so for an update.
        """
        passes = PerceptronGradient.of(self.policy)
        known = type(self.loss) is PPOLoss and self.policy.spec.actions.kind == "categorical"
        if passes is None or not known:
            return self._by_autograd
        return partial(self._in_closed_form, passes)

    def _by_autograd(self, rows: Rows) -> Tensor:
        loss, record = self.loss(self.policy, rows)
        self.differentiate(loss)
        return record

    @torch.no_grad()
    def _in_closed_form(self, passes: PerceptronGradient, rows: Rows) -> Tensor:
        passed = passes.forward(rows.observations)
        mask = self.policy.spec.observations.mask
        found = self.loss.categorical_gradient(passed.outputs, passed.values, rows, mask)
        passes.backward(passed, found.logits, found.values)
        return found.record


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
    assess: Callable[[_Minibatch], tuple[float, _Assessed]],
    apply: Callable[[_Assessed], object],
    kl_limit: float | None,
) -> EpochsDone:
    """Go over the minibatches epoch by epoch, until the KL of one is over the limit; that one is not applied.

    minibatches: called once an epoch. assess: a minibatch's approximate KL, and what `apply`, which takes the
    step, needs to know of it. kl_limit: None never stops.
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
