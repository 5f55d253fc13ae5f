"""`Sourced`: an item together with the one actor that it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, final

from typing_extensions import TypeVar as DefaultTypeVar
from typing_extensions import override

T_co = TypeVar("T_co", covariant=True)
W_co = DefaultTypeVar("W_co", covariant=True, default=object)


@final
@dataclass(frozen=True)
class Source(Generic[W_co]):
    """One actor of a running plan, by its group's name and its index in the group."""

    group: str
    index: int

    @override
    def __str__(self) -> str:
        return f"{self.group}[{self.index}]"


@final
@dataclass(frozen=True)
class Sourced(Generic[T_co, W_co]):
    """An item and its source, so that a reply can go to just that actor (law 9).

    A stage that is placed on an actor takes the item itself and the source is carried past it.
    """

    item: T_co
    source: Source[W_co]
