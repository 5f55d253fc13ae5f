"""The learner that applies gradients which others computed: its workers, or all workers on average.

Apart from the losses that these are of, since A2C, A3C and decentralised PPO differ in them and share this.
"""

from __future__ import annotations

from pipeflow.rl.batches import Report
from pipeflow.rl.gradients import Gradients
from pipeflow.rl.learners.learner import Learner
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.threads import torch_threads


class GradientLearner(Learner):
    """A learner that applies gradients which workers of the same policy computed."""

    def apply(self, gradients: Gradients, /) -> Report:
        """Take one optimiser step; without a row of data there is none, but the update counts."""
        with torch_threads(self._threads):
            lr = self.begin_update()
            norm = float("nan")
            if gradients.rows:
                norm = self.descend_along(to_tensor(gradients.values, self._device)).gradient_norm
        return self.report(gradients, {**gradients.metrics, "grad_norm": norm, "learning_rate": lr})
