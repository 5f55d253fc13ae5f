"""What a training run leaves behind: its folder, and the curves in it.

Apart from the loop that trains and from what it shows on a terminal. Whatever wants to know of every update is
a `Sink`; the files are sinks, and so are the displays.
"""

from __future__ import annotations

import csv
import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from tensorboardX import SummaryWriter

from pipeflow.cli.errors import UsageError
from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.state.values import Json

RECENT_EPISODES = 100
_RATE_REPORTS = 20

PROGRESS = "progress.csv"
CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
PICTURE = "plan.mmd"
TEXT = "plan.txt"
PROFILE = "profile.txt"


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


class Sink(Protocol):
    """Something that is told of every update."""

    def record(self, record: Record, /) -> None:
        """Take in one update; the records come in their order."""
        ...

    def close(self) -> None:
        """The run is over."""
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


class CsvSink:
    """`progress.csv`: a row for each report, under a header that the first one makes; nan is left empty.

    A metric that only later reports have is in TensorBoard alone. steps: of a run that is gone on with, whose rows
    of later steps are lost with what came after its checkpoint.
    """

    def __init__(self, file: Path, steps: int = 0) -> None:
        self._writer: csv.DictWriter[str] | None = None
        header, rows = _rows_up_to(steps, file) if steps else ([], [])
        self._stream = file.open("w", newline="", encoding="utf-8")
        if header:
            self._start(header)
            csv.writer(self._stream).writerows(rows)
            self._stream.flush()

    def record(self, record: Record, /) -> None:
        """Write a row; it is in the file when this returns."""
        report, episodes = record.report, record.report.episodes
        counts = {"steps": report.lifetime_steps, "updates": report.version, "episodes": record.episodes}
        numbers = {
            "seconds": round(record.seconds, 3),
            "steps_per_second": round(record.steps_per_second, 1),
            "episode_return": episodes.mean_return,
            "episode_length": episodes.mean_length,
            "recent_return": record.recent_return,
            "evaluation_return": math.nan if record.evaluation is None else record.evaluation.mean_return,
            **report.metrics,
        }
        row = {name: str(count) for name, count in counts.items()}
        row |= {name: "" if math.isnan(value) else repr(float(value)) for name, value in numbers.items()}
        writer = self._start(list(row)) if self._writer is None else self._writer
        writer.writerow(row)
        self._stream.flush()

    def _start(self, header: Sequence[str]) -> csv.DictWriter[str]:
        self._writer = csv.DictWriter(self._stream, header, restval="", extrasaction="ignore")
        self._writer.writeheader()
        return self._writer

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class TensorBoardSink:
    """TensorBoard's event file in a folder; the horizontal axis is environment steps.

    steps: of a run that is gone on with; what was written of later ones is hidden.
    """

    def __init__(self, folder: Path, steps: int = 0) -> None:
        purged = steps + 1 if steps else None
        self._writer = SummaryWriter(logdir=str(folder), flush_secs=10, purge_step=purged)

    def record(self, record: Record, /) -> None:
        """Write every number that is one."""
        report, episodes = record.report, record.report.episodes
        numbers: dict[str, float] = {
            "episodes/return": episodes.mean_return,
            "episodes/length": episodes.mean_length,
            "episodes/recent_return": record.recent_return,
            "time/steps_per_second": record.steps_per_second,
            **{f"learner/{name}": value for name, value in report.metrics.items()},
        }
        if record.evaluation is not None:
            numbers["evaluation/return"] = record.evaluation.mean_return
        for tag, value in numbers.items():
            if math.isfinite(value):
                self._writer.add_scalar(tag, float(value), report.lifetime_steps)

    def close(self) -> None:
        """Write what is still in memory."""
        self._writer.close()


def _rows_up_to(steps: int, file: Path) -> tuple[list[str], list[list[str]]]:
    """The header of a `progress.csv` and its whole rows of at most so many steps."""
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            header, *rows = list(csv.reader(stream)) or [[]]
    except OSError:  # somebody took it away
        return [], []
    kept = [row for row in rows if len(row) == len(header) and row[0].isdecimal() and int(row[0]) <= steps]
    return header, kept


def run_folder(wanted: Path | None, algorithm: str, environment: str) -> Path:
    """Where a run will be kept; makes nothing yet. wanted: None for a new name in `runs`.

    Raises UsageError if there is something in `wanted`.
    """
    if wanted is not None:
        if wanted.exists() and not (wanted.is_dir() and not any(wanted.iterdir())):
            raise UsageError(
                f"{wanted} is taken, and a run is never overwritten; give another --logdir, or leave it out"
            )
        return wanted
    name = "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in environment)
    path = first = Path("runs") / f"{algorithm}-{name}-{datetime.now():%Y%m%d-%H%M%S}"
    number = 1
    while path.exists():  # another run was started in the same second
        number += 1
        path = first.with_name(f"{first.name}-{number}")
    return path


def make_run_folder(path: Path) -> None:
    """Make the folder. Raises UsageError if it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the run's folder {path}: {error.strerror}; give another --logdir"
        raise UsageError(message) from error


def write_json(file: Path, content: Mapping[str, Json]) -> None:
    """Write a file that people read too."""
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
