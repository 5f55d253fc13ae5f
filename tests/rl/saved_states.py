"""What tests of saved states share: the way over the disk, and equality down to the bits.

Apart from the tests, since several of their modules use the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np

from pipeflow.state.folders import load_checkpoint, save_checkpoint
from pipeflow.state.values import StateValue


def over_disk(state: Mapping[str, StateValue], folder: Path) -> Mapping[str, StateValue]:
    """The state as another process would find it."""
    path = folder / str(len(list(folder.iterdir())))
    save_checkpoint(path, {}, state)
    return load_checkpoint(path).state


def identical(one: object, other: object) -> bool:
    """Whether two values have the same types, and the same numbers down to the bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return (one.dtype, one.shape) == (other.dtype, other.shape) and one.tobytes() == other.tobytes()
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(identical(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(identical, one, other))
    if is_dataclass(one):
        return all(
            identical(getattr(one, column.name), getattr(other, column.name)) for column in fields(one)
        )
    return one == other
