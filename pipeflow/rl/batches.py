"""The typed items that flow through a reinforcement learning plan: plain numpy data that computes nothing.

Apart from the code that makes and consumes them, so that a stage's signature says what it needs: a plan that
forgets the advantages hands `Trajectories` to a learner of `Advantages`, and the type checker refuses it.
Every batch has `steps`, the number of real environment steps in it, and `concatenate`. Nothing here, and
nothing that is given one of these, writes to its arrays: those that arrive from another process are read-only
views.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.running_moments import Moments

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

B = TypeVar("B", bound="DataclassInstance")

ObservationArray: TypeAlias = NDArray[np.float32 | np.uint8]
"""Encoded observations: float32 vectors, or uint8 images, channels first."""

ActionArray: TypeAlias = NDArray[np.int64 | np.float32]
"""Actions as a policy samples them: int64 indices, or float32 values before any clipping."""


@dataclass(frozen=True, eq=False)
class Trajectories:
    """T consecutive vector steps of N sub-environments, time-major, with what the acting policy computed.

    observations: [T, N, *obs], as the policy saw them, normalised where the worker normalises. actions: [T,
    N, *act] in the policy's form. log_probs: [T, N], of these actions under the acting policy. values: [T,
    N], V(observations). next_values: [T, N], V of the true next observation: the final observation at a
    truncation, the next one otherwise, at the fragment's end too; without meaning where `terminated`.
    rewards: [T, N], unscaled. reward_scale: [N], the factor that a learner's returns apply; ones when off.
    terminated, truncated: [T, N] bool. valid: [T, N] bool; False marks the reset rows of NEXT_STEP
    environments, and the rows behind the end of a column that is shorter than T, as agents that come and go
    leave it; in the first of these, `observations` holds what follows the column. final_observations: [K,
    *obs], the true last observations of the K episodes that ended in these steps, and final_rows: [K] int64,
    the row t * N + n of each, ascending. last_observations: [N, *obs], what the step after these acts on.
    initial_state: [N, S], the policy's recurrent state before the first
    step; it is zeroed after every end of an episode and every row that is not valid. version: of the weights
    acted with. episodes: those that finished in these steps. observation_moments, return_moments: of these
    steps alone, before normalisation; None when off.
    """

    observations: ObservationArray
    actions: ActionArray
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]
    next_values: NDArray[np.float32]
    rewards: NDArray[np.float32]
    reward_scale: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    final_observations: ObservationArray
    final_rows: NDArray[np.int64]
    last_observations: ObservationArray
    initial_state: NDArray[np.float32]
    version: int
    episodes: EpisodeStats = field(default_factory=EpisodeStats.none)
    observation_moments: Moments | None = None
    return_moments: Moments | None = None

    @property
    def steps(self) -> int:
        """Number of real environment steps: rows that are valid."""
        return int(np.count_nonzero(self.valid))

    def restarts(self) -> NDArray[np.bool_]:
        """[T, N], True where the recurrent state is zeroed before the row; at first it is `initial_state`."""
        cut = self.terminated | self.truncated | ~self.valid
        return np.concatenate([np.zeros_like(cut[:1]), cut[:-1]])

    def next_observations(self) -> ObservationArray:
        """The true next observation of every row, [T, N, *obs]: the final one where an episode ended."""
        following = np.concatenate([self.observations[1:], self.last_observations[None]])
        flat = following.reshape(-1, *following.shape[2:])
        flat[self.final_rows] = self.final_observations
        return following

    @classmethod
    def concatenate(cls, items: Sequence[Self]) -> Self:
        """The same T steps of all sub-environments, side by side along N; the version is the oldest.

        Raises ValueError if there is no item, or if the items differ in T.
        """
        lengths = sorted({len(item.rewards) for item in items})
        if len(lengths) > 1:
            raise ValueError(
                f"trajectories of {lengths} steps cannot stand side by side; collect fragments of one "
                "length, or compute advantages first, whose rows concatenate freely"
            )
        if len(items) < 2:
            return joined(cls, items)
        # Rows, and what is kept per sub-environment or per episode end, have no axis N to be joined along.
        widths = [item.rewards.shape[1] for item in items]
        rows: list[NDArray[np.int64]] = []
        for item, width, start in zip(items, widths, np.cumsum([0, *widths[:-1]]), strict=True):
            times, columns = np.divmod(item.final_rows, width)
            rows.append(times * sum(widths) + start + columns)
        ordered = np.argsort(np.concatenate(rows))
        return replace(
            joined(
                cls, items, axis=1, along_rows=("final_observations", "last_observations", "initial_state")
            ),
            final_observations=np.concatenate([item.final_observations for item in items])[ordered],
            final_rows=np.concatenate(rows)[ordered],
        )


@dataclass(frozen=True, eq=False)
class Sequences:
    """How the rows of a batch divide into Q sequences of consecutive steps, each within one episode.

    Every row is in one sequence, and the sequences stand one after the other. lengths: [Q] int64, at least 1
    each. states: [Q, S], the recurrent state before each one's first row.
    """

    lengths: NDArray[np.int64]
    states: NDArray[np.float32]

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first row of each, [Q]."""
        return np.cumsum(self.lengths) - self.lengths

    def take(self, indices: NDArray[np.int64]) -> tuple[Sequences, NDArray[np.int64]]:
        """The sequences of these indices, in this order, and the rows that they are made of."""
        lengths = self.lengths[indices]
        taken = Sequences(lengths, self.states[indices])
        within = np.arange(lengths.sum()) - np.repeat(taken.starts, lengths)
        return taken, np.repeat(self.starts[indices], lengths) + within

    @classmethod
    def concatenate(cls, items: Sequence[Self]) -> Self:
        """The sequences of all items in order.

        Raises ValueError if there is no item.
        """
        return joined(cls, items)


@dataclass(frozen=True, eq=False)
class Advantages:
    """B real steps with the targets that an on-policy learner needs.

    observations: [B, *obs]. actions: [B, *act]. log_probs, values: [B], of the acting policy. advantages,
    value_targets: [B], of scaled rewards. sequences: which rows follow each other, where the policy has a memory;
    without it the order of the rows does not matter. The rest as in `Trajectories`.
    """

    observations: ObservationArray
    actions: ActionArray
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]
    advantages: NDArray[np.float32]
    value_targets: NDArray[np.float32]
    version: int
    episodes: EpisodeStats = field(default_factory=EpisodeStats.none)
    observation_moments: Moments | None = None
    return_moments: Moments | None = None
    sequences: Sequences | None = None

    @property
    def steps(self) -> int:
        """Number of rows B."""
        return len(self.advantages)

    def rows(self, indices: NDArray[np.int64]) -> Self:
        """Some of the rows, without the statistics and episodes that came with all of them.

        Raises ValueError where the rows are sequences, which must not be taken apart.
        """
        if self.sequences is not None:
            raise ValueError("rows of sequences cannot be taken one by one; use Sequences.take")
        return replace(
            self,
            observations=self.observations[indices],
            actions=self.actions[indices],
            log_probs=self.log_probs[indices],
            values=self.values[indices],
            advantages=self.advantages[indices],
            value_targets=self.value_targets[indices],
            episodes=EpisodeStats.none(),
            observation_moments=None,
            return_moments=None,
        )

    @classmethod
    def concatenate(cls, items: Sequence[Self]) -> Self:
        """The rows of all items in order; the version is the oldest.

        Raises ValueError if there is no item.
        """
        return joined(cls, items)


@dataclass(frozen=True, eq=False)
class Weights:
    """A snapshot of a policy, with the statistics that its inputs are normalised by.

    version: number of updates that made it. parameters: every tensor of the policy by name, buffers too.
    observation_moments, return_moments: merged over all workers; None where nothing is normalised.
    """

    version: int
    # A module may keep tensors of several dtypes; each array keeps its own.
    parameters: Mapping[str, NDArray[np.generic]]
    observation_moments: Moments | None = None
    return_moments: Moments | None = None


@dataclass(frozen=True, eq=False)
class Report:
    """What one update of a learner did.

    version: updates so far, this one included. steps: environment steps in this batch. lifetime_steps:
    environment steps trained on in the whole life of the run. episodes: those that finished in this batch.
    metrics: by name, such as policy_loss, value_loss, entropy, approx_kl, grad_norm, learning_rate.
    """

    version: int
    steps: int
    lifetime_steps: int
    episodes: EpisodeStats
    metrics: Mapping[str, float]

    @classmethod
    def shared(cls, items: Sequence[Self]) -> Self:
        """The report of learners that all did the same: of any of them.

        Raises ValueError if they are not of one version.
        """
        versions = sorted({item.version for item in items})
        if len(versions) != 1:
            raise ValueError(f"learners that share an update report versions {versions}, which should be one")
        return items[0]

    @classmethod
    def joined(cls, items: Sequence[Self]) -> Self:
        """The report of several updates in a row: steps and episodes of all, the mean of every metric.

        Raises ValueError if there is no item.
        """
        if not items:
            raise ValueError("Report.joined was given no item; give it at least one")
        names = items[-1].metrics.keys()
        return replace(
            items[-1],
            steps=sum(item.steps for item in items),
            episodes=functools.reduce(EpisodeStats.merged, (item.episodes for item in items)),
            metrics={name: float(np.mean([item.metrics[name] for item in items])) for name in names},
        )


def merged_moments(items: Sequence[Moments | None]) -> Moments | None:
    """The moments of all items together; None when none of them has any."""
    merged: Moments | None = None
    for item in items:
        if item is not None:
            merged = item if merged is None else merged.merged(item)
    return merged


def joined(kind: type[B], items: Sequence[B], axis: int = 0, along_rows: Sequence[str] = ()) -> B:
    """One batch of all items: arrays end to end along `axis`, or along their last where they have fewer (those
    named in `along_rows` along the first), the oldest version, and statistics merged.

    Raises ValueError if there is no item.
    """
    if not items:
        raise ValueError(f"{kind.__name__}.concatenate was given no item; give it at least one")
    if len(items) == 1:
        return items[0]
    columns: dict[str, object] = {}
    for part in fields(items[0]):
        values: list[Any] = [getattr(item, part.name) for item in items]
        first = values[0]
        if isinstance(first, np.ndarray):
            along = 0 if part.name in along_rows else min(axis, first.ndim - 1)
            columns[part.name] = np.concatenate(values, axis=along)
        elif isinstance(first, EpisodeStats):
            columns[part.name] = functools.reduce(EpisodeStats.merged, values)
        elif isinstance(first, Sequences):
            columns[part.name] = Sequences.concatenate(values)
        elif isinstance(first, int):
            columns[part.name] = min(values)
        else:
            columns[part.name] = merged_moments(values)
    return replace(items[0], **columns)
