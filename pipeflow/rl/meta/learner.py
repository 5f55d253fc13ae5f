"""The learner of MAML: improves the parameters that adaptation starts from, by what adaptation made of them.

Apart from the other learners because its gradient goes through the gradient steps that the workers took.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.learners.learner import Learner
from pipeflow.rl.losses import approx_kl, clip_fraction, clipped_surrogate_loss
from pipeflow.rl.meta.adaptation import Rollout, adapted, log_ratio
from pipeflow.rl.meta.rollouts import TaskRollouts
from pipeflow.rl.meta.worker import check_adaptable
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.schedules import Schedule
from pipeflow.rl.threads import torch_threads

_METRICS = ("policy_loss", "approx_kl", "clip_fraction")


class MAMLLearner(Learner):
    """Model-agnostic meta-learning with a clipped surrogate as the outer objective.

    step_size: of the gradient steps that adapt, the same as the workers'. first_order: treat the gradients of
    those steps as constants, which is cheaper and usually worse. epochs: optimiser steps on the tasks of an
    update, each on all of them. clip: of the probability ratio after adaptation. The rest as in `Learner`.
    Sources: Finn et al., "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks" (2017), algorithm
    3; the outer objective and its epochs after Rothfuss et al., "ProMP: Proximal Meta-Policy Search" (2019),
    algorithm 1, without its penalty on the divergence before adaptation.
    """

    def __init__(
        self,
        policy: PolicySpec,
        *,
        step_size: float = 0.1,
        first_order: bool = False,
        lr: float | Schedule = 1e-3,
        epochs: int = 5,
        clip: float = 0.3,
        max_grad_norm: float | None = 0.5,
        seed: int = 0,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        if epochs < 1:
            raise ValueError(f"epochs must be at least 1, got {epochs}")
        check_adaptable(policy)
        super().__init__(
            policy, lr=lr, max_grad_norm=max_grad_norm, seed=seed, device=device, threads=threads
        )
        self._step_size = step_size
        self._first_order = first_order
        self._epochs = epochs
        self._clip = clip

    def meta_update(self, tasks: list[TaskRollouts], /) -> Report:
        """Improve the last rollouts of the tasks, every task weighing the same, through all before them.

        A task with a single rollout was not adapted to: then this is a policy gradient over all tasks at once.
        The report's episodes are those after adaptation; `return_before` and `return_after` in its metrics are
        the mean returns of the first and of the last rollouts.
        Raises ValueError if there is no task.
        """
        if not tasks:
            raise ValueError("meta_update was given no task; give it at least one")
        with torch_threads(self._threads):
            return self._updated(tasks)

    def _updated(self, tasks: list[TaskRollouts]) -> Report:
        lr = self.begin_update()
        lag = self.version - min(task.version for task in tasks)
        rollouts = [[Rollout.of(batch, self._device) for batch in task.rollouts] for task in tasks]
        records: list[Tensor] = []
        norms: list[float] = []
        for _ in range(self._epochs):
            loss, record = self._loss(rollouts)
            outcome = self.descend(loss)
            records.append(record)
            if outcome.applied:
                norms.append(outcome.gradient_norm)
        steps = sum(task.steps for task in tasks)
        self.count_update(steps)
        before, after = (
            reduce(EpisodeStats.merged, [task.rollouts[stage].episodes for task in tasks])
            for stage in (0, -1)
        )
        return Report(
            version=self.version,
            steps=steps,
            lifetime_steps=self.lifetime_steps,
            episodes=after,
            metrics={
                **dict(zip(_METRICS, torch.stack(records).mean(dim=0).tolist(), strict=True)),
                "return_before": before.mean_return,
                "return_after": after.mean_return,
                "grad_norm": float(np.mean(norms)) if norms else float("nan"),
                "learning_rate": lr,
                "skipped_updates": self._skipped_updates,
                "policy_lag": lag,
            },
        )

    def _loss(self, tasks: Sequence[Sequence[Rollout]]) -> tuple[Tensor, Tensor]:
        """The mean loss of the tasks, and its record: a vector of the quantities named in _METRICS."""
        start = dict(self.policy.named_parameters())
        losses: list[Tensor] = []
        records: list[Tensor] = []
        for *explored, last in tasks:
            parameters = adapted(
                self.policy, start, explored, self._step_size, differentiable=not self._first_order
            )
            ratio = log_ratio(self.policy, parameters, last)
            losses.append(clipped_surrogate_loss(ratio, last.advantages, self._clip))
            with torch.no_grad():
                records.append(torch.stack([losses[-1], approx_kl(ratio), clip_fraction(ratio, self._clip)]))
        return torch.stack(losses).mean(), torch.stack(records).mean(dim=0)
