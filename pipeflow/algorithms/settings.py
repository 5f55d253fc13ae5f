"""What numbers a configuration may have: types that say the range, and the check that every configuration makes.

Apart from the configurations, so that a discount is the same thing in each of them. To a type checker `Count` is
an `int` and `Fraction` a `float`; the ranges are those of the package annotated-types, which others read too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, TypeAlias, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval

Count: TypeAlias = Annotated[int, Ge(1)]
"""A number of things of which there is at least one."""

WholeNumber: TypeAlias = Annotated[int, Ge(0)]
"""A number of things, or none; a seed."""

Positive: TypeAlias = Annotated[float, Gt(0)]
"""More than 0, such as a learning rate."""

NotNegative: TypeAlias = Annotated[float, Ge(0)]
"""At least 0, such as the weight of a part of a loss."""

Fraction: TypeAlias = Annotated[float, Interval(ge=0, le=1)]
"""From 0 to 1, such as a discount or a probability."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What all configurations are: settings that are refused where they are given if they are out of range.

    Raises:
        ValueError: names the setting, what it must be, and what it is.
    """

    def __post_init__(self) -> None:
        for name, range_of in _ranges(type(self)).items():
            for value in _numbers(getattr(self, name)):
                if not math.isfinite(value):
                    message = f"{name} must be finite, got {value}"
                    raise ValueError(message)
                if not range_of.contains(value):
                    message = f"{name} must {range_of.text}, got {value}"
                    raise ValueError(message)


@dataclasses.dataclass(frozen=True)
class _Range:
    low: float
    open_low: bool
    high: float | None

    def contains(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        return above and (self.high is None or value <= self.high)

    @property
    def text(self) -> str:
        if self.high is not None:
            return f"lie in [{self.low}, {self.high}]"
        return f"be more than {self.low}" if self.open_low else f"be at least {self.low}"


def _ranges(kind: type[Settings]) -> dict[str, _Range]:
    hints = get_type_hints(kind, include_extras=True)
    found = {field.name: _range_of(hints[field.name]) for field in dataclasses.fields(kind)}
    return {name: range_of for name, range_of in found.items() if range_of is not None}


def _range_of(hint: object) -> _Range | None:
    """The range that a field's type states of itself, of what it may be beside None, or of its members."""
    if get_origin(hint) is Annotated:
        for bound in get_args(hint)[1:]:
            match bound:
                case Ge(ge=float() | int() as low):
                    return _Range(low, False, None)
                case Gt(gt=float() | int() as low):
                    return _Range(low, True, None)
                case Interval(ge=float() | int() as low, le=float() | int() as high):
                    return _Range(low, False, high)
                case _:
                    pass
    if get_origin(hint) in (Union, UnionType, tuple):
        return next((found for part in get_args(hint) if (found := _range_of(part)) is not None), None)
    return None


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, tuple):
        for member in value:
            yield from _numbers(member)
