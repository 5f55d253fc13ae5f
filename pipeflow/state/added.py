"""What a class adds to one that saves itself: the attributes of which the inherited ``state()`` cannot know.

Apart from the objects because it looks into the code of their classes: nothing else says who sets an attribute.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from types import CodeType

from pipeflow.state.classes import attributes_of
from pipeflow.state.writing import CONSTANTS

_CONSTRUCTORS = ("__init__", "__post_init__")


def added_attributes(value: object) -> dict[str, object]:
    """The attributes of an object that classes set which are derived from the one whose ``state()`` it has.

    Without those that are as the constructor made them, whatever happens: numbers, texts and the like that nothing
    but the constructor sets. pipeflow's own classes are not looked at; their states are complete.
    """
    made, changed = _set_below(type(value))
    if not made and not changed:
        return {}
    return {
        name: item
        for name, item in attributes_of(value).items()
        if name in changed or (name in made and not _is_constant(item))
    }


def _set_below(kind: type) -> tuple[frozenset[str], frozenset[str]]:
    """What the constructors and what the other methods set, of the classes below the one that has `state`."""
    says = next((base for base in kind.__mro__ if "state" in vars(base)), object)
    made, changed = set[str](), set[str]()
    for base in kind.__mro__:
        if base in says.__mro__ or base.__module__.partition(".")[0] == "pipeflow":
            continue
        for name, member in vars(base).items():
            for code in _code_of(member):
                (made if name in _CONSTRUCTORS else changed).update(_attributes_set(code))
    return frozenset(made), frozenset(changed)


def _code_of(member: object) -> Iterator[CodeType]:
    """Of a function, of what is wrapped in a class or static method, or of a property's functions."""
    if isinstance(member, property):
        for accessor in (member.fget, member.fset, member.fdel):
            yield from _code_of(accessor)
        return
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    if callable(function):
        function = inspect.unwrap(function)
    if inspect.isfunction(function):
        yield function.__code__


def _attributes_set(code: CodeType) -> Iterator[str]:
    """The names that are set on any object, also in the functions within."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_ATTR":
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _attributes_set(constant)


def _is_constant(item: object) -> bool:
    if isinstance(item, tuple | frozenset):
        return all(_is_constant(part) for part in item)
    frozen = is_dataclass(item) and getattr(type(item), "__dataclass_params__").frozen  # noqa: B009  # not typed
    return frozen or item is None or isinstance(item, (int, float, complex, str, bytes, Enum, *CONSTANTS))
