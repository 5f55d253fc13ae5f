"""The state of any object, such as an actor that a user wrote: what it says itself, or else its attributes.

Apart from the environments, of which much must be left alone that an object of a user's would have to save.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from pipeflow.state.classes import attributes_of, is_ordinary, set_attributes
from pipeflow.state.reading import UNREADABLE, Reader
from pipeflow.state.values import StateValue, prefixed, under
from pipeflow.state.writing import UnsavableValue, Writer

OWN = "own/"
"""Where the state stands that an object's own ``state()`` gave."""

_ATTRIBUTES = "attributes/"


def object_state(value: object) -> dict[str, StateValue]:
    """All that an object's next calls depend on, under flat names.

    What its class's ``state()`` gives, where it has that and ``load_state``. Else its attributes that are plain
    values, containers and objects of such, numpy's arrays and random generators, tensors, and what has
    ``state_dict()`` and ``load_state_dict``, as torch's modules and optimisers. Functions, classes and the like
    say how an object was made, and are left alone.

    Raises UnsavableValue if an attribute, or what ``state()`` gave, is anything else.
    """
    if _saves_itself(value):
        own: Any = value
        return prefixed(OWN, _checked(own.state(), type(value).__name__))
    writer = Writer(attributes)
    return prefixed(_ATTRIBUTES, writer.finish(writer.write(value, type(value).__name__)))


def load_object_state(value: object, state: Mapping[str, StateValue]) -> None:
    """Go on where the object that gave this state stood.

    value: made as that one was, and not used yet.
    Raises ValueError if the state is of another object, or damaged; `value` is then of no use.
    """
    name = type(value).__name__
    if _saves_itself(value):
        own: Any = value
        own.load_state(under(OWN, state))
        return
    try:
        Reader(under(_ATTRIBUTES, state), fill).read(value, name)
    except UNREADABLE as error:
        raise ValueError(
            f"the saved state does not fit {name}: {error}; or give {name} state() and load_state()"
        ) from error


def attributes(value: object) -> Mapping[str, object] | None:
    """What is saved of an object that is there when it is loaded, by name; None for plain data."""
    if _saves_itself(value):
        own: Any = value
        return _checked(own.state(), type(value).__name__)
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
        own.load_state(saved)
    elif _has(value, "state_dict", "load_state_dict"):
        torch_like: Any = value
        torch_like.load_state_dict(saved["state_dict"])
    else:
        set_attributes(value, saved)


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
