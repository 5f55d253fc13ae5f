"""Plain values as text and arrays, with who shares what with whom, so that nothing is unpickled to get them back.

Apart from whoever says of which objects the attributes are saved. What is written are numbers, texts,
containers, numpy's arrays and random generators, tensors, objects of classes that are plain data, and references
between them: two names of one list or array are two names of one again, and a view is a view of the same memory
again. Objects of other classes are not made: their attributes are written, and read back into objects that are
there already, at the same place.
"""

from __future__ import annotations

import json
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeflow.state.classes import attributes_of, class_name, is_named_tuple, is_ordinary
from pipeflow.state.tensors import is_tensor, tensor_parts
from pipeflow.state.values import StateValue

Node: TypeAlias = "bool | int | float | str | list[Node] | dict[str, Node] | None"
"""A value as JSON: itself, or a list of its kind and its parts."""

TEXT = "text"
CONSTANTS = (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
    np.dtype,
    np.ufunc,
    partial,
    type,
)
"""What says how an object was made or what it does, and is the same in another one of the same configuration."""


class UnsavableValue(ValueError):
    """A value that cannot be written without pickle, with its place."""


class Writer:
    """Writes values one after the other; `finish` gives what `Reader` reads.

    attributes: of an object that will be there when the values are read, those that are to be saved by name; None
    for one that will not.
    constants: further types whose objects say how something was made, beside `CONSTANTS`.
    names: what objects are called, by identity, that whoever reads knows by the same names.
    special: of an object that whoever reads makes in a way of its own, what that way is called, and what it takes.
    """

    def __init__(
        self,
        attributes: Callable[[object], Mapping[str, object] | None],
        *,
        constants: tuple[type, ...] = (),
        names: Mapping[int, str] | None = None,
        special: Callable[[object], tuple[str, object] | None] = lambda _: None,
    ) -> None:
        self._attributes = attributes
        self._constants = CONSTANTS + constants
        self._names = {} if names is None else names
        self._special = special
        self._shared: list[Node] = []
        self._indices: dict[int, int] = {}
        # Whose identities stand in `_indices`: one that is gone would leave its own to another.
        self._alive: list[object] = []
        self._arrays: dict[str, StateValue] = {}
        # How deep in what is made anew by whoever reads, where nothing has a place already.
        self._made_anew = 0

    def finish(self, root: Node) -> dict[str, StateValue]:
        """All that was written, with the node to begin reading at, under flat names."""
        text = json.dumps([root, self._shared], separators=(",", ":"))
        return {TEXT: np.frombuffer(text.encode(), np.uint8).copy(), **self._arrays}

    def write(self, value: object, place: str) -> Node:
        """A value's node. place: what messages call it.

        Raises UnsavableValue if it, or something within, cannot be written.
        """
        if value is None:
            return None
        # By type as well: numpy's float64 is a float, and not one that JSON gives back.
        if isinstance(value, bool | int | float | str) and type(value) in (bool, int, float, str):
            return value
        name = self._names.get(id(value))
        if name is not None:
            return ["named", name]
        if isinstance(value, self._constants):
            if self._made_anew:
                raise UnsavableValue(
                    f"{place} is {value!r}, a {type(value).__name__}, which is no plain value"
                )
            return ["constant"]
        if isinstance(value, Enum):
            return ["enum", self._class_of(value, place), value.name]
        if isinstance(value, int | float | str) and not isinstance(value, np.generic):
            base = next(base for base in (int, float, str) if isinstance(value, base))
            return ["derived", self._class_of(value, place), base(value)]
        if isinstance(value, np.generic):
            return ["scalar", self._stored(np.asarray(value), place), value.dtype.str]
        if type(value) is bytes:
            return ["bytes", self._stored(np.frombuffer(value, np.uint8), place)]
        if type(value) is tuple:
            return ["tuple", self._written(value, place)]
        if isinstance(value, tuple) and is_named_tuple(type(value)):
            return ["named_tuple", self._class_of(value, place), self._written(tuple(value), place)]
        if type(value) is frozenset:
            return ["frozenset", self._written(tuple(value), place)]
        index = self._indices.get(id(value))
        if index is None:
            index = self._indices[id(value)] = len(self._shared)
            self._alive.append(value)
            # Reserved before its parts are written, which may lead back to it.
            self._shared.append(None)
            self._shared[index] = self._parts(value, place)
        return ["shared", index]

    def _parts(self, value: object, place: str) -> Node:
        """The node of a value that several places may share."""
        special = self._special(value)
        if special is not None:
            return ["special", special[0], self._anew(lambda: self.write(special[1], place))]
        if type(value) is np.ndarray:
            return self._array(value, place)
        if is_tensor(value):
            array, dtype, requires_grad = tensor_parts(value)
            return ["tensor", self.write(array, place), dtype, requires_grad]
        if type(value) is list:
            return ["list", self._written(value, place)]
        if type(value) is set:
            return ["set", self._written(tuple(value), place)]
        if type(value) is deque:
            return ["deque", self._anew(lambda: self._written(tuple(value), place)), value.maxlen]
        if type(value) is dict:
            return ["dict", self._items(value, place)]
        if type(value) in (Counter, OrderedDict, defaultdict):
            assert isinstance(value, dict)
            return ["mapping", type(value).__name__, self._items(value, place)]
        if isinstance(value, np.random.Generator):
            return ["generator", self.write(value.bit_generator.state, place)]
        if isinstance(value, np.random.RandomState):
            return ["random_state", self.write(value.get_state(legacy=False), place)]
        if type(value) is random.Random:
            return ["random", self.write(value.getstate(), place)]
        attributes = self._attributes(value)
        if attributes is not None:
            return ["object", self._named_parts(attributes, place)]
        kind = self._class_of(value, place)
        if not is_ordinary(type(value)):
            raise UnsavableValue(f"{place} is of type {type(value).__name__}, which has more than attributes")
        return ["instance", kind, self._named_parts(attributes_of(value), place)]

    def _anew(self, write: Callable[[], Node]) -> Node:
        self._made_anew += 1
        try:
            return write()
        finally:
            self._made_anew -= 1

    def _class_of(self, value: object, place: str) -> str:
        kind = type(value)
        name = class_name(kind)
        if name is None:
            raise UnsavableValue(
                f"{place} is of type {kind.__name__}, which is no plain value, and no dataclass that is known by "
                f"name in its module"
            )
        return name

    def _named_parts(self, attributes: Mapping[str, object], place: str) -> dict[str, Node]:
        return {name: self.write(item, f"{place}.{name}") for name, item in attributes.items()}

    # `Any`: keys and values of whatever kind. Keys are immutable, so nothing within them is at a place.
    def _items(self, value: Mapping[Any, Any], place: str) -> list[Node]:
        return [
            [self.write(key, place), self.write(item, f"{place}[{key!r}]")] for key, item in value.items()
        ]

    def _written(self, values: Sequence[object], place: str) -> list[Node]:
        return [self.write(value, f"{place}[{index}]") for index, value in enumerate(values)]

    def _array(self, array: NDArray[Any], place: str) -> Node:
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        own = owner.flags.owndata or isinstance(owner.base, bytes)
        whole = owner.flags.c_contiguous or owner.flags.f_contiguous
        if (own and not whole) or (not own and owner.flags.writeable and not self._made_anew):
            raise UnsavableValue(f"{place} is an array of memory that is not numpy's own")
        # Of memory that is not numpy's (Ray's, torch's) an item has a copy; an object that is filled might share
        # it.
        if owner is array or not own:
            order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
            name = self._stored(array.ravel(order), place)
            return ["array", name, array.dtype.str, list(array.shape), order, array.flags.writeable]
        offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        view: list[Node] = [array.dtype.str, list(array.shape), offset, list(array.strides)]
        return ["view", self.write(owner, place), *view, array.flags.writeable]

    def _stored(self, array: NDArray[Any], place: str) -> str:
        """Keep a copy of an array under a new name; what a checkpoint has no type for, as bytes."""
        if array.dtype.kind not in "biufcSUmM":
            raise UnsavableValue(f"{place} is of dtype {array.dtype}, which cannot be saved")
        name = f"arrays/{len(self._arrays)}"
        plain = array.dtype.kind in "biuf" and array.dtype.isnative and array.dtype.itemsize <= 8
        self._arrays[name] = array.copy() if plain else np.frombuffer(array.tobytes(), np.uint8).copy()
        return name
