"""The node of a reply, and what it asks of the stream before it.

Apart from `messages`, whose operators stand on streams, so that streams can use it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_fits, check_method, check_not_drained
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.item_types import name_of, taken_type
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.sites import Site


# `Any`: functions of every signature, whose types the callers' signatures state.
def reply_node(
    node: Node,
    method: Callable[..., object],
    message: Callable[[Any], object] | None,
    site: Site,
    name: str = "",
) -> nodes.Reply:
    """The node of ``.reply(method, message)``; without a message the item itself is sent.

    Raises:
        PlanError: the stream knows no sources, or the method is not one of the sources' class.
    """
    name = name or f"reply({name_of(method)})"
    check_not_drained(node, name, site)
    check_sourced(node, name, site)
    for group in nodes.producers_of(node):
        check_method(group, method, site)
    wanted = taken_type(method, 1) if message is None else taken_type(message, 0)
    check_fits(node, wanted, name, site, source_apart=True)
    return nodes.Reply(
        name=name, site=site, item_type=node.item_type, input=node, method=method, message=message or _itself
    )


def check_sourced(node: Node, stage: str, site: Site) -> None:
    """Refuse a stage that answers sources behind a stream that does not know them."""
    if not node.sourced:
        message = f"{site}: {stage} needs to know where items came from; gather with .with_source()"
        raise PlanError(message)


def _itself(item: object) -> object:
    return item
