"""Array conversions of each basic space: Box, Discrete, MultiDiscrete, MultiBinary.

One small class a form that a network knows: numbers, one-hot blocks and images are read; category indices and
real numbers are written. Apart from `spaces`, which puts them together for whole, possibly composite spaces:
here is the arithmetic of one array, there the structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, Self, TypeAlias

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

LeafKind: TypeAlias = Literal["vector", "one_hot", "image", "mask"]

# Beyond this a one-hot block or a row of logits is surely a mistake, and would exhaust memory before it said
# so.
_MOST_CATEGORIES = 65_536
_CHANNEL_COUNTS = (1, 3, 4)


class UnsupportedSpace(TypeError):
    """A space that no policy can be built for."""


class InvalidObservation(ValueError):
    """An observation that does not belong to its space.

    `row` is its place in the batch, None if all are wrong alike.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class NoValidAction(InvalidObservation):
    """An observation to act on whose action mask allows nothing."""

    @classmethod
    def in_row(cls, row: int) -> Self:
        """The error for a row of a batch."""
        return cls(
            f"the action mask of row {row} allows no action, so there is none to choose; an environment must "
            "end the episode, or allow an action, in every state that is acted on",
            row,
        )


@dataclass(frozen=True)
class Numbers:
    """A Box or MultiBinary, flattened to float32."""

    space_shape: tuple[int, ...]

    @property
    def kind(self) -> LeafKind:
        """What the numbers are."""
        return "vector"

    @property
    def shape(self) -> tuple[int, ...]:
        """[D]."""
        return (prod(self.space_shape),)

    def rows(self, values: NDArray[np.generic]) -> NDArray[np.float32]:
        """[N, *space_shape] of any real dtype as a fresh [N, D]."""
        _check_shape(values, self.space_shape)
        return np.array(values, dtype=np.float32).reshape(len(values), *self.shape)

    def write(self, values: NDArray[np.generic], out: NDArray[np.float32]) -> None:
        """`rows`, written into `out` [N, D]."""
        _check_shape(values, self.space_shape)
        out[...] = values.reshape(len(values), *self.shape)


@dataclass(frozen=True)
class OneHot:
    """A Discrete or MultiDiscrete as one block of `sizes[i]` elements for each entry i, in C order."""

    space_shape: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def kind(self) -> LeafKind:
        """What the numbers are."""
        return "one_hot"

    @property
    def shape(self) -> tuple[int, ...]:
        """[D], the sum of the blocks."""
        return (sum(self.sizes),)

    def write(self, values: NDArray[np.generic], out: NDArray[np.float32]) -> None:
        """Set the ones of [N, *space_shape] integers in `out` [N, D], which holds zeros."""
        _check_shape(values, self.space_shape)
        indices = values.reshape(len(values), -1).astype(np.int64) - self._starts
        row = _first_row_outside(indices, self._sizes)
        if row is not None:
            raise InvalidObservation(
                f"{values[row]} is not in the space, whose categories start at {list(self.starts)} "
                f"and number {list(self.sizes)}",
                row,
            )
        out[np.arange(len(values))[:, None], indices + self._offsets] = 1.0

    # Conversions from tuples would take longer than the rest of `write`.
    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        return np.array(self.sizes, dtype=np.int64)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.array(self.starts, dtype=np.int64)

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        return np.cumsum(self._sizes) - self._sizes


@dataclass(frozen=True)
class Image:
    """A uint8 image, or a stack of images, in the order of channels (of all frames), height, width.

    axes: the space's axes in that order. Arrays are transposed into it; a reshape would mix pixels with
    channels.
    """

    space_shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def kind(self) -> LeafKind:
        """What the numbers are."""
        return "image"

    @property
    def shape(self) -> tuple[int, ...]:
        """[C, H, W]."""
        *channels, height, width = (self.space_shape[axis] for axis in self.axes)
        return (prod(channels), height, width)

    def frames(self, values: NDArray[np.generic]) -> NDArray[np.uint8]:
        """[N, *space_shape] as a fresh, contiguous [N, C, H, W]."""
        _check_shape(values, self.space_shape)
        ordered = values.transpose((0, *(axis + 1 for axis in self.axes)))
        return np.array(ordered, dtype=np.uint8, order="C").reshape(len(values), *self.shape)

    def write(self, values: NDArray[np.generic], out: NDArray[np.float32]) -> None:
        """`frames` scaled to [0, 1], written into `out` [N, C * H * W]."""
        np.divide(self.frames(values).reshape(len(values), -1), np.float32(255.0), out=out)


@dataclass(frozen=True)
class Indices:
    """Category indices from 0, as a network gives them, and the environment's values from `starts`.

    dtype: of the environment's values.
    """

    space_shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def width(self) -> int:
        """Number of indices."""
        return len(self.sizes)

    def to_env(self, indices: NDArray[np.generic]) -> NDArray[np.generic]:
        """[N, width] indices as values [N, *space_shape]."""
        if not self._shifted:
            return indices.astype(self.dtype, copy=False).reshape(len(indices), *self.space_shape)
        values: NDArray[np.generic] = (indices.astype(np.int64) + np.array(self.starts)).astype(self.dtype)
        return values.reshape(len(indices), *self.space_shape)

    @cached_property
    def _shifted(self) -> bool:
        return any(self.starts)

    def from_env(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """[N, *space_shape] values as indices [N, width]. Raises ValueError for a value outside the space."""
        indices: NDArray[np.int64] = values.reshape(len(values), -1).astype(np.int64) - np.array(self.starts)
        row = _first_row_outside(indices, np.array(self.sizes))
        if row is not None:
            raise ValueError(
                f"{values[row]} in row {row} is not in the action space; pass the environment's actions"
            )
        return indices


@dataclass(frozen=True, eq=False)
class Reals:
    """Raw real numbers, as a Gaussian gives them, beside the bounded values that the environment takes.

    low, high: the space's bounds, in its shape and dtype; infinite where there is none.
    """

    low: NDArray[np.floating]
    high: NDArray[np.floating]

    def to_env(self, samples: NDArray[np.generic]) -> NDArray[np.generic]:
        """[N, D] samples as values [N, *space_shape] within the bounds."""
        # Cast before clipping: a bound rounded to float32 may lie just outside the space.
        values = samples.reshape(len(samples), *self.low.shape).astype(self.low.dtype)
        return np.clip(values, self.low, self.high, out=values)

    def from_env(self, values: NDArray[np.generic]) -> NDArray[np.float32]:
        """[N, *space_shape] values as [N, D]."""
        return np.array(values, dtype=np.float32).reshape(len(values), -1)


def observation_encoder(space: Space[object], place: str) -> Numbers | OneHot | Image:
    """How a basic space is read. `place` names it in the error. Raises UnsupportedSpace."""
    if isinstance(space, spaces.Box):
        return Image(space.shape, _image_axes(space.shape)) if _is_image(space) else Numbers(space.shape)
    if isinstance(space, spaces.MultiBinary):
        return Numbers(space.shape)
    indices = category_indices(space, place)
    if indices is not None:
        return OneHot(indices.space_shape, indices.sizes, indices.starts)
    raise UnsupportedSpace(
        f"no policy can read {place}, the space {space}: supported are Box, Discrete, MultiDiscrete, "
        "MultiBinary, and Dict and Tuple of them; convert it in a gymnasium.ObservationWrapper"
    )


def category_indices(space: Space[object], place: str) -> Indices | None:
    """The indices of a Discrete or MultiDiscrete, or None for any other space.

    Raises UnsupportedSpace if there are too many categories to give each an element of a vector.
    """
    if isinstance(space, spaces.Discrete):
        indices = Indices((), np.dtype(space.dtype), (int(space.n),), (int(space.start),))
    elif isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(int(n) for n in space.nvec.flat)
        starts = tuple(int(start) for start in space.start.flat)
        indices = Indices(space.shape, np.dtype(space.dtype), sizes, starts)
    else:
        return None
    check_category_count(indices.sizes, space, place)
    return indices


def check_category_count(sizes: tuple[int, ...], space: Space[object], place: str) -> None:
    """Raise UnsupportedSpace if the categories are too many to give each an element of a vector."""
    if sum(sizes) > _MOST_CATEGORIES:
        raise UnsupportedSpace(
            f"{place}, the space {space}, has {sum(sizes)} categories, and at most {_MOST_CATEGORIES} are "
            "supported; encode it in a wrapper, as numbers in a Box for instance"
        )


def check_mask(space: Space[object], place: str) -> None:
    """Raise UnsupportedSpace unless the space holds one bit for each of a number of actions."""
    if isinstance(space, spaces.MultiBinary):
        fits = len(space.shape) == 1
    elif isinstance(space, spaces.Box):
        fits = len(space.shape) == 1 and bool(np.all(space.low == 0) and np.all(space.high == 1))
    else:
        fits = False
    if not fits:
        raise UnsupportedSpace(
            f"{place}, the space {space}, is no action mask: that is a MultiBinary(n), or a Box of n numbers 0 "
            "and 1, with one for each action; give it another name if it is something else"
        )


def _is_image(space: spaces.Box) -> bool:
    # Other bounds mean counts or labels (a board, a mask), which a scale of 1/255 would all but erase.
    full_range = space.dtype == np.uint8 and bool(np.all(space.low == 0) and np.all(space.high == 255))
    return full_range and 2 <= len(space.shape) <= 4


def _image_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) == 2:
        return (0, 1)
    *stack, first, middle, last = range(len(shape))
    first_counts, last_counts = (shape[axis] in _CHANNEL_COUNTS for axis in (first, last))
    channels_first = not last_counts if first_counts or last_counts else shape[first] < shape[last]
    return (*stack, first, middle, last) if channels_first else (*stack, last, first, middle)


def _check_shape(values: NDArray[np.generic], space_shape: tuple[int, ...]) -> None:
    if values.ndim == 0 or values.shape[1:] != space_shape:
        raise InvalidObservation(f"shape {values.shape[1:]} where the space says {space_shape}")


def _first_row_outside(indices: NDArray[np.int64], sizes: NDArray[np.int64]) -> int | None:
    outside = (indices < 0) | (indices >= sizes)
    return int(np.flatnonzero(outside.any(axis=1))[0]) if outside.any() else None
