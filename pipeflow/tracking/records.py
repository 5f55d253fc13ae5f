"""What trackers are told: a record for each report; and what a tracker is.

Apart from the trackers themselves, one a file, which know nothing of each other, and from `report_to`, which
makes the records in a plan. `pipeflow train` makes them in its loop.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.state.values import Json

RECENT_EPISODES = 100
_RATE_REPORTS = 20


@dataclass(frozen=True, eq=False)
class Record:
    """One report, in its place in the run.

    seconds: since the run started. steps_per_second: environment steps, over the last few reports. episodes:
    finished since the run started. recent_return: mean return of the latest 100 of them, nan before the
    first. evaluation: greedy episodes played with the weights of this report; None where there were none.
    """

    report: Report
    seconds: float
    steps_per_second: float
    episodes: int
    recent_return: float
    evaluation: EpisodeStats | None = None

    def curves(self) -> dict[str, float]:
        """A point of every curve, by a name in sections, such as ``episodes/return``; none that is no number."""
        report, episodes = self.report, self.report.episodes
        points = {
            "episodes/return": episodes.mean_return,
            "episodes/length": episodes.mean_length,
            "episodes/recent_return": self.recent_return,
            "time/steps_per_second": self.steps_per_second,
            **{f"learner/{name}": value for name, value in report.metrics.items()},
        }
        if self.evaluation is not None:
            points["evaluation/return"] = self.evaluation.mean_return
        return {name: float(value) for name, value in points.items() if math.isfinite(value)}


class Sink(Protocol):
    """Something that is told of every report of a run."""

    def record(self, record: Record, /) -> None:
        """Take in one report; the records come in their order."""
        ...

    def close(self, error: BaseException | None = None, /) -> None:
        """The run is over. error: what ended it early, None where nothing did."""
        ...


@runtime_checkable
class TrackedRun(Sink, Protocol):
    """A sink at a service, which keeps the run under an id of its own."""

    @property
    def run_id(self) -> str:
        """With it, `Tracker.open` goes on with this run."""
        ...


class Tracker(Protocol):
    """The description of a sink: made with a plan, opened when it runs."""

    def open(self, steps: int = 0, run_id: str | None = None, /) -> Sink:
        """Begin.

        steps: of the run that is gone on with, 0 for one that begins. run_id: by which a service knows it.
        Raises TrackingError if a service refuses, OSError if a file cannot be written.
        """
        ...


class Recorder:
    """Makes records of reports. clock: in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._episodes = 0
        self._returns: deque[float] = deque(maxlen=RECENT_EPISODES)
        # (seconds, lifetime steps), the window over which the rate is taken.
        self._points: deque[tuple[float, int]] = deque([(0.0, 0)], maxlen=_RATE_REPORTS + 1)

    def state(self) -> dict[str, Json]:
        """What the next records depend on, for a checkpoint."""
        return {"seconds": self.seconds, "episodes": self._episodes, "recent_returns": list(self._returns)}

    # `Any`: what `state` gave, which a file may have held since.
    def load_state(self, state: Any, steps: int) -> None:
        """Go on where the recorder stood that gave this state, after so many steps.

        Raises ValueError, TypeError or LookupError if it is none.
        """
        seconds, self._episodes = float(state["seconds"]), int(state["episodes"])
        self._returns.extend(float(one) for one in state["recent_returns"])
        self._start = self._clock() - seconds
        self._points = deque([(seconds, steps)], maxlen=_RATE_REPORTS + 1)

    @property
    def seconds(self) -> float:
        """Since the recorder was made."""
        return self._clock() - self._start

    def take(self, report: Report) -> Record:
        """The record of the next report."""
        self._episodes += report.episodes.count
        self._returns.extend(report.episodes.returns.tolist())
        self._points.append((self.seconds, report.lifetime_steps))
        (first, first_steps), (last, last_steps) = self._points[0], self._points[-1]
        return Record(
            report,
            seconds=last,
            steps_per_second=(last_steps - first_steps) / (last - first) if last > first else math.nan,
            episodes=self._episodes,
            recent_return=float(np.mean(self._returns)) if self._returns else math.nan,
        )
