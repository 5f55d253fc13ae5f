"""A small plan whose figures can be worked out by hand, and views of its runs."""

from __future__ import annotations

from pathlib import Path

from pipeflow.dashboard.plan_graph import PlanGraph, plan_graph
from pipeflow.dashboard.recording import Recording
from pipeflow.dashboard.snapshots import Bottleneck, NodeFigures, Snapshot
from pipeflow.dashboard.views import Event, RunView
from pipeflow.dsl import Stream, actors, gather_async, sync_weights


class Worker:
    def __init__(self) -> None:
        self.made = 0

    def sample(self) -> int:
        self.made += 1
        return self.made

    def set_weights(self, weights: int) -> None:
        """Nothing: the items do not depend on them."""


class Learner:
    def update(self, item: int) -> dict[str, float]:
        return {"loss": 1 / item}

    def weights(self) -> int:
        return 0


def doubled(item: int) -> int:
    return 2 * item


def small_plan() -> Stream[dict[str, float]]:
    """Two workers, a function that is fused into the learner, the learner, and its weights."""
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    return (
        workers.produce(Worker.sample)
        | gather_async()
        | doubled
        | learner.stage(Learner.update)
        | sync_weights(learner, workers)
    )


class Clock:
    """Stands still unless told otherwise."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def recorded(file: Path | None, items: int, step: float = 1.0) -> RunView:
    """The view of a run of the small plan, with an item each `step` seconds and 10 environment steps an item."""
    plan, clock = small_plan(), Clock()
    with plan.run() as run:
        recording = Recording(
            plan.node, run.stats, "small", file, clock=clock, now=lambda: 1000.0 + clock.time
        )
        for index in range(items):
            clock.time += step
            recording.record(next(run), 10 * (index + 1))
        recording.close()
    return recording.view


def graph() -> PlanGraph:
    """The small plan's."""
    return plan_graph(small_plan().node)


def snapshot(seconds: float, steps: int = 0, **curves: float) -> Snapshot:
    """A snapshot of the small plan in which every node delivered as many items as there are seconds."""
    figures = NodeFigures(0, int(seconds), 1.0, 0.25, 0.5, seconds / 2, 1, 0.0, 0)
    return Snapshot(seconds, steps, (figures,) * 5, Bottleneck(3, 0.75, "Less to do."), curves)


def view(*snapshots: Snapshot, events: tuple[Event, ...] = ()) -> RunView:
    """A view of the small plan's run that goes on."""
    latest = snapshots[-1] if snapshots else None
    return RunView("small", "inline", graph(), 1000.0, 1001.0, snapshots, latest, events)
