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
    `parameters()`. rows: how many the mean is over. steps: environment steps that come with it and were in no
    gradient before: fewer than the rows where epochs go over these again. version: of the weights that the
    gradient was computed at. metrics: means over the rows, by name. The rest as in `Trajectories`.
    """

    values: NDArray[np.float32]
    rows: int
    steps: int
    version: int
    episodes: EpisodeStats = field(default_factory=EpisodeStats.none)
    observation_moments: Moments | None = None
    return_moments: Moments | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def mean(cls, items: Sequence[Self]) -> Self:
        """The gradient of the mean loss over all rows of all items; the version is the oldest.

        Items weigh by their rows, so the result does not depend on how the rows were split. What stands in
        an item of no rows is not read; if all are such, the result is zero and has no rows either.
        Raises ValueError if there is no item, or if they have different metrics.
        """
        if not items:
            raise ValueError("Gradients.mean was given no item; give it at least one")
        rows = sum(item.rows for item in items)
        values = np.zeros(items[0].values.shape, np.float64)
        metrics = dict.fromkeys(items[0].metrics, 0.0 if rows else float("nan"))
        for item in items:
            if item.metrics.keys() != metrics.keys():
                raise ValueError(
                    f"gradients with metrics {sorted(metrics)} and {sorted(item.metrics)} have no mean; "
                    "average those of one loss"
                )
            if item.rows:
                share = item.rows / rows
                values += share * item.values.astype(np.float64)
                for name, value in item.metrics.items():
                    metrics[name] += share * value
        return cls(
            values=values.astype(np.float32),
            rows=rows,
            steps=sum(item.steps for item in items),
            version=min(item.version for item in items),
            episodes=functools.reduce(EpisodeStats.merged, (item.episodes for item in items)),
            observation_moments=merged_moments([item.observation_moments for item in items]),
            return_moments=merged_moments([item.return_moments for item in items]),
            metrics=metrics,
        )
