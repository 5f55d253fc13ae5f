"""Batches as they arrive from another process: every array a read-only view.

Apart from the tests, since those of every stage and learner need it.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from pipeflow.rl.batches import Advantages, Trajectories
from pipeflow.rl.replay_batches import Samples, Transitions

_Batch = TypeVar("_Batch", Trajectories, Advantages, Transitions, Samples)


def read_only(batch: _Batch) -> _Batch:
    """The batch with a read-only copy of every array."""
    # Any: a field's type is not known from its name.
    frozen: dict[str, Any] = {}
    for field in fields(batch):
        value = getattr(batch, field.name)
        if isinstance(value, np.ndarray):
            frozen[field.name] = value.copy()
            frozen[field.name].setflags(write=False)
    return replace(batch, **frozen)
