"""What a worker found out about one task: rollouts of the policy before it adapted, and after every adaptation.

Apart from `pipeflow.rl.batches`, whose items are rows that may be joined in any order: here the order of the
rollouts is the point, since each was collected by the policy that the ones before it had made.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeflow.rl.batches import Advantages
from pipeflow.rl.environments import EnvSpec


@dataclass(frozen=True, eq=False)
class TaskRollouts:
    """One task and its rollouts.

    task: the environment. seed: from which all that is random in these rollouts was derived. version: of the
    weights that the first rollouts were collected with. rollouts: first those of these weights, then those after
    each adaptation.
    """

    task: EnvSpec
    seed: int
    version: int
    rollouts: tuple[Advantages, ...] = ()

    @property
    def steps(self) -> int:
        """Environment steps of all rollouts."""
        return sum(batch.steps for batch in self.rollouts)

    def extended(self, batch: Advantages) -> TaskRollouts:
        """These rollouts and one more."""
        return TaskRollouts(self.task, self.seed, self.version, (*self.rollouts, batch))
