"""Mean and variance of what a run has seen, and the running return that scales rewards.

Apart from the code that normalises with them, because their one hard property is their own: workers report
the moments of new data only, the learner merges, and the merged value travels back with the weights.
`Moments` is therefore immutable. Nothing is counted twice, a worker's death loses at most its last report,
and evaluation cannot change training statistics by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipeflow.state.values import StateValue, saved_array, saved_number


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean and population variance of a set of equally shaped samples, element by element.

    Compared by identity: equality of arrays is not one truth value.
    """

    count: float
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Self:
        """Moments of no samples of `shape`: neutral when merged, and `normalise` with them only clips.

        The variance of nothing is given as 1 for that second property; it never enters a merge.
        """
        return cls(0.0, np.zeros(shape), np.ones(shape))

    @classmethod
    def of(cls, batch: NDArray[np.number]) -> Self:
        """Moments of the rows of `batch`.

        batch: [B, *shape], any numeric dtype; B may be 0. Sums are taken in float64.
        Returns moments whose arrays have `shape`.
        Raises ValueError if `batch` has no axis of rows.
        """
        if batch.ndim == 0:
            raise ValueError("Moments.of needs rows along axis 0, got one number; give it the shape (1,)")
        if len(batch) == 0:
            return cls.empty(batch.shape[1:])
        mean = np.asarray(batch.mean(axis=0, dtype=np.float64))
        variance = np.asarray(batch.var(axis=0, dtype=np.float64))
        return cls(float(len(batch)), mean, variance)

    @classmethod
    def of_state(cls, state: Mapping[str, StateValue]) -> Self:
        """The moments that gave this state.

        Raises ValueError if it is none of moments.
        """
        mean, variance = state.get("mean"), state.get("variance")
        if not isinstance(mean, np.ndarray) or not isinstance(variance, np.ndarray):
            raise ValueError(
                f"moments have a count, a mean and a variance, and the state has {sorted(state)}"
            )
        return cls(
            float(saved_number("count", state)), np.array(mean, np.float64), np.array(variance, np.float64)
        )

    def state(self) -> dict[str, StateValue]:
        """All of it, under flat names; `of_state` is the way back."""
        return {"count": self.count, "mean": self.mean, "variance": self.variance}

    def sparing(self, columns: slice | None) -> Moments:
        """These moments with mean 0 and variance 1 in some elements of a vector, which normalising leaves alone.

        Merging with others that spare the same elements keeps them so. None spares nothing.
        """
        if columns is None:
            return self
        mean, variance = self.mean.copy(), self.variance.copy()
        mean[columns], variance[columns] = 0.0, 1.0
        return Moments(self.count, mean, variance)

    def merged(self, other: Moments) -> Moments:
        """Moments of the two disjoint sets together.

        Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
        variances" (1979), their pairwise update, here with the population's divisor.
        Raises ValueError if the samples have different shapes.
        """
        if self.mean.shape != other.mean.shape:
            raise ValueError(
                f"cannot merge moments of samples of shape {self.mean.shape} with those of shape "
                f"{other.mean.shape}; merge moments of the same quantity only"
            )
        if other.count == 0:
            return self
        if self.count == 0:
            return other
        count = self.count + other.count
        share = other.count / count
        delta = other.mean - self.mean
        mean = self.mean + delta * share
        # The last term is delta^2 * n_a * n_b / n^2: what the distance between the two means adds.
        variance = self.variance * (1.0 - share) + other.variance * share + delta**2 * (share * (1.0 - share))
        return Moments(count, mean, variance)

    def normalise(
        self, x: NDArray[np.number], clip: float = 10.0, epsilon: float = 1e-8
    ) -> NDArray[np.float32]:
        """`x` shifted to mean 0, scaled to variance 1, then clipped to [-clip, clip].

        x: [..., *shape], any numeric dtype; not written to. The difference is taken in float64, because a
        mean that is large beside the deviation would cost float32 its digits.
        epsilon: added to the variance, so that an element which never varied does not divide by zero.
        Returns float32 of x's shape.
        """
        centred = np.subtract(x, self.mean, dtype=np.float64)
        centred /= np.sqrt(self.variance + epsilon)
        np.clip(centred, -clip, clip, out=centred)
        return np.asarray(centred, dtype=np.float32)


class ReturnTracker:
    """Running discounted return of each sub-environment, whose variance scales rewards.

    The return is cleared at termination and at truncation alike. Gymnasium's wrapper keeps it over
    truncations on purpose (Gymnasium#760), which lets one episode's rewards inflate the scale of the next;
    this library clears it.

    num_envs: number of sub-environments N. gamma: discount, in [0, 1].
    """

    def __init__(self, num_envs: int, gamma: float) -> None:
        if not 0.0 <= gamma <= 1.0:
            raise ValueError(f"gamma must lie in [0, 1], got {gamma}")
        self._gamma = gamma
        self._returns = np.zeros(num_envs)

    def update(
        self,
        rewards: NDArray[np.floating],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        valid: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """The running returns with this step's rewards added; those of ended episodes then restart at zero.

        rewards, terminated, truncated, valid: [N], one vector step. Rows that are not valid carry no reward
        and are left as they were.
        Returns [N], a fresh array; rows that are not valid do not belong into any statistics.
        """
        updated = np.where(valid, self._gamma * self._returns + rewards, self._returns)
        self._returns = np.where(valid & (terminated | truncated), 0.0, updated)
        return updated

    def state(self) -> dict[str, StateValue]:
        """The running returns, under a flat name."""
        return {"running": self._returns.copy()}

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on with the running returns of the tracker that gave this state.

        Raises ValueError if it is of another number of sub-environments.
        """
        self._returns = saved_array("running", state, self._returns)
