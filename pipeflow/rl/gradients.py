"""Gradients as items of a plan: computed where the data are, averaged on the way, applied elsewhere.

Apart from the other batches, which hold steps; here the steps have become one flat vector, and only their
number, their statistics and what was measured on them are left.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.batches import merged_moments
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.running_moments import Moments


@dataclass(frozen=True, eq=False)
class Gradients:
    """The gradient of a mean loss over some steps.

    values: [P] float32, of all parameters of the network, flattened and joined in the order of the module's
    `parameters()`. steps: environment steps that the mean is over. version: of the weights that the gradient
    was computed at. metrics: means over the same steps, by name. new_steps: how many environment steps come with
    it that no other gradient was of before; None if all of its own. The rest as in `Trajectories`.
    """

    values: NDArray[np.float32]
    steps: int
    version: int
    episodes: EpisodeStats = field(default_factory=EpisodeStats.none)
    observation_moments: Moments | None = None
    return_moments: Moments | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    new_steps: int | None = None

    @property
    def first_seen(self) -> int:
        """Environment steps that no other gradient was of before."""
        return self.steps if self.new_steps is None else self.new_steps

    @classmethod
    def mean(cls, items: Sequence[Self]) -> Self:
        """The gradient of the mean loss over all steps of all items; the version is the oldest.

        Items weigh by their steps, so the result does not depend on how the steps were split. What stands in
        an item of no steps is not read; if all are such, the result is zero and has no steps either.
        Raises ValueError if there is no item, or if they have different metrics.
        """
        if not items:
            raise ValueError("Gradients.mean was given no item; give it at least one")
        steps = sum(item.steps for item in items)
        values = np.zeros(items[0].values.shape, np.float64)
        metrics = dict.fromkeys(items[0].metrics, 0.0 if steps else float("nan"))
        for item in items:
            if item.metrics.keys() != metrics.keys():
                raise ValueError(
                    f"gradients with metrics {sorted(metrics)} and {sorted(item.metrics)} have no mean; "
                    "average those of one loss"
                )
            if item.steps:
                share = item.steps / steps
                values += share * item.values.astype(np.float64)
                for name, value in item.metrics.items():
                    metrics[name] += share * value
        return cls(
            values=values.astype(np.float32),
            steps=steps,
            version=min(item.version for item in items),
            episodes=functools.reduce(EpisodeStats.merged, (item.episodes for item in items)),
            observation_moments=merged_moments([item.observation_moments for item in items]),
            return_moments=merged_moments([item.return_moments for item in items]),
            metrics=metrics,
            new_steps=sum(item.first_seen for item in items),
        )
