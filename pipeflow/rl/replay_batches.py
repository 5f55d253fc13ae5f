"""The typed items of plans with replay: what is stored, what is sampled, and what a learner answers.

Apart from `batches`, whose items are trained on once and forgotten. A transition here stands on its own, so
that rows may be overwritten, sampled again and weighted in any order; an answer about a sampled row names the
row by its slot and by its generation, since the slot may hold another row by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.batches import ActionArray, ObservationArray, Report, joined
from pipeflow.rl.episodes import EpisodeStats


@dataclass(frozen=True, eq=False)
class Transitions:
    """B steps, each on its own, as replay stores them.

    observations, next_observations: [B, *obs]; the next one is the true one, also where an episode ended.
    actions: [B, *act]. rewards: [B], summed and discounted over n steps where n > 1. terminated: [B] bool; a
    truncation is not one. discounts: [B], the factor of the value of `next_observations`: gamma^k for a sum of
    k rewards, before any zeroing at termination. env_steps: environment steps that the rows came from, which
    may be fewer where several agents act in each. episodes: those that finished in these steps.
    """

    observations: ObservationArray
    actions: ActionArray
    rewards: NDArray[np.float32]
    next_observations: ObservationArray
    terminated: NDArray[np.bool_]
    discounts: NDArray[np.float32]
    env_steps: int
    episodes: EpisodeStats = field(default_factory=EpisodeStats.none)

    @property
    def steps(self) -> int:
        """Number of rows B."""
        return len(self.rewards)

    @classmethod
    def concatenate(cls, items: Sequence[Self]) -> Self:
        """The rows of all items in order.

        Raises ValueError if there is no item.
        """
        return replace(joined(cls, items), env_steps=sum(item.env_steps for item in items))


@dataclass(frozen=True)
class Stored:
    """What a replay buffer says when it has stored rows. steps: environment steps that they came from."""

    steps: int


@dataclass(frozen=True, eq=False)
class Samples:
    """B stored transitions, drawn with replacement.

    The first six columns are those of `Transitions`. indices: [B] int64, the slots that the rows lie in.
    generations: [B] int64, which of all rows ever stored each one is. weights: [B] float32 in (0, 1], importance
    weights that correct for prioritised drawing; ones where it is uniform. new_env_steps: environment steps
    stored since the previous sample of this buffer, and episodes: those that finished in them. Increments, not
    totals, so that a learner and a buffer that were restored apart still count every step once.
    """

    observations: ObservationArray
    actions: ActionArray
    rewards: NDArray[np.float32]
    next_observations: ObservationArray
    terminated: NDArray[np.bool_]
    discounts: NDArray[np.float32]
    indices: NDArray[np.int64]
    generations: NDArray[np.int64]
    weights: NDArray[np.float32]
    new_env_steps: int
    episodes: EpisodeStats = field(default_factory=EpisodeStats.none)

    @property
    def steps(self) -> int:
        """Number of rows B."""
        return len(self.rewards)


@dataclass(frozen=True, eq=False)
class Priorities:
    """How wrong a learner found the rows of a sample.

    indices, generations: [B] int64, of the sample. priorities: [B] float64, |temporal difference error|, not
    yet raised to any power.
    """

    indices: NDArray[np.int64]
    generations: NDArray[np.int64]
    priorities: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TDReport(Report):
    """What one update on a sample of replay did, and how wrong it found the rows.

    steps: rows trained on, each as often as it was drawn. lifetime_steps: environment steps stored, in all the
    buffers that were sampled from. priorities: for the buffer that the sample came from.
    """

    priorities: Priorities

    @classmethod
    def of(cls, report: Report, samples: Samples, errors: NDArray[np.floating]) -> Self:
        """The report on a sample, with the temporal difference errors [B] of its rows, of either sign."""
        return cls(
            version=report.version,
            steps=report.steps,
            lifetime_steps=report.lifetime_steps,
            episodes=report.episodes,
            metrics=report.metrics,
            priorities=Priorities(samples.indices, samples.generations, np.abs(errors, dtype=np.float64)),
        )
