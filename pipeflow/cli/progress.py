"""How a run looks while it goes on: a live display on a terminal, one line a report elsewhere, or nothing.

Apart from the records, which are the same for all of them. A display never ends a run: when its terminal or
the other end of its pipe is gone, it falls silent.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Generator

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from pipeflow.tracking.records import RECENT_EPISODES, Record, Sink


def display(steps: int, quiet: bool) -> Sink:
    """What shows a run of `steps` environment steps, fit for where the output goes."""
    if quiet:
        return Silence()
    console = Console(highlight=False)
    # A dumb terminal cannot move its cursor back, which a live display needs.
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(steps, console)
    return LineDisplay(steps)


def say(text: str) -> None:
    """Print, unless nobody is there to read it any more."""
    with _unless_gone():
        print(text, flush=True)


class Silence:
    """Shows nothing."""

    def record(self, record: Record, /) -> None:
        """Nothing."""

    def close(self, error: BaseException | None = None, /) -> None:
        """Nothing."""


class LineDisplay:
    """One plain line for each report: for logs, pipes and dumb terminals."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def record(self, record: Record, /) -> None:
        """Print the line."""
        done = record.report.lifetime_steps
        remaining = (self._steps - done) / record.steps_per_second if record.steps_per_second else math.nan
        parts = [
            f"steps {done:,}/{self._steps:,}",
            *(f"{name} {value}" for name, value in figures(record).items()),
            f"elapsed {clock(record.seconds)}",
            f"remaining {clock(max(remaining, 0.0))}",
        ]
        say("  ".join(parts))

    def close(self, error: BaseException | None = None, /) -> None:
        """Nothing: what was printed stays."""


class LiveDisplay:
    """A bar with the figures of the latest report below it, redrawn in place."""

    def __init__(self, steps: int, console: Console) -> None:
        self._bar = Progress(
            TextColumn("steps {task.completed:,.0f}/{task.total:,.0f}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("elapsed"),
            TimeElapsedColumn(),
            TextColumn("remaining"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("", total=steps)
        self._live = Live(self._bar, console=console, refresh_per_second=4)
        with _unless_gone():
            self._live.start(refresh=True)  # the bar is there before the first report

    def record(self, record: Record, /) -> None:
        """Show this report's figures with the next refresh."""
        self._bar.update(self._task, completed=record.report.lifetime_steps)
        shown = figures(record)
        table = Table.grid(padding=(0, 2))
        for _ in range(4):
            table.add_column()
            table.add_column(justify="right")
        cells = [cell for name, value in shown.items() for cell in (f"[dim]{name}[/dim]", value)]
        for start in range(0, len(cells), 8):
            table.add_row(*cells[start : start + 8])
        self._live.update(Group(self._bar, table))

    def close(self, error: BaseException | None = None, /) -> None:
        """Leave the last state on the screen."""
        with _unless_gone():
            self._live.stop()


def figures(record: Record) -> dict[str, str]:
    """What both displays say of a report, by name, in the order shown."""
    metrics = record.report.metrics
    shown = {
        "steps/s": f"{record.steps_per_second:,.0f}",
        "episodes": f"{record.episodes:,}",
        # Of the latest episodes of the training, whose actions are sampled.
        f"return({RECENT_EPISODES})": _number(record.recent_return),
        **{name: _number(value) for name, value in metrics.items() if name.endswith("loss")},
        **{name: _number(metrics[name]) for name in ("entropy", "approx_kl") if name in metrics},
    }
    if record.evaluation is not None:
        shown["evaluation"] = _number(record.evaluation.mean_return)
    return shown


def clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock(3725.4)
    '1:02:05'
    """
    if not math.isfinite(seconds):
        return "-:--:--"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


@contextlib.contextmanager
def _unless_gone() -> Generator[None]:
    try:
        yield
    except OSError:
        # What Python still holds for it would fail again when the process ends.
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            os.close(nothing)
