"""The states of the gates, and the nodes of the gates that are methods of a stream.

Apart from `gates`, whose operators stand on streams, so that streams can use them too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_fits
from pipeflow.dsl.item_types import ItemType, name_of, taken_type
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.sites import Site


class HasSteps(Protocol):
    """A batch or report that counts its steps."""

    @property
    def steps(self) -> int:
        """How many environment steps it stands for."""
        ...


class Filtering:
    """Admits the items for which the predicate holds."""

    closed = False

    def __init__(self, predicate: Callable[[Any], bool]) -> None:
        self._predicate = predicate

    def admit(self, item: object, /) -> bool:
        return bool(self._predicate(item))


class Tapping:
    """Admits every item after calling the function with it."""

    closed = False

    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function

    def admit(self, item: object, /) -> bool:
        self._function(item)
        return True


class UntilHolds:
    """Admits items up to and with the first for which the predicate holds."""

    def __init__(self, predicate: Callable[[Any], bool]) -> None:
        self._predicate = predicate
        self.closed = False

    def admit(self, item: object, /) -> bool:
        self.closed = bool(self._predicate(item))
        return True


class Taking:
    """Admits the first `count` items."""

    def __init__(self, count: int) -> None:
        self._left = count

    @property
    def closed(self) -> bool:
        return self._left <= 0

    def admit(self, item: object, /) -> bool:
        self._left -= 1
        return True


class EveryNth:
    """Admits the n-th, 2n-th, ... item."""

    closed = False

    def __init__(self, n: int) -> None:
        self._n = n
        self._seen = 0

    def admit(self, item: object, /) -> bool:
        self._seen += 1
        return self._seen % self._n == 0


class OncePerSteps:
    """Admits an item when those since the last admitted one hold at least `steps` steps together."""

    closed = False

    def __init__(self, steps: int) -> None:
        self._every = steps
        self._steps = 0

    def admit(self, item: HasSteps, /) -> bool:
        self._steps += item.steps
        if self._steps < self._every:
            return False
        self._steps = 0
        return True


def filter_node(node: Node, predicate: Callable[[Any], bool], site: Site) -> nodes.Gate:
    """The node of ``.filter(predicate)``."""
    name = f"filter({name_of(predicate)})"
    return _reading(Filtering, node, predicate, name, site, narrowed_type(node, predicate))


def tap_node(node: Node, function: Callable[[Any], object], site: Site, name: str = "") -> nodes.Gate:
    """The node of ``.tap(function)``."""
    return _reading(Tapping, node, function, name or f"tap({name_of(function)})", site, node.item_type)


def until_node(node: Node, predicate: Callable[[Any], bool], site: Site, name: str = "") -> nodes.Gate:
    """The node of ``.until(predicate)``."""
    return _reading(UntilHolds, node, predicate, name or f"until({name_of(predicate)})", site, node.item_type)


def narrowed_type(node: Node, predicate: Callable[[Any], bool]) -> ItemType:
    """The type of the items for which a predicate holds: what a `TypeIs` narrows to, or that of all."""
    if (
        node.sourced
    ):  # what it narrows is the whole of the `Sourced`, and the nodes' types are of the item alone
        return node.item_type
    from typing import get_args, get_origin, get_type_hints

    from typing_extensions import TypeIs

    try:
        returned = get_type_hints(predicate).get("return")
    except Exception:  # annotations are arbitrary expressions: whatever they raise, nothing is known
        return node.item_type
    return get_args(returned)[0] if get_origin(returned) is TypeIs else node.item_type


def _reading(
    state: Callable[[Callable[[Any], Any]], nodes.Gating],
    node: Node,
    function: Callable[[Any], Any],
    name: str,
    site: Site,
    item_type: ItemType,
) -> nodes.Gate:
    check_fits(node, taken_type(function, 0), name, site)
    return nodes.Gate(
        name=name,
        site=site,
        item_type=item_type,
        input=node,
        factory=functools.partial(state, function),
        reads=True,
        passes_turn=state is Filtering,
    )
