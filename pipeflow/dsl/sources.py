"""Streams of data that is there already: `from_items` for the driver, `from_shards` for actors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_positive
from pipeflow.dsl.errors import CheckpointError
from pipeflow.dsl.item_types import UNKNOWN, ItemType
from pipeflow.dsl.nodes import Group
from pipeflow.dsl.signals import Ended
from pipeflow.dsl.sites import call_site
from pipeflow.dsl.streams import ParallelStream, Stream

T = TypeVar("T")


def from_items(items: Iterable[T]) -> Stream[T]:
    """The items of an iterable, in order, read by the driver as they are asked for (law 17)."""
    return Stream(
        nodes.FromItems(name="from_items", site=call_site(), item_type=_common_type([items]), items=items)
    )


class Shard(Generic[T]):
    """The actor behind one shard of `from_shards`."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items: Iterator[T] = iter(items)
        self._read_once = self._items is items
        self._made = 0

    def next_item(self) -> T | Ended:
        for item in self._items:
            self._made += 1
            return item
        return Ended()

    def state(self) -> dict[str, int]:
        """Where it stands, for a checkpoint.

        Raises:
            CheckpointError: its iterable can be read only once, so nobody could go on with it.
        """
        if self._read_once:
            message = "its shard can be read only once, as a generator can; read a list"
            raise CheckpointError(message)
        return {"made": self._made}

    def load_state(self, state: Mapping[str, int], /) -> None:
        """Go on where a shard of the same items stood."""
        for _ in range(state["made"]):
            self.next_item()


def from_shards(shards: Iterable[Iterable[T]]) -> ParallelStream[T, Shard[T]]:
    """One shard an iterable, each read inside its own actor; a shard ends with its iterable (law 18).

    Raises:
        ValueError: there is no shard.
    """
    held = tuple(shards)
    check_positive(len(held), "from_shards: the number of shards")
    site = call_site()
    group = Group(factory=Shard, count=len(held), shards=held, name="shards", site=site)
    return ParallelStream(
        nodes.Produce(
            name="from_shards",
            site=site,
            item_type=_common_type(held),
            group=group,
            method=Shard[T].next_item,
        )
    )


def _common_type(iterables: Iterable[Iterable[object]]) -> ItemType:
    """The one class of all items where they lie in lists, tuples or ranges; iterators are left alone."""
    found: set[type] = set()
    for items in iterables:
        if not isinstance(items, list | tuple | range):
            return UNKNOWN
        found.update(type(item) for item in items[:100])
    return found.pop() if len(found) == 1 else UNKNOWN
