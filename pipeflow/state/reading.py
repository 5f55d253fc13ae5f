"""Values out of the text and arrays that a `Writer` made of them. No code runs that the text names.

Apart from the writing: this side is given what anybody may have made.
"""

from __future__ import annotations

import json
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeflow.state.classes import (
    attributes_of,
    class_of,
    derived,
    is_named_tuple,
    made,
    needed_by,
    set_attributes,
)
from pipeflow.state.tensors import is_trained, tensor_of
from pipeflow.state.values import StateValue
from pipeflow.state.writing import CONSTANTS, TEXT

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

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What `Reader` raises for nodes that no writer wrote, or that were written of something else."""


class Reader:
    """Reads what a `Writer` wrote, once.

    state: of `Writer.finish`. fill: sets the attributes of an object that is there already, by name.
    constants: as the writer had. named: objects by the names that the writer knew them by. make: makes what the
    writer called special, of what that way is called, and what it takes.
    Raises ValueError if the state is none of a writer's.
    """

    def __init__(
        self,
        state: Mapping[str, StateValue],
        fill: Callable[[object, Mapping[str, object]], None],
        *,
        constants: tuple[type, ...] = (),
        named: Mapping[str, object] | None = None,
        make: Callable[[str, Any], object] | None = None,
    ) -> None:
        text = state.get(TEXT)
        if not isinstance(text, np.ndarray):
            raise ValueError(f"the state has no {TEXT!r}")
        # Any, here and below: the text may say anything, and what reads a node raises if it is none.
        root: Any
        shared: Any
        root, shared = json.loads(text.tobytes())
        self._state = state
        self._fill = fill
        self._constants = CONSTANTS + constants
        self._named = {} if named is None else named
        self._make = make
        self._root = root
        self._nodes = shared
        self._read: dict[int, object] = {}
        self._filled: list[object] = []
        # Made so at the end: one that can be written to may be a view of one that cannot.
        self._read_only: list[NDArray[Any]] = []

    # `Any`: what was written, which the caller knows.
    def read(self, like: object, place: str = "it") -> Any:
        """The value that was written; what has no value of its own is taken out of `like`, the value of another.

        place: what messages call it.
        Raises one of `UNREADABLE` for nodes that no writer wrote, ValueError if there is nothing in `like` at an
        object's or a constant's place.
        """
        value: object = self._value(self._root, like, place)
        for array in self._read_only:
            array.flags.writeable = False
        return value

    def _value(self, node: Any, like: object, place: str) -> Any:
        if node is None or isinstance(node, bool | int | float | str):
            return node
        kind = node[0]
        if kind == "constant":
            if not isinstance(like, self._constants):
                raise ValueError(f"at {place} there is {type(like).__name__}, which is not what was saved")
            return like
        if kind == "scalar":
            return self._stored(node[1], node[2])[0]
        if kind == "named":
            return self._named[node[1]]
        if kind == "enum":
            return class_of(node[1])[node[2]]
        if kind == "derived":
            return derived(class_of(node[1]), node[2])
        if kind == "bytes":
            return self._stored(node[1], "|u1").tobytes()
        if kind == "named_tuple":
            named = class_of(node[1])
            if not is_named_tuple(named):
                raise ValueError(f"{node[1]} is no named tuple")
            return tuple.__new__(named, self._values(node[2], like, place))
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
            self._fill_mapping(items, node[1], like, place)
        elif kind == "mapping":
            mapping = _mapping(node[1], like)
            self._read[index] = mapping
            self._fill_mapping(mapping, node[2], like, place)
        elif kind == "deque":
            queue: deque[object] = deque(maxlen=node[2])
            self._read[index] = queue
            queue.extend(self._values(node[1], like, place))
        elif kind == "object":
            if like is None:
                raise ValueError(f"at {place} there is nothing, where an object was saved")
            self._read[index] = like
            self._fill(like, self._attributes(node[1], like, place))
        elif kind == "instance":
            kind_of = class_of(node[1])
            if missing := needed_by(kind_of) - node[2].keys():
                raise ValueError(f"at {place} a {node[1]} was saved without {', '.join(sorted(missing))}")
            instance = made(kind_of)
            self._read[index] = instance
            set_attributes(
                instance, self._attributes(node[2], like if type(like) is kind_of else None, place)
            )
        else:
            self._read[index] = self._leaf(node, like, place)

    def _attributes(self, nodes: Any, like: object, place: str) -> dict[str, object]:
        found = {} if like is None else attributes_of(like)
        return {name: self._value(node, found.get(name), f"{place}.{name}") for name, node in nodes.items()}

    def _fill_mapping(self, mapping: dict[Any, Any], nodes: Any, like: object, place: str) -> None:
        for key_node, item in nodes:
            key = self._value(key_node, None, place)
            mapping[key] = self._value(item, _item(like, key), f"{place}[{key!r}]")

    def _leaf(self, node: Any, like: object, place: str) -> object:
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
        if kind == "special" and self._make is not None:
            return self._make(parts[0], self._value(parts[1], None, place))
        if kind == "tensor":
            tensor = tensor_of(_memory(self._value(parts[0], None, place)), parts[1], bool(parts[2]), like)
            return self._trained_in_place(tensor, like)
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

    # `Any`: tensors, for this module imports no torch.
    def _trained_in_place(self, tensor: Any, like: Any) -> object:
        """The tensor, or, where an optimiser may hold the one whose place it takes, that one with its values."""
        if not is_trained(like) or (like.shape, like.dtype) != (tensor.shape, tensor.dtype):
            return tensor
        if not tensor.requires_grad or any(like is filled for filled in self._filled):
            return tensor
        self._filled.append(like)
        like.detach().copy_(tensor.detach())
        return like

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


def _mapping(kind: str, like: object) -> dict[Any, Any]:
    """An empty mapping of a class of the standard library."""
    if kind == "Counter":
        return Counter()
    if kind == "OrderedDict":
        return OrderedDict()
    if kind == "defaultdict" and isinstance(like, defaultdict):
        return defaultdict(like.default_factory)
    raise ValueError(f"a saved mapping is a {kind}, where there is {type(like).__name__}")


def _item(container: object, key: object) -> object:
    """What a container has under a key, if it is one and has it."""
    try:
        return container[key]  # type: ignore[index]  # whatever has no items says so
    except (TypeError, KeyError, IndexError):
        return None
