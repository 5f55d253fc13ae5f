"""The states that actors save and load: arrays and numbers under flat names.

Apart from the checkpoints, which write such states to files, and from the actors that have them: learners, replay
buffers, workers. Parts of a state stand under prefixes that end with a slash, as in "generator/actions".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    Scalar = TypeVar("Scalar", bound=np.generic)

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""What JSON can say."""

StateValue: TypeAlias = "NDArray[np.generic] | int | float"
"""What a saved state holds under a name: a checkpoint keeps arrays as arrays, and numbers as JSON."""


def under(prefix: str, state: Mapping[str, StateValue]) -> dict[str, StateValue]:
    """The part of a state whose names begin with a prefix, by what follows it."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def arrays_under(prefix: str, state: Mapping[str, StateValue]) -> dict[str, NDArray[np.generic]]:
    """The arrays of a state whose names begin with a prefix, by what follows it."""
    return {name: value for name, value in under(prefix, state).items() if isinstance(value, np.ndarray)}


def prefixed(prefix: str, state: Mapping[str, StateValue]) -> dict[str, StateValue]:
    """A state as a part of a larger one: `under` is the way back."""
    return {f"{prefix}{name}": value for name, value in state.items()}


def saved_number(name: str, state: Mapping[str, StateValue]) -> float:
    """The number under a name; whole ones stay exact, up to any size, through `int`.

    Raises ValueError if there is none.
    """
    value = state.get(name)
    if value is None or isinstance(value, np.ndarray):
        raise ValueError(f"the state has no number {name!r}; give load_state what state() returned")
    return value


def saved_array(name: str, state: Mapping[str, StateValue], like: NDArray[Scalar]) -> NDArray[Scalar]:
    """A copy of the array under a name, of the shape and dtype of the one that it takes the place of.

    Raises ValueError if there is none, or it has another shape or dtype.
    """
    value = state.get(name)
    if not isinstance(value, np.ndarray) or value.shape != like.shape or value.dtype != like.dtype:
        found = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)
        raise ValueError(
            f"the state has {found} for {name!r} where {like.dtype}{list(like.shape)} is needed; it is of "
            "another configuration"
        )
    return np.array(value, like.dtype)
