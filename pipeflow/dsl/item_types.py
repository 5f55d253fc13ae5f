"""What is known at run time about the types of items, read from annotations.

mypy is what checks a plan. This module repeats the plain part of that check when a plan is built, for users
who do not run mypy, and gives ``repr`` and ``explain`` the types to show. It never guesses: what an annotation
does not say plainly is `UNKNOWN`, and `UNKNOWN` fits everything.
"""

from __future__ import annotations

import collections
import collections.abc as abc
import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Never, Self, get_args, get_origin

from typing_extensions import override

from pipeflow.dsl.signals import Ended, NotReady


class _Unknown:
    @override
    def __repr__(self) -> str:
        return "?"


UNKNOWN = _Unknown()

# An annotation as `typing.get_type_hints` gives it: a class, an alias such as ``list[int]``, or `UNKNOWN`.
ItemType = object

# The origins of ``X | Y`` and of what annotations written with the older form, or with a type variable, give.
_UNIONS = (types.UnionType, typing.Union)  # pyright: ignore[reportDeprecated]  # to recognise it, not to use it

_OF_MEMBERS = (list, abc.MutableSequence, abc.Sequence, abc.Reversible, abc.Collection, abc.Iterable)
# Classes of which the first argument is what iterating over them gives.
_ITERATED = (
    *_OF_MEMBERS,
    abc.Iterator,
    abc.Generator,
    abc.Set,
    abc.MutableSet,
    set,
    frozenset,
    collections.deque,
)


def show(item_type: ItemType) -> str:
    """The type as a user would write it: ``Advantages``, ``list[int]``, ``A | B``, or ``?``."""
    if isinstance(item_type, type) and not get_args(item_type):
        return item_type.__name__
    origin, arguments = get_origin(item_type), get_args(item_type)
    if origin in _UNIONS:
        return " | ".join(show(argument) for argument in arguments)
    if isinstance(origin, type) and arguments:
        return f"{origin.__name__}[{', '.join(show(argument) for argument in arguments)}]"
    return str(item_type).replace("typing.", "")


def fits(given: ItemType, wanted: ItemType) -> bool:
    """Whether an item of type `given` may go where `wanted` is taken; true when that cannot be told."""
    unsettled = (UNKNOWN, Any, object)
    if given in unsettled or wanted in unsettled or given is Never:
        return True
    if get_origin(given) in _UNIONS:
        return all(fits(member, wanted) for member in get_args(given))
    if get_origin(wanted) in _UNIONS:
        return any(fits(given, member) for member in get_args(wanted))
    given_class, wanted_class = get_origin(given) or given, get_origin(wanted) or wanted
    if not isinstance(given_class, type) or not isinstance(wanted_class, type):
        return True
    if getattr(wanted_class, "_is_protocol", False):
        return True
    if (given_class, wanted_class) in ((int, float), (bool, float), (int, complex), (float, complex)):
        return True  # the numeric tower of PEP 484
    try:
        return issubclass(given_class, wanted_class) and _members_fit(given, wanted)
    except TypeError:
        return True


def _members_fit(given: ItemType, wanted: ItemType) -> bool:
    """Whether the members of a list fit, where something is wanted whose one argument is its members' type."""
    members, taken = get_args(given), get_args(wanted)
    if get_origin(given) is not list or get_origin(wanted) not in _OF_MEMBERS or not members or not taken:
        return True
    return fits(members[0], taken[0])


def _plain(annotation: object) -> ItemType:
    if isinstance(annotation, typing.TypeVar) or annotation is inspect.Parameter.empty:
        return UNKNOWN
    if any(isinstance(argument, typing.TypeVar) for argument in get_args(annotation)):
        return UNKNOWN
    return type(None) if annotation is None else annotation


def _unwrapped(function: Callable[..., object]) -> Callable[..., object]:
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif callable(wrapped := getattr(function, "__wrapped__", None)):
            function = wrapped
        else:
            return function


def _hints(function: Callable[..., object]) -> dict[str, object]:
    target = _unwrapped(function)
    if not (inspect.isroutine(target) or inspect.isclass(target) or "__annotations__" in vars(target)):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target)
    except Exception:  # annotations are arbitrary expressions: whatever they raise, nothing is known
        return {}


def taken_type(function: Callable[..., object], position: int) -> ItemType:
    """The annotation of the function's positional parameter at `position`, or `UNKNOWN`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return UNKNOWN
    if position >= len(parameters) or parameters[position].kind is inspect.Parameter.VAR_KEYWORD:
        return UNKNOWN
    return _with_owner(_plain(_hints(function).get(parameters[position].name, UNKNOWN)), function)


def returned_type(function: Callable[..., object]) -> ItemType:
    """The annotation of what the function returns without `NotReady` and `Ended`, or `UNKNOWN`."""
    if inspect.isclass(function):
        return function
    annotation = _with_owner(_plain(_hints(function).get("return", UNKNOWN)), function)
    if get_origin(annotation) in _UNIONS:
        members = [member for member in get_args(annotation) if member not in (NotReady, Ended)]
        return UNKNOWN if not members else _joined(members)
    return annotation


def _with_owner(annotation: ItemType, function: Callable[..., object]) -> ItemType:
    """The annotation with the class of a class method in the place of `Self`; `UNKNOWN` where there is none."""
    owner: object = getattr(function, "__self__", UNKNOWN)
    return _settled(annotation, owner if inspect.isclass(owner) else UNKNOWN)


def _settled(annotation: ItemType, owner: ItemType) -> ItemType:
    if annotation is Self:
        return owner
    arguments = get_args(annotation)
    members = [_settled(argument, owner) for argument in arguments]
    if members == list(arguments):
        return annotation
    if UNKNOWN in members:
        return UNKNOWN
    origin: Any = get_origin(annotation)  # `Any`: a class that takes arguments
    return _joined(members) if origin in _UNIONS else origin[tuple(members)]


def returned_class(function: Callable[..., object]) -> type | None:
    """The class that the function is annotated to return, whatever its parameters; None where that is unknown."""
    annotation = _hints(function).get("return")
    found = get_origin(annotation) or annotation
    return found if isinstance(found, type) and not inspect.isclass(function) else None


def may_have(item_type: ItemType, attribute: str) -> bool:
    """Whether items may have an attribute; a class with an ``__init__`` of its own may make it there, unstated."""
    if not isinstance(item_type, type):
        return True
    # A dataclass's field without a default is no attribute of the class.
    stated = any(attribute in vars(base).get("__annotations__", ()) for base in item_type.__mro__)
    written = inspect.isfunction(getattr(item_type, "__init__", None)) and not dataclasses.is_dataclass(
        item_type
    )
    return stated or written or hasattr(item_type, attribute)


def member_of(item_type: ItemType) -> ItemType:
    """What iterating over a value of the type gives: ``int`` for ``list[int]`` and ``tuple[int, ...]``."""
    origin, arguments = get_origin(item_type), get_args(item_type)
    if origin in _ITERATED:
        return _plain(arguments[0])
    if origin is tuple and arguments:
        return union_of([_plain(argument) for argument in arguments if argument is not Ellipsis])
    return UNKNOWN


def list_of(item_type: ItemType) -> ItemType:
    """``list[item_type]``, or plain ``list`` where the item's type is unknown."""
    return list if item_type is UNKNOWN else list[item_type]  # type: ignore[valid-type]  # built at run time


def pair_of(left: ItemType, right: ItemType) -> ItemType:
    """``tuple[left, right]``, or plain ``tuple`` where one of them is unknown."""
    return tuple if UNKNOWN in (left, right) else tuple[left, right]  # type: ignore[valid-type]  # as above


def union_of(item_types: list[ItemType]) -> ItemType:
    """The union of the types; drained branches, whose type is ``Never``, do not count."""
    kept = [item_type for item_type in item_types if item_type is not Never]
    if not kept:
        return Never
    if UNKNOWN in kept:
        return UNKNOWN
    return _joined(kept)


def _joined(members: list[ItemType]) -> ItemType:
    # `Any`: what `|` of two annotations is depends on both, and the checker knows neither.
    joined: Any = members[0]
    for member in members[1:]:
        joined = joined | member
    return joined


def name_of(function: Callable[..., object]) -> str:
    """A readable name: ``PPOLearner.update``, ``normalise``, ``lambda``, or the name that a stage was given."""
    given = getattr(function, "name", None)
    if isinstance(given, str) and not inspect.isclass(function):
        return given
    qualified: str = getattr(_unwrapped(function), "__qualname__", "") or type(function).__name__
    return qualified.rpartition("<locals>.")[2].replace("<lambda>", "lambda")
