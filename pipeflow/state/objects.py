"""The state of any object, such as an actor that a user wrote: what it says itself, or else its attributes.

Apart from the environments, of which much must be left alone that an object of a user's would have to save.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from pipeflow.state.added import added_attributes
from pipeflow.state.classes import attributes_of, is_ordinary, set_attributes
from pipeflow.state.reading import UNREADABLE, Reader
from pipeflow.state.values import StateValue, prefixed, under
from pipeflow.state.writing import UnsavableValue, Writer

OWN = "own/"
"""Where the state stands that an object's own ``state()`` gave."""

_ATTRIBUTES = "attributes/"

# What a class adds to one that has a state() of its own.
_ADDED = "added/"


def object_state(value: object) -> dict[str, StateValue]:
    """All that an object's next calls depend on, under flat names.

    What its class's ``state()`` gives, where it has that and ``load_state``, and the attributes that a class adds
    which inherits them. Else its attributes. Of attributes those are saved that are plain values, containers and
    objects of such, numpy's arrays and random generators, tensors, and what has ``state_dict()`` and
    ``load_state_dict``, as torch's modules and optimisers. Functions, classes and the like say how an object was
    made, and are left alone.

    Raises UnsavableValue if an attribute, or what ``state()`` gave, is anything else.
    """
    name = type(value).__name__
    if not _saves_itself(value):
        writer = Writer(attributes)
        return prefixed(_ATTRIBUTES, writer.finish(writer.write(value, name)))
    own: Any = value
    said, added = prefixed(OWN, _checked(own.state(), name)), added_attributes(value)
    if not added:
        return said
    writer = Writer(lambda item: added if item is value else attributes(item))
    return said | prefixed(_ADDED, writer.finish(writer.write(value, name)))


def load_object_state(value: object, state: Mapping[str, StateValue]) -> None:
    """Go on where the object that gave this state stood.

    value: made as that one was, and not used yet.
    Raises ValueError if the state is of another object, or damaged; `value` is then of no use.
    """
    name, saved = type(value).__name__, under(_ATTRIBUTES, state)
    fills: Callable[[object, Mapping[str, object]], None] = fill
    if _saves_itself(value):
        own: Any = value
        own.load_state(under(OWN, state))
        saved = under(_ADDED, state)
        if not saved:
            return
        fills = _filling_added(value)
    try:
        Reader(saved, fills).read(value, name)
    except UNREADABLE as error:
        raise ValueError(
            f"the saved state does not fit {name}: {error}; or give {name} state() and load_state()"
        ) from error


def attributes(value: object) -> Mapping[str, object] | None:
    """What is saved of an object that is there when it is loaded, by name; None for plain data."""
    if _saves_itself(value):
        own: Any = value
        said, added = _checked(own.state(), type(value).__name__), added_attributes(value)
        return {**prefixed(OWN, said), **added} if added else said
    if _has(value, "state_dict", "load_state_dict"):
        torch_like: Any = value
        return {"state_dict": dict(torch_like.state_dict())}
    if is_dataclass(value) or isinstance(value, tuple):
        return None
    return attributes_of(value) if is_ordinary(type(value)) else None


def fill(value: object, saved: Mapping[str, object]) -> None:
    """Load what `attributes` gave."""
    if _saves_itself(value):
        own: Any = value
        added = {name: item for name, item in saved.items() if not name.startswith(OWN)}
        if len(added) < len(saved):  # some have the prefix, which no attribute has
            own.load_state(
                {name.removeprefix(OWN): item for name, item in saved.items() if name not in added}
            )
            set_attributes(value, added)
        else:
            own.load_state(saved)
    elif _has(value, "state_dict", "load_state_dict"):
        torch_like: Any = value
        torch_like.load_state_dict(saved["state_dict"])
    else:
        set_attributes(value, saved)


def _filling_added(value: object) -> Callable[[object, Mapping[str, object]], None]:
    """As `fill`, but for the object itself, which was given back what it says of itself."""

    def fills(item: object, saved: Mapping[str, object]) -> None:
        (set_attributes if item is value else fill)(item, saved)

    return fills


def _checked(state: object, name: str) -> dict[str, StateValue]:
    if not isinstance(state, Mapping):
        raise UnsavableValue(
            f"{name}.state() gave a {type(state).__name__}; give a mapping of names to values"
        )
    for key, value in state.items():
        if (
            not isinstance(key, str)
            or isinstance(value, bool)
            or not isinstance(value, int | float | np.ndarray)
        ):
            raise UnsavableValue(
                f"{name}.state() gave a {type(value).__name__} as {key!r}; give arrays, int or float"
            )
    return dict(state)


def _saves_itself(value: object) -> bool:
    return _has(value, "state", "load_state")


def _has(value: object, *methods: str) -> bool:
    # Of the class: an object may have data of that name.
    return all(callable(getattr(type(value), name, None)) for name in methods)
