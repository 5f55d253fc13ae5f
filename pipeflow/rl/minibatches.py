"""Epochs of shuffled minibatches as a stage of a plan: one batch in, all minibatches of its epochs out.

Apart from `learners.ppo`, which goes over its minibatches by itself: where gradients are averaged between the
minibatches, as in decentralised PPO, each of them is an item of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pipeflow.dsl import Expand, current_shard, expand
from pipeflow.rl.batches import Advantages
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.seeding import derive_seed


@dataclass(frozen=True, eq=False)
class Minibatch:
    """Some rows of a batch.

    new_steps, episodes: of the whole batch in its first minibatch, none in the others, so that nothing is counted
    twice over the epochs.
    """

    rows: Advantages
    new_steps: int
    episodes: EpisodeStats

    @property
    def steps(self) -> int:
        """Number of rows."""
        return self.rows.steps


def minibatch_epochs(epochs: int, minibatches: int, seed: int) -> Expand[Advantages, Minibatch]:
    """The stage that turns every batch into `epochs` passes over it, each shuffled and split into `minibatches`.

    Their number does not depend on how many rows a batch has, so that several workers keep step. seed: of the
    shuffling; every shard and every batch is shuffled by a stream of its own.
    Raises ValueError if either number is below 1.
    """
    if epochs < 1 or minibatches < 1:
        raise ValueError(f"epochs and minibatches must be at least 1, got {epochs} and {minibatches}")
    return expand(partial(MinibatchEpochs, epochs, minibatches, seed)).named(
        f"minibatch_epochs({epochs}, {minibatches})"
    )


class MinibatchEpochs:
    """The state of `minibatch_epochs`: which batch comes next."""

    def __init__(self, epochs: int, minibatches: int, seed: int) -> None:
        self._epochs = epochs
        self._minibatches = minibatches
        self._seed = seed
        self._batches = 0

    def push(self, batch: Advantages, /) -> Iterable[Minibatch]:
        """All minibatches of a batch, in order."""
        generator = np.random.default_rng(
            derive_seed(self._seed, "minibatches", current_shard(), self._batches)
        )
        self._batches += 1
        new_steps, episodes = batch.steps, batch.episodes
        for _ in range(self._epochs):
            for indices in np.array_split(generator.permutation(batch.steps), self._minibatches):
                yield Minibatch(batch.rows(indices), new_steps, episodes)
                new_steps, episodes = 0, EpisodeStats.none()

    def finish(self) -> Iterable[Minibatch]:
        """Nothing: no batch is held back."""
        return ()
