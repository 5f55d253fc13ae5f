"""An algorithm's configuration as JSON, and back.

Apart from the configurations, which are plain dataclasses that need no such code, and from the flags, which
tyro makes of the same fields. Reading checks every value against its field's type, because the file may be
another version's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import types
from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pipeflow.algorithms.catalogue import Configuration
from pipeflow.state.values import Json

C = TypeVar("C")


def to_json(config: Configuration) -> dict[str, Json]:
    """Every field of a configuration by name.

    Raises ValueError if a value is nothing that JSON can say, such as an environment's class.
    """
    return {name: _plain(value, name) for name, value in _fields(config).items()}


def from_json(kind: type[C], values: Mapping[str, Json]) -> C:
    """The configuration, or other dataclass, of class `kind` that `to_json` gave `values` for; fields not in it
    have their defaults.

    Raises ValueError if a field is unknown or a value does not fit its field.
    """
    config: C = _build(kind, values, "")
    return config


def _fields(instance: Any) -> dict[str, object]:
    return {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance)}


def _plain(value: object, where: str) -> Json:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item, where) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(item, f"{where}.{name}") for name, item in _fields(value).items()}
    raise ValueError(f"{where} is {value!r}, which JSON cannot say; use names and numbers")


# `Any`: types as values, of which the checker knows no more than that.
def _build(kind: Any, values: Mapping[str, Json], where: str) -> Any:
    hints = get_type_hints(kind)
    known = {field.name for field in dataclasses.fields(kind)}
    unknown = sorted(values.keys() - known)
    if unknown:
        raise ValueError(f"{kind.__name__} has no field {where}{unknown[0]}; use the pipeflow that wrote it")
    needed = {
        name for name, parameter in signature(kind).parameters.items() if parameter.default is Parameter.empty
    }
    if missing := sorted(needed - values.keys()):
        raise ValueError(f"{kind.__name__} needs a field {where}{missing[0]}; use the pipeflow that wrote it")
    return kind(**{name: _fitted(hints[name], value, where + name) for name, value in values.items()})


def _fitted(hint: Any, value: Json, where: str) -> Any:
    """The value as the field's type has it: JSON has neither tuples nor dataclasses."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        for option in arguments:
            try:
                return _fitted(option, value, where)
            except ValueError:
                continue
    elif dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return _build(hint, value, f"{where}.")
    elif origin is tuple and isinstance(value, list):
        kinds = arguments if arguments[-1] is not Ellipsis else arguments[:1] * len(value)
        if len(kinds) == len(value):
            return tuple(_fitted(kind, item, where) for kind, item in zip(kinds, value, strict=True))
    elif origin is Mapping and isinstance(value, Mapping):
        kind = arguments[1]
        return {key: item if kind is object else _fitted(kind, item, where) for key, item in value.items()}
    elif origin is Literal and value in arguments:
        return value
    elif hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        # No setting is nan, and a whole number may be too large.
        with contextlib.suppress(OverflowError):
            if not math.isnan(number := float(value)):
                return number
    elif hint in (bool, int, str, type(None)) and type(value) is hint:
        return value
    raise ValueError(f"{where} is {value!r}, which is no {getattr(hint, '__name__', hint)}")
