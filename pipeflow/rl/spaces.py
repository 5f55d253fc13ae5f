"""Gymnasium's spaces as the arrays that a network reads and writes.

An `ObservationCodec` turns a vector environment's batch of observations into one array; an `ActionCodec`
turns a network's actions into what the environment takes. Apart from environments and from policies, so that
neither knows of the other: both meet in these codecs, and a space that no policy can be built for is refused
here, by name, before anything runs. The arithmetic of a single array stands in `basic_spaces`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from pipeflow.rl.basic_spaces import (
    Image,
    Indices,
    LeafKind,
    Numbers,
    OneHot,
    Reals,
    category_indices,
    check_category_count,
    check_mask,
    observation_encoder,
)
from pipeflow.rl.basic_spaces import InvalidObservation as InvalidObservation
from pipeflow.rl.basic_spaces import NoValidAction as NoValidAction
from pipeflow.rl.basic_spaces import UnsupportedSpace as UnsupportedSpace

SpaceBatch: TypeAlias = "NDArray[np.generic] | Mapping[str, SpaceBatch] | tuple[SpaceBatch, ...]"
"""A batch as gymnasium's vector environments hold it: arrays with a leading axis N, in dicts and tuples."""

ActionKind: TypeAlias = Literal["categorical", "multi_categorical", "bernoulli", "gaussian"]

_MASK_NAME = "action_mask"  # as in PettingZoo

_Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class Leaf:
    """A basic space within an observation, and its place in the flat vector.

    path: the keys and indices that lead to it; () for a space that is not composite.
    kind: what its numbers are. An image is in channel-first order, and scaled to [0, 1] when part of a
    composite space.
    shape: [D] or [C, H, W], into which `vector[..., leaf.slice]` can be reshaped.
    start: where it begins in the flat vector.
    """

    path: _Path
    kind: LeafKind
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        """How many elements of the flat vector it takes."""
        return prod(self.shape)

    @property
    def slice(self) -> slice:
        """Its place in the flat vector."""
        return slice(self.start, self.start + self.size)


@dataclass(frozen=True)
class ObservationCodec:
    """How observations of `space` become one array. Built by `observation_codec`.

    shape: of one encoded observation: [D], or [C, H, W] when `space` is an image.
    dtype: float32, or uint8 when `space` is an image.
    leaves: the basic spaces in the order in which they lie in the vector; an action mask is the last.
    """

    space: Space[object]
    shape: tuple[int, ...] = field(compare=False)
    dtype: np.dtype[np.float32] | np.dtype[np.uint8] = field(compare=False)
    leaves: tuple[Leaf, ...] = field(compare=False)
    _encoders: tuple[Numbers | OneHot | Image, ...] = field(compare=False, repr=False)

    @property
    def is_image(self) -> bool:
        """Whether an observation is one uint8 image, kept as [C, H, W]."""
        return len(self.shape) == 3

    @cached_property
    def mask(self) -> slice | None:
        """Where the action mask lies in the vector, always at its end; None if there is none.

        A one, or any other number than zero, allows the action of its index. It is for choosing among actions
        only: no network reads it, and no statistics scale it.
        """
        last = self.leaves[-1]
        return last.slice if last.kind == "mask" else None

    @cached_property
    def feature_count(self) -> int:
        """How many elements of an observation, from the first on, are for a network to read."""
        return prod(self.shape) if self.mask is None else self.mask.start

    def encode(self, batch: SpaceBatch) -> NDArray[np.float32] | NDArray[np.uint8]:
        """The batch as one array that shares no memory with it, so that an environment may reuse its own.

        batch: arrays [N, ...] in the structure of the space.
        Returns [N, *shape] of `dtype`.
        Raises InvalidObservation if the structure, a shape or a category is not of the space.
        """
        first = self._encoders[0]
        if isinstance(first, Image) and self.is_image:
            return first.frames(_at(batch, ()))
        if isinstance(first, Numbers) and not self.leaves[0].path:
            return first.rows(_at(batch, ()))
        arrays = [_at(batch, leaf.path) for leaf in self.leaves]
        vectors = np.zeros((len(arrays[0]), *self.shape), dtype=np.float32)
        for leaf, encoder, values in zip(self.leaves, self._encoders, arrays, strict=True):
            encoder.write(values, vectors[:, leaf.slice])
        return vectors


def observation_codec(space: Space[object]) -> ObservationCodec:
    """The codec of an observation space.

    Box becomes a float32 vector, flattened if it has several axes. A uint8 Box with bounds 0 and 255 and two
    or three axes is an image; four axes are a stack of images, whose frames become channels. Which axis holds
    the channels is read from the shape: the end that counts 1, 3 or 4 (the last, if both do), else the
    shorter one. Discrete and MultiDiscrete become one-hot, one block for each entry. Dict and Tuple, nested
    at will, become one vector of their parts in order. A part of a Dict named "action_mask", with a 0 or 1 for
    each action (PettingZoo's convention), goes to the end of the vector.
    Raises UnsupportedSpace for any other space, naming it.
    """
    leaves: list[Leaf] = []
    encoders: list[Numbers | OneHot | Image] = []
    start = 0
    for path, basic in sorted(_basic_spaces(space), key=lambda part: _is_mask(part[0])):
        encoder = observation_encoder(basic, _place("observation", path))
        kind = encoder.kind
        if _is_mask(path):
            check_mask(basic, _place("observation", path))
            if leaves and leaves[-1].kind == "mask":
                raise UnsupportedSpace(f"the observation space {space} has several action masks; join them")
            kind = "mask"
        leaf = Leaf(path, kind, encoder.shape, start)
        leaves.append(leaf)
        encoders.append(encoder)
        start += leaf.size
    if sum(leaf.size for leaf in leaves if leaf.kind != "mask") == 0:
        raise UnsupportedSpace(f"the observation space {space} holds no numbers; a policy needs at least one")
    if leaves[0].kind == "image" and not leaves[0].path:
        return ObservationCodec(space, leaves[0].shape, np.dtype(np.uint8), tuple(leaves), tuple(encoders))
    return ObservationCodec(space, (start,), np.dtype(np.float32), tuple(leaves), tuple(encoders))


@dataclass(frozen=True)
class ActionCodec:
    """How a network's actions become actions of `space`. Built by `action_codec`.

    A network's action is a category index from 0, a row of such indices, a row of bits, or a raw Gaussian
    sample. This form is what is stored and what log-probabilities are taken of; the environment alone sees
    the other.

    kind: the distribution that fits. sizes: number of categories of each component; (D,) for bits and
    Gaussians.
    shape: of one network action: () for categorical, else [D]. dtype: int64, or float32 for Gaussians.
    """

    space: Space[object]
    kind: ActionKind = field(compare=False)
    sizes: tuple[int, ...] = field(compare=False)
    shape: tuple[int, ...] = field(compare=False)
    dtype: np.dtype[np.int64] | np.dtype[np.float32] = field(compare=False)
    _parts: Reals | tuple[tuple[_Path, Indices], ...] = field(compare=False, repr=False)

    @property
    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(lowest, highest) [D] of the real numbers that the space takes; infinite where it has no bound.

        Raises UnsupportedSpace for actions that are no real numbers.
        """
        if not isinstance(self._parts, Reals):
            raise UnsupportedSpace(
                f"bounds are of real numbers, a float Box, and the actions are {self.space}"
            )
        low, high = self._parts.low, self._parts.high
        return low.astype(np.float32).reshape(-1), high.astype(np.float32).reshape(-1)

    def to_env(self, actions: NDArray[np.int64 | np.float32]) -> SpaceBatch:
        """What the environment is given for the network's actions; `actions` is not written to.

        actions: [N, *shape]. Indices get the space's `start` added; Gaussian samples are clipped to the
        space's bounds.
        Returns arrays [N, ...] in the structure, shapes and dtypes of the space.
        """
        if isinstance(self._parts, Reals):
            return self._parts.to_env(actions)
        columns = actions.reshape(len(actions), -1)
        if not self._parts[0][0]:  # not composite: spared what follows, at every step
            return self._parts[0][1].to_env(columns)
        arrays: list[NDArray[np.generic]] = []
        offset = 0
        for _, part in self._parts:
            arrays.append(part.to_env(columns[:, offset : offset + part.width]))
            offset += part.width
        return _assembled(self.space, iter(arrays))

    def from_env(self, actions: SpaceBatch) -> NDArray[np.int64] | NDArray[np.float32]:
        """The network's form of the environment's actions: the inverse of `to_env`, but for what was clipped.

        actions: arrays [N, ...] in the structure of the space. Returns [N, *shape] of `dtype`.
        Raises ValueError if a category is not of the space.
        """
        if isinstance(self._parts, Reals):
            return self._parts.from_env(_at(actions, ()))
        columns = [part.from_env(_at(actions, path)) for path, part in self._parts]
        return np.concatenate(columns, axis=1).reshape(len(columns[0]), *self.shape)


def action_codec(space: Space[object]) -> ActionCodec:
    """The codec of an action space.

    Discrete is categorical; MultiDiscrete, a bounded integer Box, and Dict and Tuple of Discrete and
    MultiDiscrete are multi-categorical; MultiBinary is Bernoulli; a float Box is Gaussian.
    Raises UnsupportedSpace for any other space, naming it.
    """
    indices, reals = np.dtype(np.int64), np.dtype(np.float32)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        width = prod(space.shape)
        bounds = Reals(space.low.astype(space.dtype), space.high.astype(space.dtype))
        codec = ActionCodec(space, "gaussian", (width,), (width,), reals, bounds)
    elif isinstance(space, spaces.MultiBinary):
        width = prod(space.shape)
        bits = Indices(space.shape, np.dtype(space.dtype), (2,) * width, (0,) * width)
        codec = ActionCodec(space, "bernoulli", (width,), (width,), indices, (((), bits),))
    elif isinstance(space, spaces.Box):
        part = _bounded_integers(space)
        codec = ActionCodec(space, "multi_categorical", part.sizes, (part.width,), indices, (((), part),))
    else:
        parts = tuple((path, _action_part(basic, path, space)) for path, basic in _basic_spaces(space))
        sizes = tuple(size for _, part in parts for size in part.sizes)
        if isinstance(space, spaces.Discrete):
            codec = ActionCodec(space, "categorical", sizes, (), indices, parts)
        else:
            codec = ActionCodec(space, "multi_categorical", sizes, (len(sizes),), indices, parts)
    if sum(codec.sizes) == 0:
        raise UnsupportedSpace(
            f"the action space {space} leaves nothing to choose; a policy needs a component"
        )
    return codec


def _action_part(basic: Space[object], path: _Path, whole: Space[object]) -> Indices:
    part = category_indices(basic, _place("action", path))
    if part is None:
        raise UnsupportedSpace(
            f"no policy can choose {_place('action', path)}, the space {basic}, of {whole}: supported are "
            "Discrete, MultiDiscrete, MultiBinary and Box, and Dict and Tuple of Discrete and MultiDiscrete; "
            "convert it in a gymnasium.ActionWrapper"
        )
    return part


def _bounded_integers(space: spaces.Box) -> Indices:
    sizes = tuple(int(high) - int(low) + 1 for low, high in zip(space.low.flat, space.high.flat, strict=True))
    check_category_count(sizes, space, "the action")
    return Indices(space.shape, np.dtype(space.dtype), sizes, tuple(int(low) for low in space.low.flat))


def _basic_spaces(space: Space[object], path: _Path = ()) -> Iterator[tuple[_Path, Space[object]]]:
    """The basic spaces within `space`, each with its path, in order; a basic space is its own only part."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _basic_spaces(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from _basic_spaces(part, (*path, index))
    else:
        yield path, space


def _is_mask(path: _Path) -> bool:
    return bool(path) and path[-1] == _MASK_NAME


def _assembled(space: Space[object], arrays: Iterator[NDArray[np.generic]]) -> SpaceBatch:
    """The inverse of `_basic_spaces`: arrays in its order, put into the structure of `space`."""
    if isinstance(space, spaces.Dict):
        return {key: _assembled(part, arrays) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_assembled(part, arrays) for part in space.spaces)
    return next(arrays)


def _at(batch: SpaceBatch, path: _Path) -> NDArray[np.generic]:
    """The array of one part of a batch."""
    for depth, step in enumerate(path):
        part = _part(batch, step)
        if part is None:
            found = list(batch) if isinstance(batch, Mapping) else type(batch).__name__
            raise InvalidObservation(
                f"no part {_dotted(path[: depth + 1])}, which the space has; found {found}"
            )
        batch = part
    return np.asarray(batch)


def _part(batch: SpaceBatch, step: str | int) -> SpaceBatch | None:
    if isinstance(batch, Mapping):
        return batch.get(step) if isinstance(step, str) else None
    if isinstance(batch, tuple) and isinstance(step, int) and step < len(batch):
        return batch[step]
    return None


def _place(whole: str, path: _Path) -> str:
    return f"part {_dotted(path)} of the {whole}" if path else f"the {whole}"


def _dotted(path: _Path) -> str:
    return ".".join(map(str, path))
