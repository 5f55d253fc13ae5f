"""What happens to trajectories between the workers and an asynchronous learner: replay, and joining.

Apart from the replay buffers, which are actors and store single transitions: fragments are few and whole, so a
stage of the plan keeps them, and nobody is sent anything. Apart from the learners, which take one batch and do not
ask how it came about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from pipeflow.dsl import Expand, expand
from pipeflow.rl.batches import Trajectories
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.seeding import derive_seed, generator_state, restore_generator
from pipeflow.state.values import StateValue, prefixed, saved_array, saved_number, under


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
    mixing = expand(partial(ReplayMixing, share, capacity, seed))
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
                out.append(self._kept[int(self._generator.integers(len(self._kept)))])
        self._kept.append(_again(item))
        return out

    def finish(self) -> Iterable[Trajectories]:
        """Nothing: what is kept was delivered."""
        return ()

    def state(self) -> dict[str, StateValue]:
        """All that the next outputs depend on, under flat names, the fragments that are kept too."""
        state: dict[str, StateValue] = {
            "owed": self._owed,
            "generator": generator_state(self._generator),
            "kept": len(self._kept),
        }
        for index, fragment in enumerate(self._kept):
            state.update(prefixed(f"fragments/{index}/", _fragment_state(fragment)))
        return state

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on where the one that gave this state stood: what is replayed next is what it would have replayed.

        Raises ValueError if it is no such state.
        """
        self._owed = float(saved_number("owed", state))
        restore_generator(self._generator, saved_array("generator", state, generator_state(self._generator)))
        self._kept.clear()
        for index in range(int(saved_number("kept", state))):
            self._kept.append(_fragment_of(under(f"fragments/{index}/", state)))


class Aggregator:
    """An actor that joins fragments, so that the learner reads one batch rather than many small ones.

    Several of them are the inner nodes of a tree between the workers and the learner.
    """

    def concatenate(self, fragments: Sequence[Trajectories], /) -> Trajectories:
        """The fragments side by side: see `Trajectories.concatenate`."""
        return Trajectories.concatenate(fragments)

    def state(self) -> dict[str, StateValue]:
        """Nothing: whatever it joins it hands on."""
        return {}

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Nothing is to be done."""


def _again(fragment: Trajectories) -> Trajectories:
    return replace(fragment, episodes=EpisodeStats.none(), observation_moments=None, return_moments=None)


def _fragment_state(fragment: Trajectories) -> dict[str, StateValue]:
    """The columns of a fragment without statistics, and its version."""
    columns: dict[str, StateValue] = {
        column.name: value
        for column in fields(fragment)
        if isinstance(value := getattr(fragment, column.name), np.ndarray)
    }
    return {"version": fragment.version, **columns}


def _fragment_of(state: Mapping[str, StateValue]) -> Trajectories:
    # Any: the dtype of a column belongs to its name.
    columns: dict[str, Any] = {
        name: np.array(value) for name, value in state.items() if isinstance(value, np.ndarray)
    }
    try:
        return Trajectories(version=int(saved_number("version", state)), **columns)
    except TypeError as error:
        raise ValueError(f"the state of a fragment is damaged: {error}") from error
