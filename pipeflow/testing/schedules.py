"""Schedules: how one simulated run goes, as a value that can be drawn, printed and run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeflow.dsl import RunError, Stream
from pipeflow.lowering.engines.sim import Sim
from pipeflow.lowering.run import Run
from pipeflow.semantics.events import Trace


@dataclass(frozen=True)
class Schedule:
    """A seed of the simulation, and how many actors may die in it."""

    seed: int
    crashes: int = 0

    @property
    def code(self) -> str:
        """The engine as it is written in a program."""
        crashes = f", crashes={self.crashes}" if self.crashes else ""
        return f"Sim(seed={self.seed}{crashes})"

    def engine(self) -> Sim:
        """The engine; for one run."""
        return Sim(self.seed, crashes=self.crashes)


@dataclass(frozen=True)
class Simulated:
    """What a simulated run did: its events, its items, and the error that ended it, if one did."""

    trace: Trace
    items: tuple[object, ...]
    error: RunError | None


# `Any`: a plan of items of any type.
def simulate(plan: Stream[Any], schedule: Schedule, *, items: int | None = None) -> Simulated:
    """Run a plan once in the simulation, recorded.

    Args:
        plan: the plan.
        schedule: how it goes.
        items: after how many items the consumer closes the run; None means at the end.
    """
    return finished(plan.run(schedule.engine(), record=True), items=items)


# `Any`: likewise.
def finished(run: Run[Any], *, items: int | None = None) -> Simulated:
    """Take the items of a recorded run and close it; arguments as of `simulate`."""
    found: list[object] = []
    error: RunError | None = None
    try:
        with run:
            while items is None or len(found) < items:
                try:
                    found.append(next(run))
                except StopIteration:
                    break
    except RunError as raised:
        error = raised
    return Simulated(run.trace, tuple(found), error)
