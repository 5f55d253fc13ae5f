"""What a policy is to those who act with it: a description that travels, and a module that is built from it.

Apart from the policies themselves, of which there are several (actor-critics, action values), so that rollout
workers and evaluation know none of them. Everything here is numpy; how a policy is trained is its learner's
affair. A policy without memory has a recurrent state of width 0, so nobody asks whether there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.batches import ActionArray, ObservationArray
from pipeflow.rl.spaces import ObservationCodec

StateArray = NDArray[np.float32]
"""Recurrent states [N, S], zeros at the start of an episode; S is 0 for a policy without memory."""


class Acted(NamedTuple):
    """What acting on N observations gave.

    actions: [N, *act]. log_probs: [N], of these actions under the distribution that they were drawn from.
    values: [N], of the observations. state: [N, S], to act with next.
    """

    # A tuple, because one is made at every step and a frozen dataclass takes many times as long to make.
    actions: ActionArray
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]
    state: StateArray

    @classmethod
    def of_actions(cls, actions: ActionArray, state: StateArray) -> Self:
        """What a policy gives that has neither log-probabilities nor values: both are nan.

        A loss that needs them is nan then, and no number that means something else.
        """
        unknown = np.full(len(actions), np.nan, np.float32)
        return cls(actions, unknown, unknown, state)


class Policy(Protocol):
    """A policy that was built."""

    def act(self, observations: ObservationArray, state: StateArray, generator: np.random.Generator) -> Acted:
        """Draw an action for each of N observations. The arguments are not written to."""
        ...

    def greedy(self, observations: ObservationArray, state: StateArray) -> tuple[ActionArray, StateArray]:
        """The best action, [N, *act], for each of N observations, and the next state [N, S]."""
        ...

    def value(self, observations: ObservationArray, state: StateArray) -> NDArray[np.float32]:
        """Values [N] of N observations."""
        ...

    def parameters_numpy(self) -> dict[str, NDArray[np.generic]]:
        """A copy of every tensor by name, buffers too."""
        ...

    def load_numpy(self, parameters: Mapping[str, NDArray[np.generic]]) -> None:
        """Overwrite every tensor with `parameters`, which are copied.

        Raises ValueError if a name is missing or unknown, or a shape differs: then nothing has been written.
        """
        ...


class FragmentActing(Protocol):
    """One fragment being acted out with weights that stay as they are, by a policy without memory."""

    def act(self, observations: ObservationArray) -> ActionArray:
        """Draw the next step's action for each of N observations [N, *obs]."""
        ...

    def log_probs(self, actions: ActionArray) -> NDArray[np.float32]:
        """Log-probabilities [T, N] of the actions [T, N, *act] that all steps drew."""
        ...


@runtime_checkable
class ActsByFragment(Protocol):
    """A policy that may act out a fragment at less cost than by single calls of `Policy.act`."""

    def act_out(self, steps: int, num_envs: int, generator: np.random.Generator) -> FragmentActing | None:
        """What draws the actions of so many steps, whose values `Policy.value` gives afterwards.

        None if the policy is to act step by step.
        """
        ...


class PolicyDescription(Protocol):
    """What a policy is, before it is built; the same seed builds the same parameters everywhere."""

    @property
    def observations(self) -> ObservationCodec:
        """How observations are encoded."""
        ...

    @property
    def state_width(self) -> int:
        """Width S of the recurrent state; 0 without memory."""
        ...

    def build(self, seed: int, device: str = "cpu") -> Policy:
        """The policy, its parameters drawn from `seed` alone."""
        ...
