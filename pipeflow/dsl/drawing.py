"""A drawing of a plan for a terminal: sources above, one line a stage, and the items' types on the lines between.

Apart from `explain`, which lists the stages with the lines where they were written and the streams that they make.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pipeflow.dsl.item_types import show
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.trees import walk

# A line between stages: of shards, of one stream, and of a stream that delivers nothing.
_PARALLEL, _STREAM, _DRAINED = "║", "│", "┊"
_STAGE = "●"


@dataclass(frozen=True)
class _Edge:
    """A stage's items on their way to one that reads them; None is whoever runs the plan."""

    maker: Node
    reader: Node | None

    @property
    def line(self) -> str:
        if self.maker.drained:
            return _DRAINED
        return _PARALLEL if self.maker.parallel else _STREAM

    @property
    def label(self) -> str:
        return "nothing" if self.maker.drained else show(self.maker.delivered_type)


def draw(root: Node, place_of: Callable[[Node], str]) -> str:
    """The plan as lines that run down from its sources to whoever runs it.

    A double line is a parallel stream, one line a shard; a dotted one delivers nothing and is only consumed.

    Args:
        root: the plan's last stage.
        place_of: where a stage runs, as it is shown behind its name.
    """
    rows = _rows(root)
    width = max(len(lanes) for lanes, _ in rows)
    stages = [node for _, node in rows if isinstance(node, Node)]
    name_width = max(len(node.name) for node in stages)
    place_width = max(len(place_of(node)) for node in stages)
    lines: list[str] = []
    for lanes, content in rows:
        text = content
        if isinstance(content, Node):
            where = f"{content.name:<{name_width}}  {place_of(content):<{place_width}}"
            text = f"{where}  {PurePath(content.site.file).name}:{content.site.line}"
        lines.append(f"{lanes:<{width}}  {text}".rstrip())
    return "\n".join(lines)


def _rows(root: Node) -> list[tuple[str, Node | str]]:
    """Every line of the drawing: the lanes in front, and the stage or the type behind them."""
    order = list(walk(root))
    readers: dict[int, list[Node | None]] = {id(node): [] for node in order}
    for node in order:
        for child in node.inputs:
            readers[id(child)].append(node)
    readers[id(root)].append(None)
    # What runs down in each column; None where it is free.
    lanes: list[_Edge | None] = []
    rows: list[tuple[str, Node | str]] = []
    for node in order:
        taken = [column for column, edge in enumerate(lanes) if edge is not None and edge.reader is node]
        if len(taken) > 1:
            rows.append((_joined(lanes, taken, "╯"), ""))
        for column in taken[1:]:
            lanes[column] = None
        column = taken[0] if taken else _free(lanes)
        lanes[column] = None
        rows.append((_drawn(lanes, {column: _STAGE}), node))
        edges = [_Edge(node, reader) for reader in readers[id(node)]]
        columns = [column]
        lanes[column] = edges[0]
        for edge in edges[1:]:
            columns.append(_free(lanes, column))
            lanes[columns[-1]] = edge
        drawn = _joined(lanes, columns, "╮") if len(edges) > 1 else _drawn(lanes)
        rows.append((drawn, f"  {edges[0].label}"))
        while lanes and lanes[-1] is None:
            lanes.pop()
    return rows


def _free(lanes: list[_Edge | None], after: int = -1) -> int:
    """A column that is free, behind a given one; there may have to be one more."""
    for column in range(after + 1, len(lanes)):
        if lanes[column] is None:
            return column
    lanes.append(None)
    return len(lanes) - 1


def _drawn(lanes: Sequence[_Edge | None], marks: dict[int, str] | None = None) -> str:
    """The lanes as they run down, with marks in some columns."""
    signs = [" " if edge is None else edge.line for edge in lanes]
    for column, mark in (marks or {}).items():
        signs[column] = mark
    return " ".join(signs).rstrip()


def _joined(lanes: Sequence[_Edge | None], columns: Sequence[int], corner: str) -> str:
    """The lanes where those in some columns come together, or part; those in between are crossed."""
    first, last = columns[0], columns[-1]
    middle = "┴" if corner == "╯" else "┬"
    signs: list[str] = []
    for column, edge in enumerate(lanes):
        if column == first:
            sign = "├"
        elif column == last:
            sign = corner
        elif column in columns:
            sign = middle
        elif first < column < last:
            sign = "─" if edge is None else "┼"
        else:
            sign = " " if edge is None else edge.line
        signs.append(sign)
        signs.append("─" if first <= column < last else " ")
    return "".join(signs).rstrip()
