"""`pipeflow train --profile`: where the wall time of a training went.

Apart from the statistics of the run, which know what its stages did and not what the command did between items.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from pipeflow.lowering.stats import RunStats

Phase = Literal["evaluation", "recording", "checkpoints"]

_PHASES: tuple[Phase, ...] = ("evaluation", "recording", "checkpoints")


@dataclass(frozen=True)
class Share:
    """A part of some time: what it was spent on, its seconds, and their share, from 0 to 1."""

    name: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Division:
    """How a training's time divides.

    Attributes:
        wall: parts of the wall time, which add up to all of it. In one process the actors' stages are among them.
        actors: where actors work at the same time, the seconds in the stages of each group, summed over its
            actors, and what share they are of all that they could have worked since the start-up; else nothing.
    """

    wall: tuple[Share, ...]
    actors: tuple[Share, ...] = ()


class Profile:
    """Measures what a training does beside its plan.

    The start-up is all that comes before `started`.

    Args:
        clock: in seconds, the one that the run's statistics go by.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self._start_up = 0.0
        self._seconds: dict[Phase, float] = dict.fromkeys(_PHASES, 0.0)
        self._before: RunStats | None = None

    def started(self, stats: RunStats) -> None:
        """Everything stands; `stats` are what a run that is gone on with had counted before."""
        self._start_up = self._clock() - self._began
        self._before = stats

    @contextmanager
    def during(self, phase: Phase, stats: Callable[[], RunStats]) -> Generator[None]:
        """Count what is done inside to a phase, but for stages that run in this process meanwhile."""
        began, busy = self._clock(), _busy_here(stats())
        try:
            yield
        finally:
            self._seconds[phase] += self._clock() - began - (_busy_here(stats()) - busy)

    def division(self, stats: RunStats) -> Division:
        """How the time up to this call divides, given what the run counted."""
        wall = self._clock() - self._began
        before = stats if self._before is None else self._before
        earlier = {group.name: group.busy_seconds for group in before.groups}
        groups = {
            f"{group.name} × {group.actors}": (group.actors, group.busy_seconds - earlier[group.name])
            for group in stats.groups
        }
        start_up = wall if self._before is None else self._start_up
        parts = [("start-up", start_up)]
        if not stats.concurrent:
            parts += [(f"stages in {name}", busy) for name, (_, busy) in groups.items()]
        parts.append(("stages on the driver", stats.driver_seconds - before.driver_seconds))
        parts += self._seconds.items()
        waiting = "waiting for actors, dataflow and engine" if stats.concurrent else "dataflow and engine"
        parts.append((waiting, wall - sum(seconds for _, seconds in parts)))
        divided = tuple(Share(name, seconds, seconds / wall) for name, seconds in parts)
        if not stats.concurrent or wall == start_up:
            return Division(divided)
        working = wall - start_up
        return Division(
            divided,
            tuple(Share(name, busy, busy / (working * actors)) for name, (actors, busy) in groups.items()),
        )

    def text(self, stats: RunStats) -> str:
        """The statistics of the run, and how the time divides."""
        division = self.division(stats)
        wall = sum(share.seconds for share in division.wall)
        lines = [str(stats), "", f"where the wall time went, {wall:.1f} s", *_lines(division.wall)]
        if division.actors:
            lines += [
                "",
                "time in stages since the start-up, summed over actors, and its share of all their time",
            ]
            lines += _lines(division.actors)
        return "\n".join(lines)


def _busy_here(stats: RunStats) -> float:
    """Seconds in stages that ran in this process."""
    return sum(node.busy_seconds for node in stats.nodes if not (stats.concurrent and node.groups))


def _lines(shares: Sequence[Share]) -> list[str]:
    width = max(len(share.name) for share in shares)
    return [f"  {share.name:<{width}}  {share.seconds:8.2f} s  {share.share:6.1%}" for share in shares]
