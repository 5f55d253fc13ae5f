"""What moves between the nodes of a running plan: an item, which may still lie in the actor that made it."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from pipeflow.dsl.nodes import Group
from pipeflow.lowering.engine import Call, Handle


class Signal(enum.Enum):
    """What a cursor answers when it has no item."""

    PENDING = enum.auto()
    """A call is outstanding, or another consumer has to move first."""
    NOT_READY = enum.auto()
    """The source has nothing until something else moves; a union passes the turn."""
    PASS = enum.auto()
    """Something moved and no item came of it, such as a list that is not full yet: ask again."""
    REJECTED = enum.auto()
    """A filter rejected an item, maybe until something else moves: ask again, but a union passes the turn."""
    DRAINED = enum.auto()
    """An item was consumed by a drain: it counts as a turn, and nothing is delivered."""
    DONE = enum.auto()
    """There will be no further item."""


@dataclass(frozen=True, slots=True)
class Origin:
    """An actor that an item came from."""

    group: Group
    index: int


def merged_origins(items: Iterable[Item]) -> tuple[Origin, ...]:
    """The actors that the items came from, each once, in the order of their first item (law 9)."""
    return tuple(dict.fromkeys(origin for item in items for origin in item.origins))


@dataclass(slots=True)
class Item:
    """One item: a `value` that the driver holds, a `handle` on one that it does not, or a list of several `parts`.

    `origins` are the actors that an item of a `Sourced` stream came from. `call` made the item, where a call did;
    `lag` says how many weights its actor was sent since it was asked. `uid` is the item's number in a trace, 0
    before it has one.
    """

    value: object = None
    handle: Handle | None = None
    parts: tuple[Item, ...] | None = None
    origins: tuple[Origin, ...] = ()
    call: Call | None = None
    lag: int | None = None
    uid: int = 0

    @property
    def argument(self) -> object:
        """The item as an argument of `Engine.submit`: by reference where it is remote."""
        return self.value if self.handle is None else self.handle
