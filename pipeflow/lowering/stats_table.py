"""The figures of a run as a table for a terminal, at most 120 columns wide."""

from __future__ import annotations

import textwrap
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeflow.lowering.stats import NodeStats, RunStats

_HEAD = ("node", "in", "out", "busy s", "busy", "waiting s", "queue", "written at")
_TEXT = (0, 7)  # set left; figures are set right
_WIDTH = 118
_NAME = 42


def table(stats: RunStats) -> str:
    """One line a node, and two about the bottleneck, which a ``>`` marks."""
    bottleneck = stats.bottleneck
    rows = [_HEAD, *(_row(stats, node) for node in stats.nodes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    marked = [False, *(bottleneck is not None and node is bottleneck.node for node in stats.nodes)]
    lines = [("> " if mark else "  ") + _aligned(row, widths) for mark, row in zip(marked, rows, strict=True)]
    if bottleneck is not None:
        for line in str(bottleneck).splitlines():
            lines += textwrap.wrap(line, _WIDTH, subsequent_indent="  ", break_long_words=False)
    return "\n".join(lines)


def shortened(name: str, width: int = _NAME) -> str:
    """A name without its middle where it is longer than that.

    >>> shortened("GradientWorker.stage(GradientWorker.gradients)", 30)
    'GradientWorker…rker.gradients)'
    """
    if len(name) <= width:
        return name
    return f"{name[: width // 2 - 1]}…{name[-(width // 2) :]}"


def _row(stats: RunStats, node: NodeStats) -> tuple[str, ...]:
    return (
        shortened(node.name),
        str(node.items_in),
        str(node.items_out),
        f"{node.busy_seconds:.3f}",
        f"{stats.busy_share(node):.0%}",
        f"{node.waiting_seconds:.3f}",
        str(node.queue),
        PurePath(node.site).name,
    )


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    cells = (
        cell.ljust(width) if column in _TEXT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()
