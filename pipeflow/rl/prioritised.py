"""Prioritised sampling: which slots of a replay buffer are drawn how often, and what corrects for it.

Apart from the buffer, which holds the rows and samples uniformly without this. The formulas are pure functions;
the class adds the tree that makes them cheap, and the priority that a new row begins with.
Source: Schaul et al., "Prioritized Experience Replay" (2016), sections 3.3 and 3.4, the proportional variant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.schedules import Schedule, as_schedule
from pipeflow.rl.sum_tree import SumTree

_FIRST_PRIORITY = 1.0  # of a new row, as long as no update has said what errors are like


@dataclass(frozen=True)
class Prioritisation:
    """How a replay buffer prefers rows with a large error.

    alpha: how strongly, from 0, which is uniform, to 1. beta: how much of the bias the weights take back, up to
    1; a number or a schedule over the environment steps stored. epsilon: what is added to an error, so that a row
    without one can be drawn again; positive.
    """

    alpha: float = 0.6
    beta: float | Schedule = 0.4
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0:
            raise ValueError(f"alpha must be in [0, 1], got {self.alpha}")
        if not callable(self.beta) and not 0.0 <= self.beta <= 1.0:
            raise ValueError(f"beta must be in [0, 1], got {self.beta}")
        if not 0.0 < self.epsilon < np.inf:
            raise ValueError(
                f"epsilon must be positive, got {self.epsilon}; or a row without error is never drawn again"
            )


def probability_masses(
    priorities: NDArray[np.float64], alpha: float, epsilon: float = 0.0
) -> NDArray[np.float64]:
    """(p + epsilon) ** alpha: probabilities before their division by the sum. priorities: [B], not negative."""
    return np.power(priorities + epsilon, alpha)


def importance_weights(masses: NDArray[np.float64], reference: float, beta: float) -> NDArray[np.float64]:
    """(mass / reference) ** -beta: weights (N P) ** -beta, divided by the one that a row of mass `reference` has.

    masses: [B], positive. reference: the smallest mass of the whole buffer to divide by its largest weight, as
    is done here; the smallest of the batch for that of the batch; the mean of the buffer for no division.
    """
    return np.power(masses / reference, -beta)


class PrioritisedSampler:
    """The priorities of `capacity` slots, all empty at first.

    A new row gets the largest priority that was ever reported, 1 before the first report, so that it is drawn
    soon. The largest so far, not that of the rows which are left: what replay forgets says as much about errors.
    """

    def __init__(self, capacity: int, settings: Prioritisation) -> None:
        self._alpha, self._epsilon = settings.alpha, settings.epsilon
        self._beta = as_schedule(settings.beta)
        self._tree = SumTree(capacity)
        self._largest: float | None = None

    @property
    def largest(self) -> float | None:
        """The largest priority reported so far; None before the first."""
        return self._largest

    def masses(self) -> NDArray[np.float64]:
        """A copy of the masses of all slots [capacity]; 0 for an empty one."""
        return self._tree.leaves()

    def restore(self, masses: NDArray[np.float64], largest: float | None) -> None:
        """Go on with these masses [size] of the first slots, and this largest priority."""
        self._tree.set(np.arange(len(masses)), masses)
        self._largest = largest

    def add(self, slots: NDArray[np.int64]) -> None:
        """New rows lie in `slots` [B]."""
        priority = _FIRST_PRIORITY if self._largest is None else self._largest
        self._tree.set(slots, probability_masses(np.full(len(slots), priority), self._alpha, self._epsilon))

    def update(self, slots: NDArray[np.int64], priorities: NDArray[np.float64]) -> None:
        """The rows in `slots` [B] have these priorities [B], finite and not negative."""
        if len(slots) == 0:
            return
        self._tree.set(slots, probability_masses(priorities, self._alpha, self._epsilon))
        self._largest = max(self._largest or 0.0, float(np.maximum.reduce(priorities)))

    def draw(self, uniforms: NDArray[np.float64], step: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """A slot for each of the uniform numbers in [0, 1), stratified, and its importance weight in (0, 1].

        uniforms: [B], or [M, B] for M minibatches, each of which is stratified by itself. step: environment steps
        stored, for the schedule of beta.
        Returns slots and weights, [B] or [M * B].
        """
        batch_size = uniforms.shape[-1]
        strata = (np.arange(batch_size) + uniforms) * (self._tree.total / batch_size)
        slots = self._tree.find(strata.reshape(-1))
        weights = importance_weights(self._tree.get(slots), self._tree.minimum, self._beta(step))
        return slots, weights.astype(np.float32)
