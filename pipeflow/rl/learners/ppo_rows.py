"""The rows of a batch as tensors, and how an epoch divides them into shuffled minibatches.

Apart from `ppo`, which goes over them, and from its loss, which reads one minibatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeflow.rl.batches import Advantages, Sequences
from pipeflow.rl.modules import to_tensor


@dataclass(frozen=True, eq=False)
class Rows:
    """The columns of `Advantages` as tensors."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    value_targets: Tensor
    sequences: Sequences | None

    @classmethod
    def of(cls, batch: Advantages, device: torch.device) -> Rows:
        return cls(
            to_tensor(batch.observations, device),
            to_tensor(batch.actions, device),
            to_tensor(batch.log_probs, device),
            to_tensor(batch.values, device),
            to_tensor(batch.advantages, device),
            to_tensor(batch.value_targets, device),
            batch.sequences,
        )

    def shuffled(self, minibatch_size: int, generator: torch.Generator) -> Iterator[Rows]:
        """All rows in random order, in minibatches of that many, or of whole sequences with about so many."""
        if self.sequences is None:
            # One gather for the epoch: its minibatches are views.
            whole = self.take(torch.randperm(len(self.advantages), generator=generator), None)
            for start in range(0, len(whole.advantages), minibatch_size):
                part = slice(start, start + minibatch_size)
                yield whole._each(itemgetter(part), None)
            return
        order = torch.randperm(len(self.sequences.lengths), generator=generator).numpy()
        for chosen in split_by_rows(order, self.sequences.lengths, minibatch_size):
            sequences, rows = self.sequences.take(chosen)
            yield self.take(torch.from_numpy(rows), sequences)

    def take(self, indices: Tensor, sequences: Sequences | None) -> Rows:
        indices = indices.to(self.advantages.device)
        return self._each(lambda column: column.index_select(0, indices), sequences)

    def _each(self, selected: Callable[[Tensor], Tensor], sequences: Sequences | None) -> Rows:
        return Rows(
            selected(self.observations),
            selected(self.actions),
            selected(self.log_probs),
            selected(self.values),
            selected(self.advantages),
            selected(self.value_targets),
            sequences,
        )


def split_by_rows(
    order: NDArray[np.int64], lengths: NDArray[np.int64], rows: int
) -> Sequence[NDArray[np.int64]]:
    """Consecutive parts of `order`, indices of sequences of these lengths, each with about so many rows.

    A part ends with the sequence that reaches the next multiple of `rows`; no part is empty.
    """
    starts = np.cumsum(lengths[order]) - lengths[order]
    return np.split(order, np.flatnonzero(np.diff(starts // rows)) + 1)
