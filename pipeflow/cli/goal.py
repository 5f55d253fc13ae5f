"""`--until-return`: when to play greedy episodes between two updates, and whether they were good enough.

Apart from the loop that trains. The returns of training episodes say when it is worth a try, but not that the
goal is reached: their actions are sampled, and their episodes belong to the policies of many updates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pipeflow.rl.batches import Weights
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.seeding import derive_seed
from pipeflow.state.values import Json
from pipeflow.tracking.records import Record

EPISODES = 20

# In environment steps, so that the same seed evaluates after the same updates. Training episodes that look
# good enough earn a try; a greedy policy can be better than they look, so there is one from time to time too.
_PROMISING_STEPS = 10_000
_ROUTINE_STEPS = 50_000
# Routine evaluations take at most a tenth of the steps.
_ROUTINE_SHARE = 10


class Goal:
    """A mean return that greedy episodes shall have.

    target: that return. play: plays episodes with the weights of each learner, so many, with a seed. seed: of the
    run; every evaluation plays other episodes, so that no policy is chosen for its luck with the same few.

    evaluation: the latest, None before there was one.
    """

    def __init__(
        self, target: float, play: Callable[[Sequence[Weights], int, int], EpisodeStats], seed: int
    ) -> None:
        self.target = target
        self.evaluation: EpisodeStats | None = None
        self._play = play
        self._seed = seed
        self._latest: deque[float] = deque(maxlen=EPISODES)
        self._evaluated_at: int | None = None
        self._evaluation_steps = 0

    def state(self) -> dict[str, Json]:
        """What the next decisions depend on, for a checkpoint."""
        return {
            "evaluated_at": self._evaluated_at,
            "evaluation_steps": self._evaluation_steps,
            "latest": list(self._latest),
        }

    # `Any`: what `state` gave, which a file may have held since.
    def load_state(self, state: Any) -> None:
        """Decide on where the goal stood that gave this state.

        Raises ValueError, TypeError or LookupError if it is none.
        """
        evaluated_at = state["evaluated_at"]
        self._evaluated_at = None if evaluated_at is None else int(evaluated_at)
        self._evaluation_steps = int(state["evaluation_steps"])
        self._latest.extend(float(one) for one in state["latest"])

    @property
    def reached(self) -> bool:
        """Whether the latest evaluation was good enough."""
        return self.evaluation is not None and self.evaluation.mean_return >= self.target

    def is_due(self, record: Record, last: bool) -> bool:
        """Whether to evaluate the weights of this record. last: no other will come. To be asked of each."""
        self._latest.extend(record.report.episodes.returns.tolist())
        promising = len(self._latest) == EPISODES and float(np.mean(self._latest)) >= self.target
        since = record.report.lifetime_steps - (self._evaluated_at or 0)
        if last or (promising and self._evaluated_at is None):
            return True
        cost = self._evaluation_steps
        return since >= (
            max(_PROMISING_STEPS, cost) if promising else max(_ROUTINE_STEPS, _ROUTINE_SHARE * cost)
        )

    def evaluate(self, weights: Sequence[Weights], steps: int) -> EpisodeStats:
        """Play greedy episodes in environments of their own. steps: that the weights were trained for."""
        self._evaluated_at = steps
        seed = derive_seed(self._seed, "goal", *(one.version for one in weights))
        self.evaluation = self._play(weights, EPISODES, seed)
        self._evaluation_steps = int(self.evaluation.lengths.sum())
        return self.evaluation
