"""Actors that say where they are, in a module of their own, since Ray's workers import them by name."""

from __future__ import annotations

import os
import time
from typing import NamedTuple, final

import ray

from pipeflow import current_shard


class Made(NamedTuple):
    """An item: the shard, the node and process that it was made in, how many were before, with which weights."""

    shard: int
    node: str
    pid: int
    k: int
    weights: int


@final
class Located:
    """Makes an item every hundredth of a second."""

    def __init__(self) -> None:
        self._made, self._weights = 0, -1

    def make(self) -> Made:
        """The next item."""
        time.sleep(0.01)
        self._made += 1
        return Made(current_shard(), here(), os.getpid(), self._made - 1, self._weights)

    def set_weights(self, weights: int, /) -> None:
        """Act with these."""
        self._weights = weights


@final
class LocatedLearner:
    """Counts its updates."""

    def __init__(self) -> None:
        self._updates = 0

    def update(self, item: Made) -> Made:
        """Count one; the item goes on."""
        self._updates += 1
        return item

    def weights(self) -> int:
        """The number of updates."""
        return self._updates


def here() -> str:
    """The node that this process is on."""
    return ray.get_runtime_context().get_node_id()


def node_of(actor: object) -> str:
    """The node of an actor, to be asked for."""
    return here()
