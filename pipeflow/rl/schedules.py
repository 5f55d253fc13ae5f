"""Values that change over a run: learning rates, exploration, anything annealed.

Apart from what they drive, and without state: a schedule is a function of the run's lifetime step counter. A
resumed run therefore goes on where it was, and ten short calls anneal exactly as one long call does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Schedule: TypeAlias = Callable[[float], float]
"""From the lifetime step counter to the value in force at that step."""


@dataclass(frozen=True)
class Constant:
    """The same value at every step."""

    value: float

    def __call__(self, step: float, /) -> float:
        """The value; `step` does not matter."""
        return self.value


@dataclass(frozen=True)
class Linear:
    """A straight line from `start` at step 0 to `final` at step `steps`, then `final`."""

    start: float
    final: float
    steps: float

    def __post_init__(self) -> None:
        if self.steps <= 0:
            raise ValueError(
                f"Linear needs a positive number of steps, got {self.steps}; use Constant for no change"
            )

    def __call__(self, step: float, /) -> float:
        """The value at `step`."""
        share = min(max(step / self.steps, 0.0), 1.0)
        # This form, not start + share * (final - start), is exact at both ends.
        return self.start * (1.0 - share) + self.final * share


@dataclass(frozen=True)
class Piecewise:
    """Straight lines between `(step, value)` points; the first value before, the last value after."""

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("Piecewise needs at least one (step, value) point, got none")
        for (left, _), (right, _) in zip(self.points, self.points[1:], strict=False):
            if not left < right:
                raise ValueError(f"the steps of Piecewise's points must increase, got {right} after {left}")

    def __call__(self, step: float, /) -> float:
        """The value at `step`."""
        right = bisect_right(self.points, step, key=lambda point: point[0])
        if right == 0:
            return self.points[0][1]
        if right == len(self.points):
            return self.points[-1][1]
        (x0, y0), (x1, y1) = self.points[right - 1], self.points[right]
        share = (step - x0) / (x1 - x0)
        return y0 * (1.0 - share) + y1 * share


def as_schedule(value: float | Schedule) -> Schedule:
    """`value` itself if it is a schedule, else the constant schedule of that number."""
    return value if callable(value) else Constant(float(value))


def annealed(start: float, steps: int | None) -> Constant | Linear:
    """`start`, falling to 0 over so many steps; without a number of steps it stays."""
    return Constant(start) if steps is None else Linear(start, 0.0, steps)


def per_worker_epsilon(base: float, alpha: float, index: int, count: int) -> float:
    """The exploration rate of one of `count` workers, which together cover many rates.

    epsilon_i = base ** (1 + alpha * i / (count - 1)); a single worker gets `base`.
    base: in (0, 1]. alpha: the spread, 7 in the paper. index: 0 <= index < count.
    Raises ValueError if the index does not belong to one of the workers.
    Source: Horgan et al., "Distributed Prioritized Experience Replay" (2018), section 4.1.
    """
    if not 0 <= index < count:
        raise ValueError(
            f"worker index {index} is not one of {count} workers; indices run from 0 to count - 1"
        )
    if count == 1:
        return base
    return float(base ** (1.0 + alpha * index / (count - 1)))
