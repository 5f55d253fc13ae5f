"""A tree of sums over the priorities of a replay buffer: draws in proportion to them, and changes many at once.

Apart from the buffer, which knows slots and not how one is found. Nodes have 16 children rather than two, and the
root as many as a linear scan is cheap for: numpy takes a batch through a level in a few calls, whose price hardly
depends on the number of children. A million leaves are then two levels below the root rather than twenty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_CHILDREN = 16
_ROOT_CHILDREN = 4096


class SumTree:
    """Non-negative leaves with their total, their smallest positive value, and a search by running sums.

    Every sum is taken afresh from its children when one of them changes, so rounding does not add up, and equal
    leaves have equal sums whatever came before. All leaves begin at 0, and a leaf of 0 is never found.
    capacity: number of leaves, at least 1, not only powers of two.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a sum tree needs a capacity of at least 1, got {capacity}")
        self._capacity = capacity
        places = capacity
        # From the root's children to the leaves: a place of one level is the sum of 16 places of the next.
        self._sums: list[NDArray[np.float64]] = []
        self._minima: list[NDArray[np.float64]] = []
        while True:
            nodes = -(-places // _CHILDREN)
            self._sums.insert(0, np.zeros(nodes * _CHILDREN))
            self._minima.insert(0, np.full(nodes * _CHILDREN, np.inf))
            if places <= _ROOT_CHILDREN:
                break
            places = nodes

    @property
    def total(self) -> float:
        """The sum of all leaves."""
        return float(np.add.reduce(self._sums[0]))

    @property
    def minimum(self) -> float:
        """The smallest leaf that is not 0; infinite when there is none."""
        return float(np.minimum.reduce(self._minima[0]))

    def leaves(self) -> NDArray[np.float64]:
        """A copy of all leaves [capacity]."""
        return self._sums[-1][: self._capacity].copy()

    def get(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """The leaves [B] at `indices` [B]."""
        return self._sums[-1].take(indices)

    def set(self, indices: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Overwrite the leaves at `indices` [B] with `values` [B]; of equal indices the last counts.

        Raises ValueError for a value that is negative or not finite, before anything is written.
        """
        if len(values) == 0:
            return
        # One comparison of the extremes finds every fault: with a nan among the values both are nan.
        if not 0.0 <= np.minimum.reduce(values) <= np.maximum.reduce(values) < np.inf:
            raise ValueError("the leaves of a sum tree must be finite and not negative")
        self._sums[-1][indices] = values
        # Read back, since of equal indices only one was written.
        written = self.get(indices)
        self._minima[-1][indices] = np.where(written > 0.0, written, np.inf)
        nodes = indices
        for depth in range(len(self._sums) - 1, 0, -1):
            nodes = nodes // _CHILDREN
            for levels, reduce in ((self._sums, np.add.reduce), (self._minima, np.minimum.reduce)):
                # Reduced over rows: numpy adds and compares whole rows, and short columns one by one.
                levels[depth - 1][nodes] = reduce(_children(levels[depth], nodes).T.copy(), axis=0)

    def find(self, prefixes: NDArray[np.float64]) -> NDArray[np.int64]:
        """For each prefix, the first leaf at which the running sum of the leaves exceeds it.

        prefixes: [B], in [0, total]; one that reaches the total, as rounding can make of a share of it, finds the
        last leaf that is not 0.
        Returns indices [B].
        Raises ValueError if all leaves are 0.
        """
        running = np.add.accumulate(self._sums[0])
        if running[-1] <= 0.0:
            raise ValueError("nothing can be found in a sum tree whose leaves are all 0; set some first")
        prefixes = np.minimum(prefixes, np.nextafter(running[-1], 0.0))
        found: NDArray[np.int64] = running.searchsorted(prefixes, side="right")
        remaining = prefixes - np.where(found > 0, running[found - 1], 0.0)
        columns = np.arange(len(prefixes))
        running = np.zeros((1 + _CHILDREN, len(prefixes)))  # row c: the sum of the children before c
        for sums in self._sums[1:]:
            np.add.accumulate(_children(sums, found), axis=1, out=running[1:].T)
            # Below the last running sum stands a child that is not 0, whatever was rounded on the way here.
            remaining = np.minimum(remaining, np.nextafter(running[-1], 0.0))
            passed = (running[1:] <= remaining).view(np.uint8)
            child = np.add.reduce(passed, axis=0, dtype=np.uint8).astype(np.int64)
            remaining = remaining - running.take(child * len(prefixes) + columns)
            found = found * _CHILDREN + child
        return found


def _children(level: NDArray[np.float64], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The places [B, 16] of a level that stand below `nodes` [B] of the level above it."""
    return level.reshape(-1, _CHILDREN).take(nodes, axis=0)
