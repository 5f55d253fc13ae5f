"""Pictures of a plan: indented text for a terminal, a Mermaid flowchart for a page."""

from __future__ import annotations

from collections.abc import Iterator

from pipeflow.dsl import nodes
from pipeflow.dsl.item_types import show
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.trees import walk


def explain(root: Node) -> str:
    """The plan from its output up to its sources: name, type, and the line where each stage was written."""
    lines: list[tuple[str, str, str]] = []
    shown: set[int] = set()
    for prefix, node in _indented(root, shown):
        lines.append((prefix + node.name, node.type_name, str(node.site)))
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {kind:<{widths[1]}}  {site}" for name, kind, site in lines)


def _indented(node: Node, shown: set[int], here: str = "", below: str = "") -> Iterator[tuple[str, Node]]:
    yield here, node
    if id(node) in shown:
        return
    shown.add(id(node))
    if len(node.inputs) == 1:
        yield from _indented(node.inputs[0], shown, below, below)
        return
    for index, child in enumerate(node.inputs):
        last = index == len(node.inputs) - 1
        branch, rest = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _indented(child, shown, below + branch, below + rest)


def to_mermaid(root: Node) -> str:
    """The plan as a Mermaid flowchart: parallel stages are hexagons, edges carry the items' types."""
    order = list(walk(root))
    ids = {id(node): f"n{index}" for index, node in enumerate(order)}
    lines = ["flowchart TD"]
    for node in order:
        opening, closing = ("{{", "}}") if node.parallel else _shape(node)
        label = node.name.replace('"', "#quot;")
        lines.append(f'    {ids[id(node)]}{opening}"{label}"{closing}')
    for node in order:
        for child in node.inputs:
            item = show(child.item_type).replace('"', "#quot;")
            lines.append(f'    {ids[id(child)]} -->|"{item}"| {ids[id(node)]}')
    for node in order:
        if isinstance(node, nodes.SyncWeights | nodes.ReplyWeights):
            workers = (
                (node.workers,) if isinstance(node, nodes.SyncWeights) else nodes.producers_of(node.input)
            )
            readers = [other for other in order if other is not node and set(workers) & set(other.groups)]
            lines.extend(f'    {ids[id(node)]} -.->|"weights"| {ids[id(reader)]}' for reader in readers)
    return "\n".join(lines) + "\n"


def _shape(node: Node) -> tuple[str, str]:
    match node:
        case nodes.Place():
            return "[[", "]]"
        case nodes.Gather() | nodes.Union():
            return "([", "])"
        case _:
            return "[", "]"
