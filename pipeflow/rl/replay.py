"""The replay buffer: an actor that keeps the newest transitions, hands out samples, and takes priorities.

Apart from `prioritised`, which decides what is drawn. Rows are copied into arrays that were allocated once, so
nothing that arrived from another process is kept alive, and the memory never grows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeflow.dsl import NotReady, current_shard
from pipeflow.dsl.checks import check_positive
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.prioritised import Prioritisation, PrioritisedSampler
from pipeflow.rl.replay_batches import Priorities, Samples, Stored, Transitions
from pipeflow.rl.seeding import derive_seed
from pipeflow.state.values import StateValue


class ReplayBuffer:
    """A ring of the newest `capacity` transitions, sampled with replacement.

    capacity: rows, not batches. batch_size: rows of a minibatch. minibatches: that a sample holds, one after the
    other, each drawn as if it were alone. learning_starts: environment steps that must have
    been stored before the first sample. prioritisation: None samples uniformly. seed: of the run. index: of this
    buffer among its group; None asks the shard that it runs in.
    Raises ValueError for a size below 1.
    """

    def __init__(
        self,
        capacity: int,
        *,
        batch_size: int = 64,
        minibatches: int = 1,
        learning_starts: int = 1000,
        prioritisation: Prioritisation | None = None,
        seed: int = 0,
        index: int | None = None,
    ) -> None:
        check_positive(capacity, "capacity")
        check_positive(batch_size, "batch_size")
        check_positive(minibatches, "minibatches")
        check_positive(learning_starts, "learning_starts")
        self._capacity = capacity
        self._minibatches, self._batch_size = minibatches, batch_size
        self._learning_starts = learning_starts
        self._prioritisation = prioritisation
        self._seed = derive_seed(seed, "replay", current_shard() if index is None else index)
        self._generator = np.random.Generator(np.random.PCG64(self._seed))
        self._sampler = self._new_sampler()
        self._ring: Transitions | None = None
        self._generations = np.full(capacity, -1, np.int64)
        self._added = 0
        self._samples = 0
        self._lifetime_steps = 0
        self._new_env_steps = 0
        self._ignored_priorities = 0
        self._episodes: list[EpisodeStats] = []

    @property
    def size(self) -> int:
        """Number of rows held."""
        return min(self._added, self._capacity)

    @property
    def lifetime_steps(self) -> int:
        """Environment steps ever stored, also those that were overwritten."""
        return self._lifetime_steps

    @property
    def ignored_priorities(self) -> int:
        """Number of priorities that came for rows no longer held, or were not finite."""
        return self._ignored_priorities

    def add(self, transitions: Transitions, /) -> Stored:
        """Store rows over the oldest ones; of more rows than the capacity the last ones."""
        first = self._added + max(0, transitions.steps - self._capacity)
        generations = np.arange(first, self._added + transitions.steps)
        self._write(first % self._capacity, generations, transitions)
        self._added += transitions.steps
        if self._sampler is not None:
            self._sampler.add(generations % self._capacity)
        self._lifetime_steps += transitions.env_steps
        self._new_env_steps += transitions.env_steps
        self._episodes.append(transitions.episodes)
        return Stored(transitions.env_steps)

    def sample(self) -> Samples | NotReady:
        """`minibatches` times `batch_size` rows; `NotReady` until `learning_starts` steps were stored."""
        ring = self._ring
        if ring is None or self._lifetime_steps < self._learning_starts or self.size == 0:
            return NotReady()
        uniforms = self._generator.random((self._minibatches, self._batch_size))
        self._samples += 1
        if self._sampler is None:
            indices = (uniforms.reshape(-1) * self.size).astype(np.int64)
            weights = np.ones(len(indices), np.float32)
        else:
            indices, weights = self._sampler.draw(uniforms, self._lifetime_steps)
        new_env_steps, self._new_env_steps = self._new_env_steps, 0
        episodes, self._episodes = self._episodes, []
        return Samples(
            observations=ring.observations.take(indices, axis=0),
            actions=ring.actions.take(indices, axis=0),
            rewards=ring.rewards.take(indices),
            next_observations=ring.next_observations.take(indices, axis=0),
            terminated=ring.terminated.take(indices),
            discounts=ring.discounts.take(indices),
            indices=indices,
            generations=self._generations.take(indices),
            weights=weights,
            new_env_steps=new_env_steps,
            episodes=functools.reduce(EpisodeStats.merged, episodes, EpisodeStats.none()),
        )

    def update_priorities(self, priorities: Priorities, /) -> None:
        """Take the errors of sampled rows; those of rows that were overwritten since, and nan, are ignored.

        A buffer that samples uniformly ignores all.
        """
        if self._sampler is None:
            return
        held = self._generations[priorities.indices] == priorities.generations
        held &= np.isfinite(priorities.priorities)
        if held.all():
            self._sampler.update(priorities.indices, priorities.priorities)
            return
        self._ignored_priorities += int(np.count_nonzero(~held))
        self._sampler.update(priorities.indices[held], priorities.priorities[held])

    def state(self) -> dict[str, StateValue]:
        """All that the next sample depends on, under flat names: rows, priorities, counters.

        The generator needs no more than the number of samples: every one takes the same number of draws.
        """
        state: dict[str, StateValue] = {
            "capacity": self._capacity,
            "added": self._added,
            "samples": self._samples,
            "lifetime_steps": self._lifetime_steps,
            "new_env_steps": self._new_env_steps,
            "ignored_priorities": self._ignored_priorities,
        }
        episodes = functools.reduce(EpisodeStats.merged, self._episodes, EpisodeStats.none())
        state["episodes/returns"], state["episodes/lengths"] = (
            episodes.returns.copy(),
            episodes.lengths.copy(),
        )
        if self._ring is not None:
            state["generations"] = self._generations[: self.size].copy()
            for name in _COLUMNS:
                state[f"rows/{name}"] = getattr(self._ring, name)[: self.size].copy()
        if self._sampler is not None:
            state["masses"] = self._sampler.masses()[: self.size]
            if self._sampler.largest is not None:
                state["largest_priority"] = self._sampler.largest
        return state

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on where the buffer that gave this state stood: the next sample is the one it would have drawn.

        Raises ValueError if the state is of a buffer of another capacity, or with other priorities.
        """
        if state["capacity"] != self._capacity:
            raise ValueError(
                f"the state is of a buffer of {state['capacity']} rows, this one has {self._capacity}; "
                "make both of one capacity"
            )
        if ("masses" in state) != (self._sampler is not None):
            raise ValueError("one of the state and the buffer has priorities and the other has none")
        self._samples = int(state["samples"])
        drawn = np.random.PCG64(self._seed).advance(self._samples * self._minibatches * self._batch_size)
        self._generator = np.random.Generator(drawn)
        self._added = int(state["added"])
        self._lifetime_steps = int(state["lifetime_steps"])
        self._new_env_steps = int(state["new_env_steps"])
        self._ignored_priorities = int(state["ignored_priorities"])
        self._episodes = [EpisodeStats(_array("episodes/returns", state), _array("episodes/lengths", state))]
        self._ring = None
        self._generations.fill(-1)
        if "generations" in state:
            self._write(
                0, _array("generations", state), _transitions(lambda name: _array(f"rows/{name}", state))
            )
        self._sampler = self._new_sampler()
        if self._sampler is not None:
            largest = state.get("largest_priority")
            self._sampler.restore(_array("masses", state), None if largest is None else float(largest))

    def _write(self, first: int, generations: NDArray[np.int64], rows: Transitions) -> None:
        """Copy the last rows, of these generations, into the slots from `first` on, and around the end.

        The first time, allocate the ring by their shapes.
        """
        if self._ring is None:
            self._ring = _transitions(lambda name: _room_for(getattr(rows, name), self._capacity))
        count = len(generations)
        straight = min(count, self._capacity - first)
        pairs = [(getattr(self._ring, name), getattr(rows, name)[rows.steps - count :]) for name in _COLUMNS]
        for kept, given in ((self._generations, generations), *pairs):
            kept[first : first + straight] = given[:straight]
            if straight < count:
                kept[: count - straight] = given[straight:]

    def _new_sampler(self) -> PrioritisedSampler | None:
        settings = self._prioritisation
        return None if settings is None else PrioritisedSampler(self._capacity, settings)


_COLUMNS = ("observations", "actions", "rewards", "next_observations", "terminated", "discounts")


# Any, here and below: the dtype belongs to the name.
def _transitions(column: Callable[[str], NDArray[Any]]) -> Transitions:
    """Transitions of the columns that a name gives."""
    observations, actions, rewards, next_observations, terminated, discounts = map(column, _COLUMNS)
    return Transitions(observations, actions, rewards, next_observations, terminated, discounts, env_steps=0)


def _room_for(rows: NDArray[Any], capacity: int) -> NDArray[Any]:
    """An uninitialised array for `capacity` such rows; memory that is never written to costs nothing."""
    return np.empty((capacity, *rows.shape[1:]), rows.dtype)


def _array(name: str, state: Mapping[str, StateValue]) -> NDArray[Any]:
    return np.array(state[name])
