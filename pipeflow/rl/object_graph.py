"""Plain values as text and arrays, with who shares what with whom, so that nothing is unpickled to get them back.

Apart from `environment_state`, which says of which objects the attributes are saved. What is written are numbers,
texts, containers, numpy's arrays and random generators, and references between them: two names of one list or
array are two names of one again, and a view is a view of the same memory again. Objects of classes are not
made: their attributes are written, and read back into objects that are there already, at the same place.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec as Registration
from numpy.typing import NDArray

from pipeflow.rl.saved_state import StateValue

Node: TypeAlias = "bool | int | float | str | list[Node] | dict[str, Node] | None"
"""A value as JSON: itself, or a list of its kind and its parts."""

_TEXT = "text"
_BIT_GENERATORS: Mapping[str, Callable[[], np.random.BitGenerator]] = {
    kind.__name__: kind
    for kind in (
        np.random.MT19937,
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.Philox,
        np.random.SFC64,
    )
}
# What says how an object was made or what it does, and is the same in another one of the same configuration.
_CONSTANTS = (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
    Registration,
    gymnasium.Space,
    np.dtype,
    np.ufunc,
    partial,
    type,
)


class UnsavableValue(ValueError):
    """A value that cannot be written without pickle, with its place."""


class Writer:
    """Writes values one after the other; `finish` gives what `Reader` reads.

    attributes: of an object of a class, those that are to be saved by name; None for an object that cannot be.
    """

    def __init__(self, attributes: Callable[[object], Mapping[str, object] | None]) -> None:
        self._attributes = attributes
        self._shared: list[Node] = []
        self._indices: dict[int, int] = {}
        # Whose identities stand in `_indices`: one that is gone would leave its own to another.
        self._alive: list[object] = []
        self._arrays: dict[str, StateValue] = {}

    def finish(self, root: Node) -> dict[str, StateValue]:
        """All that was written, with the node to begin reading at, under flat names."""
        text = json.dumps([root, self._shared], separators=(",", ":"))
        return {_TEXT: np.frombuffer(text.encode(), np.uint8).copy(), **self._arrays}

    def write(self, value: object, place: str) -> Node:
        """A value's node. place: what messages call it.

        Raises UnsavableValue if it, or something within, cannot be written.
        """
        if value is None:
            return None
        # By type as well: numpy's float64 is a float, and not one that JSON gives back.
        if isinstance(value, bool | int | float | str) and type(value) in (bool, int, float, str):
            return value
        if isinstance(value, _CONSTANTS):
            return ["constant"]
        if isinstance(value, np.generic):
            return ["scalar", self._stored(np.asarray(value), place), value.dtype.str]
        if type(value) is tuple:
            return ["tuple", self._written(value, place)]
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
        if type(value) is np.ndarray:
            return self._array(value, place)
        if type(value) is list:
            return ["list", self._written(value, place)]
        if type(value) is set:
            return ["set", self._written(tuple(value), place)]
        if type(value) is deque:
            return ["deque", self._written(tuple(value), place), value.maxlen]
        if type(value) is dict:
            # Keys are immutable, so nothing within them is at a place.
            return [
                "dict",
                [
                    [self.write(key, place), self.write(item, f"{place}[{key!r}]")]
                    for key, item in value.items()
                ],
            ]
        if isinstance(value, np.random.Generator):
            return ["generator", self.write(value.bit_generator.state, place)]
        if isinstance(value, np.random.RandomState):
            return ["random_state", self.write(value.get_state(legacy=False), place)]
        if type(value) is random.Random:
            return ["random", self.write(value.getstate(), place)]
        attributes = self._attributes(value)
        if attributes is None:
            raise UnsavableValue(f"{place} is of type {type(value).__name__}, which is no plain value")
        return ["object", {name: self.write(item, f"{place}.{name}") for name, item in attributes.items()}]

    def _written(self, values: Sequence[object], place: str) -> list[Node]:
        return [self.write(value, f"{place}[{index}]") for index, value in enumerate(values)]

    def _array(self, array: NDArray[Any], place: str) -> Node:
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        order = "C" if owner.flags.c_contiguous else "F"
        if not (owner.flags.owndata or isinstance(owner.base, bytes)) or not (
            owner.flags.c_contiguous or owner.flags.f_contiguous
        ):
            raise UnsavableValue(f"{place} is an array of memory that is not numpy's own")
        if owner is array:
            name = self._stored(array.ravel("K"), place)
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


class Reader:
    """Reads what a `Writer` wrote, once.

    state: of `Writer.finish`. fill: sets the attributes of an object that is there already, by name.
    Raises ValueError if the state is none of a writer's.
    """

    def __init__(
        self, state: Mapping[str, StateValue], fill: Callable[[object, Mapping[str, object]], None]
    ) -> None:
        text = state.get(_TEXT)
        if not isinstance(text, np.ndarray):
            raise ValueError(f"the state has no {_TEXT!r}")
        # Any, here and below: the text may say anything, and what reads a node raises if it is none.
        root: Any
        shared: Any
        root, shared = json.loads(text.tobytes())
        self._state = state
        self._fill = fill
        self._root = root
        self._nodes = shared
        self._read: dict[int, object] = {}
        # Made so at the end: one that can be written to may be a view of one that cannot.
        self._read_only: list[NDArray[Any]] = []

    def read(self, like: object) -> object:
        """The value that was written; what has no value of its own is taken out of `like`, the value of another.

        Raises ValueError, TypeError, LookupError, AttributeError or RecursionError for nodes that no writer
        wrote, ValueError if there is nothing in `like` at an object's or a constant's place.
        """
        value: object = self._value(self._root, like, "env")
        for array in self._read_only:
            array.flags.writeable = False
        return value

    def _value(self, node: Any, like: object, place: str) -> Any:
        if node is None or isinstance(node, bool | int | float | str):
            return node
        kind = node[0]
        if kind == "constant":
            if not isinstance(like, _CONSTANTS):
                raise ValueError(f"at {place} there is {type(like).__name__}, which is not what was saved")
            return like
        if kind == "scalar":
            return self._stored(node[1], node[2])[0]
        if kind == "tuple":
            return tuple(self._values(node[1], like, place))
        if kind == "frozenset":
            return frozenset(self._values(node[1], None, place))
        index = node[1]
        if kind != "shared" or not isinstance(index, int) or index < 0:
            raise ValueError(f"a saved value is of unknown kind {kind!r}")
        if index not in self._read:
            self._whole(index, self._nodes[index], like, place)
        return self._read[index]

    def _whole(self, index: int, node: Any, like: object, place: str) -> None:
        """Read a value that several places may share; what can lead back to itself is known before its parts."""
        kind = node[0]
        if kind == "list":
            values: list[object] = []
            self._read[index] = values
            values.extend(self._values(node[1], like, place))
        elif kind == "dict":
            items: dict[object, object] = {}
            self._read[index] = items
            for key_node, item in node[1]:
                key = self._value(key_node, None, place)
                items[key] = self._value(item, _item(like, key), f"{place}[{key!r}]")
        elif kind == "deque":
            queue: deque[object] = deque(maxlen=node[2])
            self._read[index] = queue
            queue.extend(self._values(node[1], like, place))
        elif kind == "object":
            self._read[index] = like
            found = getattr(like, "__dict__", {})
            self._fill(
                like,
                {
                    name: self._value(item, found.get(name), f"{place}.{name}")
                    for name, item in node[1].items()
                },
            )
        else:
            self._read[index] = self._leaf(node, place)

    def _leaf(self, node: Any, place: str) -> object:
        kind, *parts = node
        if kind == "array":
            name, dtype, shape, order, writeable = parts
            # A copy, which owns its memory, and keeps its order.
            array = self._stored(name, dtype).reshape(shape, order=order).copy("K")
            return self._protected(array, writeable)
        if kind == "view":
            owner, dtype, shape, offset, strides, writeable = parts
            memory = self._value(owner, None, place)
            # numpy refuses a view that would reach out of the memory.
            view = np.ndarray(shape, _dtype(dtype), _memory(memory), offset, strides)
            return self._protected(view, writeable)
        if kind == "set":
            return set(self._values(parts[0], None, place))
        if kind == "generator":
            state = _checked(self._value(parts[0], None, place))
            bits = _BIT_GENERATORS[state["bit_generator"]]()
            bits.state = state
            return np.random.Generator(bits)
        if kind == "random_state":
            legacy = np.random.RandomState()
            legacy.set_state(_checked(self._value(parts[0], None, place)))
            return legacy
        if kind == "random":
            generator = random.Random()
            generator.setstate(self._value(parts[0], None, place))
            return generator
        raise ValueError(f"a saved value is of unknown kind {kind!r}")

    def _values(self, nodes: Any, like: object, place: str) -> list[object]:
        return [
            self._value(node, _item(like, index), f"{place}[{index}]") for index, node in enumerate(nodes)
        ]

    def _protected(self, array: NDArray[Any], writeable: object) -> NDArray[Any]:
        if not writeable:
            self._read_only.append(array)
        return array

    def _stored(self, name: str, dtype: str) -> NDArray[Any]:
        """A stored array, flat, read-only and of its own dtype."""
        array = self._state[name]
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{name} is no array")
        return np.frombuffer(array.tobytes(), _dtype(dtype))


def _checked(state: Any) -> Any:
    """The state of a bit generator, whose places in its own arrays numpy does not look at."""
    for place, places in ((state["state"].get("pos", 0), 624), (state.get("buffer_pos", 0), 4)):
        if not 0 <= place <= places:
            raise ValueError(f"a random generator stands at {place}, outside of its {places} places")
    return state


def _dtype(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.kind not in "biufcSUmM":
        raise ValueError(f"an array of dtype {dtype} is nothing that was saved")
    return dtype


def _memory(array: object) -> NDArray[Any]:
    if not isinstance(array, np.ndarray):
        raise ValueError("a view is of something that is no array")
    return array


def _item(container: object, key: object) -> object:
    """What a container has under a key, if it is one and has it."""
    try:
        return container[key]  # type: ignore[index]  # whatever has no items says so
    except (TypeError, KeyError, IndexError):
        return None
