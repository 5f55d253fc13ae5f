"""Who sits where in one policy's seats: what each agent was last observed with, and whether it is its turn.

Apart from `columns`, which records what agents experience, so that an evaluation can seat agents without any
record of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.batches import ObservationArray
from pipeflow.rl.multi_agent.vector import Observed, SeatsStep
from pipeflow.rl.policy import PolicyDescription, StateArray
from pipeflow.state.values import StateValue, saved_array


class Turn(NamedTuple):
    """The seats that act now. indices: [K] int64. observations: [K, *obs]. state: [K, S]."""

    indices: NDArray[np.int64]
    observations: ObservationArray
    state: StateArray


class Seating:
    """The N seats of one policy, all empty at first.

    observations: [N, *obs], the newest of each seat. state: [N, S], the policy's for the agent there; zeros at the
    start of an episode. waiting: [N] bool, whose turn it is.
    """

    def __init__(self, policy: PolicyDescription, num_seats: int) -> None:
        codec = policy.observations
        self.observations: ObservationArray = np.zeros((num_seats, *codec.shape), codec.dtype)
        self.state: StateArray = np.zeros((num_seats, policy.state_width), np.float32)
        self.waiting = np.zeros(num_seats, np.bool_)

    def begin(self, observed: Observed) -> None:
        """Seat agents that begin an episode."""
        self.observations[observed.indices] = observed.observations
        self.waiting[observed.indices] = True

    def turn(self) -> Turn:
        """The agents whose turn it is: all that are present, but for those that are skipped."""
        indices = np.flatnonzero(self.waiting)
        return Turn(indices, self.observations[indices], self.state[indices])

    def acted(self, turn: Turn, state: StateArray) -> None:
        """The agents of a turn have acted. state: [K, S], the policy's, to act with next."""
        self.state[turn.indices] = state
        self.waiting[turn.indices] = False

    def after(self, step: SeatsStep) -> ObservationArray:
        """The newest observation [N, *obs] of each seat after a step, the last one where an episode ended."""
        observations = self.observations.copy()
        observations[step.observed.indices] = step.observed.observations
        return observations

    def step(self, step: SeatsStep) -> None:
        """Take in a step: who is observed acts next, who ended is gone, and who is fresh begins."""
        self.observations = self.after(step)
        self.waiting[step.observed.indices] = True
        ended = step.terminated | step.truncated
        # One that ends in the step in which it is first observed never acts.
        self.waiting[ended] = False
        self.state[ended] = 0.0
        self.begin(step.fresh)

    def saved(self) -> dict[str, StateValue]:
        """Who sits where, under flat names; not `state`, which is the policies' here."""
        return {
            "observations": self.observations.copy(),
            "recurrent_state": self.state.copy(),
            "waiting": self.waiting.copy(),
        }

    def load(self, saved: Mapping[str, StateValue], /) -> None:
        """Seat everybody as in the seating that gave this.

        Raises ValueError if it is of other seats.
        """
        self.observations = saved_array("observations", saved, self.observations)
        self.state = saved_array("recurrent_state", saved, self.state)
        self.waiting = saved_array("waiting", saved, self.waiting)
