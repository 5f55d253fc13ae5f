"""What happens to trajectories between the workers and an asynchronous learner: replay, and joining.

Apart from the replay buffers, which are actors and store single transitions: fragments are few and whole, so a
stage of the plan keeps them, and nobody is sent anything. Apart from the learners, which take one batch and do not
ask how it came about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from pipeflow.dsl import Expand, expand
from pipeflow.rl.batches import Trajectories
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.seeding import derive_seed


def mix_in_replay(share: float, *, capacity: int, seed: int) -> Expand[Trajectories, Trajectories]:
    """Behind every fragment deliver some of the latest ones again, `share` on average for each.

    A replayed fragment has no episodes and no statistics, which were counted when it was new. Its steps count
    again, as steps trained on.

    Args:
        share: replayed fragments for each new one; 0 mixes in nothing.
        capacity: how many of the latest fragments are kept.
        seed: of the run.

    Raises:
        ValueError: `share` is negative, or there is one and `capacity` is below 1.
    """
    if share < 0.0 or (share > 0.0 and capacity < 1):
        raise ValueError(
            f"mix_in_replay needs a share of at least 0 and a capacity of at least 1, got {share} and {capacity}"
        )
    mixing = expand(lambda: ReplayMixing(share, capacity, seed))
    return mixing.named(f"mix_in_replay({share:g})")


class ReplayMixing:
    """The latest `capacity` fragments, some of which go out again: see `mix_in_replay`."""

    def __init__(self, share: float, capacity: int, seed: int) -> None:
        self._share = share
        self._kept: deque[Trajectories] = deque(maxlen=max(capacity, 1))
        self._owed = 0.0
        self._generator = np.random.default_rng(derive_seed(seed, "replay"))

    def push(self, item: Trajectories, /) -> Iterable[Trajectories]:
        """The new fragment, and as many old ones as are due."""
        if self._share == 0.0:
            return (item,)
        # Drawn before the new one is kept: what was learnt from just now is not learnt from again at once.
        out = [item]
        self._owed += self._share
        while self._owed >= 1.0:
            self._owed -= 1.0
            if self._kept:
                out.append(_again(self._kept[int(self._generator.integers(len(self._kept)))]))
        self._kept.append(item)
        return out

    def finish(self) -> Iterable[Trajectories]:
        """Nothing: what is kept was delivered."""
        return ()


class Aggregator:
    """An actor that joins fragments, so that the learner reads one batch rather than many small ones.

    Several of them are the inner nodes of a tree between the workers and the learner.
    """

    def concatenate(self, fragments: Sequence[Trajectories], /) -> Trajectories:
        """The fragments side by side: see `Trajectories.concatenate`."""
        return Trajectories.concatenate(fragments)


def _again(fragment: Trajectories) -> Trajectories:
    return replace(fragment, episodes=EpisodeStats.none(), observation_moments=None, return_moments=None)
