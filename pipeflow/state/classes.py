"""Which classes a saved state may name, and how their objects are made again without running any code of theirs.

Apart from the reading and writing because this is what a state from a stranger is trusted with: nothing is
imported for it, and no constructor is called. A class is found where the program has put it already.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def class_name(kind: type) -> str | None:
    """What a state calls a class whose objects it may hold; None for one whose objects it may not.

    It may hold those of dataclasses, named tuples, enumerations, and of pipeflow's own classes, unless they do
    something when they go.
    """
    name = f"{kind.__module__}:{kind.__qualname__}"
    return name if _is_data(kind) and _found(name) is kind else None


def class_of(name: str) -> Any:  # `Any`: the class, of which the checker knows no more than that
    """The class of a name that `class_name` gave.

    Raises ValueError if there is none, or it is nothing that a state may hold an object of.
    """
    found = _found(name)
    if not isinstance(found, type) or not _is_data(found):
        raise ValueError(f"there is no class {name} here, or its objects are no plain data")
    return found


def made(kind: type) -> object:
    """An object of a class without any attribute.

    Raises ValueError if attributes are not all there is to its objects.
    """
    if not is_ordinary(kind):
        raise ValueError(f"an object of {kind.__name__} cannot be made of attributes alone")
    return object.__new__(kind)


# `Any`: the number or text, of the class given.
def derived(kind: type, value: object) -> Any:
    """The number or text of a class that is derived from int, float or str.

    Raises ValueError if it is not.
    """
    base = next(
        (base for base in (int, float, str) if issubclass(kind, base) and isinstance(value, base)), None
    )
    if base is None or issubclass(kind, Enum):
        raise ValueError(f"{kind.__name__} is no class of such numbers or texts as {value!r}")
    made_by: Any = base.__new__
    return made_by(kind, value)


def is_ordinary(kind: type) -> bool:
    """Whether attributes are all there is to its objects: none of its classes is made in C."""
    return all(base is object or base.__flags__ & _HEAP_TYPE for base in kind.__mro__)


def is_named_tuple(kind: type) -> bool:
    """Whether it is a named tuple's class."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def attributes_of(value: object) -> dict[str, object]:
    """What an object's attributes are, those in slots included, in the order of their classes' definitions."""
    found = {
        name: getattr(value, name)
        for name in _slots(type(value))
        if hasattr(value, name)  # one that was never set has none
    }
    named: Mapping[str, object] = getattr(value, "__dict__", {})
    # Python's own, such as the class that a generic one was called by, are no state.
    return {**found, **{name: item for name, item in named.items() if not name.startswith("__")}}


def set_attributes(value: object, attributes: Mapping[str, object]) -> None:
    """Set attributes of an object, also of one that is frozen.

    Raises AttributeError if it has no place for one of them.
    """
    for name, item in attributes.items():
        object.__setattr__(value, name, item)


def needed_by(kind: type) -> set[str]:
    """The attributes that every object of a class has which says so: the fields that a dataclass is made of."""
    return {field.name for field in fields(kind) if field.init} if is_dataclass(kind) else set()


def _slots(kind: type) -> list[str]:
    slots: list[str] = []
    for base in reversed(kind.__mro__):
        own = base.__dict__.get("__slots__", ())
        slots += [own] if isinstance(own, str) else own
    return [name for name in slots if name not in ("__dict__", "__weakref__")]


def _is_data(kind: type) -> bool:
    own = kind.__module__.partition(".")[0] == "pipeflow"
    data = own or is_dataclass(kind) or is_named_tuple(kind) or issubclass(kind, Enum)
    return data and not hasattr(kind, "__del__")


# Py_TPFLAGS_HEAPTYPE: of a class that a ``class`` statement made.
_HEAP_TYPE = 1 << 9


def _found(name: str) -> object:
    module, _, qualified = name.partition(":")
    found: object = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found
