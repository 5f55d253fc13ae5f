"""One policy's seats while a worker samples: who has an action open, and the columns that completed ones fill.

Apart from the worker, which steps environments and knows nothing of rows. An action is open until its agent is
observed again or ends; only then is its row written. So agents may be skipped, come, go and end at any step, the
last one of a fragment too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.batches import ActionArray, ObservationArray, Trajectories
from pipeflow.rl.episodes import EpisodeTracker
from pipeflow.rl.multi_agent.seating import Seating, Turn
from pipeflow.rl.multi_agent.vector import Chosen, Observed, SeatsStep
from pipeflow.rl.policy import Acted, Policy, PolicyDescription, StateArray
from pipeflow.rl.spaces import ActionCodec
from pipeflow.state.values import StateValue, prefixed, saved_array, under


class AgentColumns:
    """The experience of the N seats of one policy.

    description, policy: of the policy that acts, before and after it was built. actions: how its actions
    are coded. num_seats: N. fragment_length: the most steps between two calls of `trajectories`, and the
    rows T of each.
    """

    def __init__(
        self,
        description: PolicyDescription,
        policy: Policy,
        actions: ActionCodec,
        num_seats: int,
        fragment_length: int,
    ) -> None:
        self._policy = policy
        self._length = fragment_length
        self._episodes = EpisodeTracker(num_seats)
        self._seating = Seating(description, num_seats)
        self._open = _OpenActions(
            present=np.zeros(num_seats, np.bool_),
            actions=np.zeros((num_seats, *actions.shape), actions.dtype),
            log_probs=np.zeros(num_seats, np.float32),
            values=np.zeros(num_seats, np.float32),
            rewards=np.zeros(num_seats, np.float32),
            states=np.zeros_like(self._seating.state),
            versions=np.zeros(num_seats, np.int64),
        )
        self._rows = self._no_rows()

    def begin(self, observed: Observed) -> None:
        """Agents that begin an episode, with their first observations."""
        self._seating.begin(observed)

    def turn(self) -> Turn:
        """The agents whose turn it is."""
        return self._seating.turn()

    def act(self, turn: Turn, acted: Acted, version: int) -> Chosen:
        """Open the actions that were chosen in a turn. version: of the weights that chose them."""
        indices, opened = turn.indices, self._open
        opened.present[indices] = True
        opened.actions[indices] = acted.actions
        opened.log_probs[indices] = acted.log_probs
        opened.values[indices] = acted.values
        opened.rewards[indices] = 0.0
        opened.states[indices] = turn.state
        opened.versions[indices] = version
        self._seating.acted(turn, acted.state)
        return Chosen(indices, acted.actions)

    def step(self, step: SeatsStep) -> None:
        """Take in what a step gave: rewards of open actions, and the ends of those whose outcome is now known."""
        opened = self._open
        # A reward before an agent's first action was earned by none.
        np.add(opened.rewards, step.rewards, out=opened.rewards, where=opened.present)
        known = step.terminated | step.truncated
        known[step.observed.indices] = True
        closed = opened.present & known
        if closed.any():
            self._close(closed, step)
        self._seating.step(step)

    def trajectories(self, version: int) -> Trajectories:
        """What was completed since the last call; it shares no memory with what comes later.

        version: of the weights, should no row have an older one.
        """
        rows, opened = self._rows, self._open
        seats = np.arange(len(rows.counts))
        # Behind each column's last row stands what follows it: an open action's observation, or the next turn's.
        rows.observations[rows.counts, seats] = self._seating.observations
        rows.values[rows.counts, seats] = opened.values
        turn = self.turn()
        if len(turn.indices):
            values = self._policy.value(turn.observations, turn.state)
            rows.values[rows.counts[turn.indices], turn.indices] = values
        self._rows = self._no_rows()
        final_observations, final_rows = self._finals(rows)
        return Trajectories(
            observations=rows.observations[:-1],
            actions=rows.actions,
            log_probs=rows.log_probs,
            values=rows.values[:-1],
            next_values=self._next_values(rows),
            rewards=rows.rewards,
            reward_scale=np.ones(len(seats), np.float32),
            terminated=rows.terminated,
            truncated=rows.truncated,
            valid=np.arange(self._length)[:, None] < rows.counts,
            final_observations=final_observations,
            final_rows=final_rows,
            last_observations=self._seating.observations.copy(),
            initial_state=rows.initial_state,
            version=version if rows.version is None else rows.version,
            episodes=self._episodes.collect(),
        )

    def state(self) -> dict[str, StateValue]:
        """What is open between two fragments, under flat names: right after `trajectories`, no row is."""
        opened = {column.name: getattr(self._open, column.name).copy() for column in fields(self._open)}
        return {
            **prefixed("episodes/", self._episodes.state()),
            **prefixed("seats/", self._seating.saved()),
            **prefixed("open/", opened),
        }

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on where the columns that gave this state stood.

        Raises ValueError if the state is of other seats.
        """
        self._episodes.load_state(under("episodes/", state))
        self._seating.load(under("seats/", state))
        opened = under("open/", state)
        for column in fields(self._open):
            kept = getattr(self._open, column.name)
            setattr(self._open, column.name, saved_array(column.name, opened, kept))
        self._rows = self._no_rows()

    def load_finished(self, state: Mapping[str, StateValue], /) -> None:
        """Take over the ended episodes alone: those that were running are forgotten, with their open actions."""
        self._episodes.load_finished(under("episodes/", state))

    def _close(self, closed: NDArray[np.bool_], step: SeatsStep) -> None:
        rows, opened, seating = self._rows, self._open, self._seating
        seats = np.flatnonzero(closed)
        at = rows.counts[seats], seats
        rows.observations[at] = seating.observations[seats]
        rows.actions[at] = opened.actions[seats]
        rows.log_probs[at] = opened.log_probs[seats]
        rows.values[at] = opened.values[seats]
        rows.rewards[at] = opened.rewards[seats]
        rows.terminated[at] = step.terminated[seats]
        rows.truncated[at] = step.truncated[seats]
        ended = seats[step.terminated[seats] | step.truncated[seats]]
        if len(ended):
            last = seating.after(step)[ended]
            rows.ends.append(_Ends(rows.counts[ended], ended, last, seating.state[ended]))
        rows.counts[seats] += 1
        oldest = int(opened.versions[seats].min())
        rows.version = oldest if rows.version is None else min(rows.version, oldest)
        self._episodes.update(opened.rewards, step.terminated, step.truncated, closed)
        opened.present[seats] = False

    def _no_rows(self) -> _Rows:
        opened, seating = self._open, self._seating
        steps, num_seats = self._length, len(seating.waiting)
        return _Rows(
            # One more row than there can be actions, for what follows the last.
            observations=np.zeros((steps + 1, *seating.observations.shape), seating.observations.dtype),
            actions=np.zeros((steps, *opened.actions.shape), opened.actions.dtype),
            log_probs=np.zeros((steps, num_seats), np.float32),
            values=np.zeros((steps + 1, num_seats), np.float32),
            rewards=np.zeros((steps, num_seats), np.float32),
            terminated=np.zeros((steps, num_seats), np.bool_),
            truncated=np.zeros((steps, num_seats), np.bool_),
            counts=np.zeros(num_seats, np.int64),
            initial_state=np.where(opened.present[:, None], opened.states, seating.state),
            ends=[],
        )

    def _finals(self, rows: _Rows) -> tuple[ObservationArray, NDArray[np.int64]]:
        """The last observations of the episodes that ended, and their rows t * N + n, ascending."""
        observations: ObservationArray = np.concatenate(
            [self._seating.observations[:0], *(end.observations for end in rows.ends)]
        )
        at = [end.times * len(rows.counts) + end.seats for end in rows.ends]
        final_rows = np.concatenate([np.zeros(0, np.int64), *at])
        order = np.argsort(final_rows)
        return observations[order], final_rows[order]

    def _next_values(self, rows: _Rows) -> NDArray[np.float32]:
        """V of the true next observations: at a truncation the final one, else that of the following row."""
        next_values = rows.values[1:].copy()
        for end in rows.ends:
            cut = rows.truncated[end.times, end.seats]
            if cut.any():
                values = self._policy.value(end.observations[cut], end.states[cut])
                next_values[end.times[cut], end.seats[cut]] = values
        return next_values


@dataclass
class _OpenActions:
    """The last actions of N seats: present where the agent is there and its outcome is not known yet.

    rewards: since the action. states: of the policy before it. versions: of the weights that chose it.
    """

    present: NDArray[np.bool_]
    actions: ActionArray
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]
    rewards: NDArray[np.float32]
    states: StateArray
    versions: NDArray[np.int64]


@dataclass
class _Rows:
    """Columns being filled, as in `Trajectories`; counts: [N], the rows that each has."""

    observations: ObservationArray
    actions: ActionArray
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    counts: NDArray[np.int64]
    initial_state: StateArray
    ends: list[_Ends]
    version: int | None = None


class _Ends(NamedTuple):
    """Episodes that ended in one step: rows and seats, last observations, and the policy's states behind them."""

    times: NDArray[np.int64]
    seats: NDArray[np.int64]
    observations: ObservationArray
    states: StateArray
