"""`Sourced`: an item together with the actors that it came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from typing_extensions import TypeVar as DefaultTypeVar
from typing_extensions import override

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
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
    """An item and its sources, so that a reply can go to just those actors (law 9).

    There is one source, or several where `batch` or `concat` made the item of several. A stage that is placed on
    an actor takes the item itself and the sources are carried past it.
    """

    item: T_co
    sources: tuple[Source[W_co], ...]

    def map(self, function: Callable[[T_co], U], /) -> Sourced[U, W_co]:
        """What the function makes of the item, with the same sources."""
        return Sourced(function(self.item), self.sources)

    @property
    def source(self) -> Source[W_co]:
        """The one source.

        Raises:
            ValueError: there are several.
        """
        if len(self.sources) != 1:
            message = f"the item has {len(self.sources)} sources, {self.sources}; read .sources"
            raise ValueError(message)
        return self.sources[0]
