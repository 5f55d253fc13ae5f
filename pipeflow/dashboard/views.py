"""All that is known of a run at one moment, as one immutable value: what the driver makes and the server reads.

Apart from the snapshots, of which it holds the history. Since it never changes, the two threads share it without
a lock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pipeflow.dashboard.plan_graph import PlanGraph
from pipeflow.dashboard.snapshots import Snapshot

How: TypeAlias = Literal["finished", "interrupted", "failed"]

EVENTS = 200
"""How many lines of the log are kept."""


@dataclass(frozen=True)
class Event:
    """A line of the log. seconds: since the run started. time: of the clock, seconds since 1970."""

    seconds: float
    time: float
    message: str


@dataclass(frozen=True)
class Ending:
    """How a run ended, and the error where it failed. time: of the clock, seconds since 1970."""

    how: How
    time: float
    message: str = ""


@dataclass(frozen=True)
class RunView:
    """A run as the page shows it.

    title: what is run. engine: its name. started, updated: of the clock, seconds since 1970. snapshots: the
    history, thinned. latest: the newest snapshot, which the history may lack. ending: None while the run goes
    on.
    """

    title: str
    engine: str
    graph: PlanGraph
    started: float
    updated: float
    snapshots: tuple[Snapshot, ...] = ()
    latest: Snapshot | None = None
    events: tuple[Event, ...] = ()
    ending: Ending | None = None


def with_event(view: RunView, event: Event) -> RunView:
    """The view with one more line in its log."""
    return replace(view, events=(*view.events, event)[-EVENTS:])


def thinned(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """Of every two snapshots the later one, with those curves of the earlier one that it lacks."""
    kept = tuple(
        replace(stays, curves={**goes.curves, **stays.curves})
        for goes, stays in zip(snapshots[::2], snapshots[1::2], strict=False)
    )
    return kept + snapshots[2 * len(kept) :]
