"""What is counted about episodes and steps: returns, lengths, and totals over the whole life of a run.

Apart from the environments, which know nothing of statistics, and from the reports, which only carry them.
Everything here is exact under the events that usually break such counters: autoreset rows, worker restarts,
restored checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipeflow.state.values import StateValue, saved_array


@dataclass(frozen=True, eq=False)
class EpisodeStats:
    """Undiscounted returns and lengths of the episodes that finished, in the order in which they did.

    returns: [E] float64. lengths: [E] int64, in environment steps. Compared by identity.
    """

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]

    @classmethod
    def none(cls) -> Self:
        """Statistics of no episode: neutral when merged."""
        return cls(np.zeros(0), np.zeros(0, dtype=np.int64))

    @property
    def count(self) -> int:
        """Number of episodes E."""
        return len(self.returns)

    @property
    def mean_return(self) -> float:
        """Mean undiscounted return, every episode weighing the same; nan when there is none."""
        return float(self.returns.mean()) if self.count else float("nan")

    @property
    def mean_length(self) -> float:
        """Mean length in environment steps; nan when there is no episode."""
        return float(self.lengths.mean()) if self.count else float("nan")

    def merged(self, other: EpisodeStats) -> EpisodeStats:
        """The episodes of both, these first. Means of the result weigh episodes, not reports."""
        if other.count == 0:
            return self
        if self.count == 0:
            return other
        return EpisodeStats(
            np.concatenate([self.returns, other.returns]), np.concatenate([self.lengths, other.lengths])
        )


class EpisodeTracker:
    """Adds up rewards and steps of `num_envs` running episodes, and keeps ended ones until collected."""

    def __init__(self, num_envs: int) -> None:
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        self._finished_returns: list[NDArray[np.float64]] = []
        self._finished_lengths: list[NDArray[np.int64]] = []

    def update(
        self,
        rewards: NDArray[np.floating],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        valid: NDArray[np.bool_],
    ) -> None:
        """Take in consecutive vector steps.

        rewards, terminated, truncated, valid: [T, N], or [N] for one step. Rows that are not valid (a NEXT_STEP
        environment's reset rows) are neither a reward nor a step.
        """
        rewards, valid = np.atleast_2d(np.where(valid, rewards, 0.0), valid)
        ended = np.atleast_2d(terminated | truncated) & valid
        start = 0
        for row in np.flatnonzero(ended.any(axis=1)).tolist():
            self._add(rewards[start : row + 1], valid[start : row + 1])
            start = row + 1
            self._finished_returns.append(self._returns[ended[row]])
            self._finished_lengths.append(self._lengths[ended[row]])
            self._returns[ended[row]] = 0.0
            self._lengths[ended[row]] = 0
        self._add(rewards[start:], valid[start:])

    def _add(self, rewards: NDArray[np.floating], valid: NDArray[np.bool_]) -> None:
        self._returns += np.add.reduce(rewards, axis=0, dtype=np.float64)
        self._lengths += np.add.reduce(valid, axis=0, dtype=np.int64)

    def collect(self) -> EpisodeStats:
        """The episodes that ended since the last call. Each is handed out once; running ones stay."""
        if not self._finished_returns:
            return EpisodeStats.none()
        stats = EpisodeStats(np.concatenate(self._finished_returns), np.concatenate(self._finished_lengths))
        self._finished_returns, self._finished_lengths = [], []
        return stats

    def state(self) -> dict[str, StateValue]:
        """Running episodes, and ended ones that were not collected yet, under flat names."""
        return {
            "running/returns": self._returns.copy(),
            "running/lengths": self._lengths.copy(),
            "finished/returns": np.concatenate([np.zeros(0), *self._finished_returns]),
            "finished/lengths": np.concatenate([np.zeros(0, np.int64), *self._finished_lengths]),
        }

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on with the episodes of the tracker that gave this state.

        Raises ValueError if it is of another number of sub-environments.
        """
        returns = saved_array("running/returns", state, self._returns)
        lengths = saved_array("running/lengths", state, self._lengths)
        self.load_finished(state)
        self._returns, self._lengths = returns, lengths

    def load_finished(self, state: Mapping[str, StateValue], /) -> None:
        """Take over the ended episodes of the tracker that gave this state; all run from their beginnings."""
        finished = state.get("finished/returns"), state.get("finished/lengths")
        self._finished_returns = [np.array(finished[0], np.float64)]
        self._finished_lengths = [np.array(finished[1], np.int64)]
        self._returns, self._lengths = np.zeros_like(self._returns), np.zeros_like(self._lengths)


class LifetimeCounter:
    """A total over all workers and over the whole life of a run, from each worker's own cumulative count.

    A worker's count is added by its increment since that worker's last report. The last reports are part of
    the state that a checkpoint keeps; without them the first report after a restore would be added whole. A
    worker that was restarted counts from zero again, so it must report under a new incarnation name.
    """

    def __init__(self, total: int = 0, reported: Mapping[str, int] | None = None) -> None:
        self._total = total
        self._reported = dict(reported or {})

    @property
    def total(self) -> int:
        """The sum of all increments."""
        return self._total

    @property
    def reported(self) -> dict[str, int]:
        """The last cumulative count by incarnation: with `total`, all that a checkpoint must keep."""
        return dict(self._reported)

    def report(self, incarnation: str, cumulative: int) -> int:
        """Take in one worker's cumulative count and return the total.

        incarnation: names one life of one worker, and changes when the worker is restarted.
        Raises ValueError if the count went down, which means a restart under an old name.
        """
        increment = cumulative - self._reported.get(incarnation, 0)
        if increment < 0:
            raise ValueError(
                f"worker {incarnation!r} reported {cumulative} after {self._reported.get(incarnation, 0)}; "
                "counts never go down, so give a restarted worker a new incarnation name"
            )
        self._reported[incarnation] = cumulative
        self._total += increment
        return self._total


@dataclass(frozen=True)
class StepCounts:
    """Steps of the environment and of its agents; equal when there is one agent."""

    env_steps: int
    agent_steps: int


def count_steps(agents_present: Sequence[int]) -> StepCounts:
    """Count the steps of a multi-agent fragment.

    agents_present: for each environment step, how many agents acted in it. An environment step counts once,
    however many agents (or policies) took part; an agent step counts for each agent.
    """
    return StepCounts(env_steps=len(agents_present), agent_steps=int(sum(agents_present)))
