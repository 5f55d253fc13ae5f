"""TorchRL's replay buffer as `bench_replay` measures it, in an environment of TorchRL's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict  # type: ignore[import-not-found]  # not in the environment that is checked
from torch import Tensor
from torchrl.data import (  # type: ignore[import-not-found]  # nor is this
    LazyTensorStorage,
    PrioritizedSampler,
    RandomSampler,
    ReplayBuffer,
)

from pipeflow.rl.replay_batches import Transitions


class TorchRLs:
    """The plain buffer, which is faster than the one that keeps priorities in a tensor dictionary.

    capacity: rows, filled by repeating `filling`. exponents: alpha and beta of priorities; None samples uniformly.
    step: what `add` stores. errors: gives new ones for every batch.
    """

    def __init__(
        self,
        capacity: int,
        batch_size: int,
        exponents: tuple[float, float] | None,
        filling: Transitions,
        step: Transitions,
        errors: Callable[[], NDArray[np.float64]],
    ) -> None:
        sampler = RandomSampler() if exponents is None else PrioritizedSampler(capacity, *exponents)
        self.buffer = ReplayBuffer(
            storage=LazyTensorStorage(capacity), sampler=sampler, batch_size=batch_size
        )
        for _ in range(capacity // filling.steps):
            self.buffer.extend(_rows(filling))
        self._step = _rows(step)
        self._errors = errors

    def add(self) -> None:
        """Store a step of all environments."""
        self.buffer.extend(self._step)

    def sample(self) -> None:
        """Draw a batch."""
        self.buffer.sample()

    def sample_and_update(self) -> None:
        """Draw a batch and report its errors."""
        _, info = self.buffer.sample(return_info=True)
        self.buffer.update_priority(info["index"], torch.from_numpy(self._errors()).float())


def _rows(transitions: Transitions) -> TensorDict:
    columns: dict[str, Tensor] = {
        name: torch.from_numpy(column)
        for name, column in vars(transitions).items()
        if isinstance(column, np.ndarray)
    }
    return TensorDict(columns, batch_size=[transitions.steps])
