"""Laws and invariants under many schedules: what a user calls in a test, and what `pipeflow simulate` runs.

Apart from the laws because it runs plans; the laws only read traces.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pipeflow.dsl import ActorDiedError, Stream
from pipeflow.semantics.events import Lost, Trace
from pipeflow.semantics.laws import LAWS, check
from pipeflow.testing.schedules import Schedule, Simulated, simulate

Invariant = Callable[[Trace], str | None]
"""Looks at the events of a run and returns what is wrong, or None."""


class LawViolation(AssertionError):
    """A run under a schedule broke a law, or an invariant; the message says which, and how to replay it.

    Attributes:
        schedule: the schedule, which replays it.
        broken: what was broken: ``law 6`` or the invariant's name.
        trace: the events.
    """

    def __init__(self, broken: str, problem: str, schedule: Schedule, trace: Trace) -> None:
        self.broken, self.schedule, self.trace = broken, schedule, trace
        super().__init__(f"{problem}\n\n{replay(schedule)}")


@dataclass(frozen=True)
class Checked:
    """The runs on which every law and invariant was checked and held.

    Attributes:
        schedules: how many runs.
        with_deaths: in how many of them an actor died.
        ended_by_death: how many of those ended with `ActorDiedError`, since its group was not to be restarted.
    """

    schedules: int
    with_deaths: int
    ended_by_death: int


# `Any`, here and below: a plan of items of any type.
def check_laws(
    plan: Stream[Any],
    schedules: int = 100,
    *,
    crashes: int = 0,
    laws: Collection[int] | None = None,
    invariants: Sequence[Invariant] = (),
    items: int | None = None,
    seed: int = 0,
) -> Checked:
    """Run a plan in the simulation under many schedules and check every law on every run.

    >>> from pipeflow import from_shards, gather_async
    >>> check_laws(from_shards([[1, 2], [10]]) | gather_async(2), schedules=5)
    Checked(schedules=5, with_deaths=0, ended_by_death=0)

    Args:
        plan: the plan. Its actors run in this process, so choose a small one.
        schedules: how many schedules.
        crashes: how many actors may die in a run; their groups say with ``restarts`` how often they come back.
        laws: the numbers of the laws to check; None means all.
        invariants: functions of the trace that return what is wrong, or None.
        items: after how many items a run is closed; None for a plan that ends.
        seed: of the first schedule; the others follow.

    Returns: how many runs were checked, and in how many of them actors died.

    Raises:
        LawViolation: with the seed that replays it.
        StageError: a stage of the plan raised; a note says under which schedule. Likewise other errors of a run,
            but for actors that died where crashes were asked for and were not to be restarted.
    """
    with_deaths = ended = 0
    for number in range(schedules):
        schedule = Schedule(seed + number, crashes)
        run = check_schedule(plan, schedule, laws=laws, invariants=invariants, items=items)
        died = bool(crashes) and isinstance(run.error, ActorDiedError)
        if run.error is not None and not died:
            run.error.add_note(replay(schedule))
            raise run.error
        ended += died
        with_deaths += any(isinstance(event, Lost) and event.died for event in run.trace)
    return Checked(schedules, with_deaths, ended)


def check_schedule(
    plan: Stream[Any],
    schedule: Schedule,
    *,
    laws: Collection[int] | None = None,
    invariants: Sequence[Invariant] = (),
    items: int | None = None,
) -> Simulated:
    """Run a plan under one schedule and check it; arguments as of `check_laws`.

    Returns: the run, with the error that ended it, if one did.

    Raises:
        LawViolation: a law or an invariant was broken.
    """
    run = simulate(plan, schedule, items=items)
    for violation in check(run.trace, laws):
        title = next(law.title for law in LAWS if law.number == violation.law)
        raise LawViolation(f"law {violation.law}", f"{title}: {violation}", schedule, run.trace)
    for invariant in invariants:
        name = getattr(invariant, "__name__", repr(invariant))
        problem = invariant(run.trace)
        if problem is not None:
            raise LawViolation(name, f"invariant {name}: {problem}", schedule, run.trace)
    return run


def replay(schedule: Schedule) -> str:
    """How to run a schedule again."""
    return (
        "replay it with\n"
        "    from pipeflow.lowering.engines.sim import Sim\n"
        f"    run = plan.run({schedule.code}, record=True)"
    )
