"""What a run leaves for its page: snapshots at most once a second, the log, and the file that keeps both.

Apart from the server, which only reads `Recording.view`. A recording belongs to the thread that drives the run:
nobody else may read the run's counters.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from typing_extensions import override

from pipeflow.dashboard.encoding import NotARecording, line, lines, snapshot_json, view_of
from pipeflow.dashboard.plan_graph import plan_graph
from pipeflow.dashboard.snapshots import Reading, Snapshot, bottleneck, figures, window_between
from pipeflow.dashboard.views import Ending, Event, RunView, thinned, with_event
from pipeflow.dsl.nodes import Node
from pipeflow.lowering.stats import RunStats
from pipeflow.state.values import Json

FILE = "dashboard.jsonl"
"""The recording in a run's folder."""

SNAPSHOTS = 1000
"""How many snapshots are kept. When there are so many, every second one goes, and they come half as often."""

_INTERVAL = 1.0  # seconds between two snapshots
_WINDOW = 10.0  # seconds over which rates are taken
_LONGEST = 2000  # characters of an event


class Recording:
    """The page's side of a run. Tell it of every item with `record`, and `close` it before the run.

    root: the last node of the plan. stats: the run's counters. title: what the page calls the run. file: where it
    is kept; None keeps it in memory alone. steps: of a run that is gone on with, whose snapshots up to there are
    kept from the file. clock, now: in seconds, and in seconds since 1970.

    Raises OSError if the file cannot be written. If that happens later, the run goes on and the page says so.
    """

    def __init__(
        self,
        root: Node,
        stats: Callable[[], RunStats],
        title: str,
        file: Path | None = None,
        *,
        steps: int = 0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._stats, self._file, self._clock, self._now = stats, file, clock, now
        first = stats()
        self._start = clock()
        self._readings = deque([Reading(0.0, first)])
        self._pending: dict[str, float] = {}
        self._steps = steps
        self._seconds = 0.0
        self._shown_at = self._kept_at = -math.inf
        # Held by whoever makes a view of another: the driver, and whichever thread logs.
        self._lock = threading.Lock()
        self._view = RunView(title, first.engine, plan_graph(root), started=now(), updated=now())
        if file is not None and steps:
            self._view = _gone_on_with(self._view, file, steps)
        self._interval = _INTERVAL
        if self._view.snapshots:
            # As often as the ones before, so that the curve is as dense.
            spent = self._view.snapshots[-1].seconds
            while spent / self._interval > SNAPSHOTS:
                self._interval *= 2
        if file is not None:
            _write(file, self._view)
        self._log = _Log(self._add_event)
        self._log.attach()

    @property
    def view(self) -> RunView:
        """The run as it was last seen; any thread may read it."""
        return self._view

    def record(self, curves: Mapping[str, float], steps: int = 0, seconds: float | None = None) -> None:
        """Take in what is known after an item of the plan.

        curves: numbers by name; nan stands for one that is not known. steps: environment steps so far. seconds:
        since the run started; None counts them from when the recording was made.
        """
        self._pending |= {name: float(value) for name, value in curves.items() if math.isfinite(value)}
        self._steps = max(self._steps, steps)
        elapsed = self._clock() - self._start
        self._seconds = elapsed if seconds is None else seconds
        if elapsed - self._shown_at >= _INTERVAL:
            self._take(elapsed)

    def close(self, error: BaseException | None = None) -> None:
        """The run is over. error: what ended it, None where nothing did. Twice does no harm."""
        if self._view.ending is not None:
            return
        self._log.detach()
        self._kept_at = -math.inf
        self._take(self._clock() - self._start)
        ending = _ending(error, self._now())
        with self._lock:
            self._view = replace(self._view, ending=ending)
            self._append({"ending": asdict(ending)})

    def _take(self, elapsed: float) -> None:
        stats = self._stats()
        reading = Reading(elapsed, stats)
        while len(self._readings) > 1 and elapsed - self._readings[1].seconds >= _WINDOW:
            self._readings.popleft()
        window = window_between(self._readings[0], reading)
        snapshot = Snapshot(
            self._seconds,
            self._steps,
            figures(window),
            bottleneck(window),
            dict(self._pending),
            stats.restarts,
            stats.given_up,
            stats.lost,
        )
        self._readings.append(reading)
        self._shown_at = elapsed
        with self._lock:
            self._view = replace(self._view, latest=snapshot, updated=self._now())
            if elapsed - self._kept_at >= self._interval:
                self._kept_at = elapsed
                self._pending.clear()
                self._keep(snapshot)

    def _keep(self, snapshot: Snapshot) -> None:
        snapshots = (*self._view.snapshots, snapshot)
        if len(snapshots) < SNAPSHOTS:
            self._view = replace(self._view, snapshots=snapshots)
            self._append({"snapshot": snapshot_json(snapshot)})
        else:
            self._interval *= 2
            self._view = replace(self._view, snapshots=thinned(snapshots))
            self._rewrite()

    def _add_event(self, message: str) -> None:
        with self._lock:
            event = Event(self._seconds, self._now(), message[:_LONGEST])
            self._view = with_event(self._view, event)
            self._append({"event": asdict(event)})

    def _append(self, content: Mapping[str, Json]) -> None:
        with self._writing() as file:
            if file is not None:
                with file.open("a", encoding="utf-8") as stream:
                    stream.write(line(content))

    def _rewrite(self) -> None:
        with self._writing() as file:
            if file is not None:
                _write(file, self._view)

    @contextlib.contextmanager
    def _writing(self) -> Generator[Path | None]:
        """The file, if it can be written still: a full disk costs the page its file and not the run its life."""
        try:
            yield self._file
        except OSError as error:
            message = f"from here on the page is not kept: {self._file} cannot be written, {error.strerror}"
            self._file = None
            self._view = with_event(self._view, Event(self._seconds, self._now(), message))


def _ending(error: BaseException | None, now: float) -> Ending:
    match error:
        case None:
            return Ending("finished", now)
        case KeyboardInterrupt():
            return Ending("interrupted", now)
        case _:
            return Ending("failed", now, f"{type(error).__name__}: {error}"[:_LONGEST])


class _Log(logging.Handler):
    """Hands on the warnings of pipeflow: restarts, actors that were given up."""

    def __init__(self, add: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._add = add
        self._logger = logging.getLogger("pipeflow")

    def attach(self) -> None:
        self._logger.addHandler(self)

    def detach(self) -> None:
        self._logger.removeHandler(self)

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._add(record.getMessage())
        # Without this handler, Python would have printed the warning of a program that sets up no logging.
        if logging.lastResort is not None and not self._heard_elsewhere(record):
            logging.lastResort.handle(record)

    def _heard_elsewhere(self, record: logging.LogRecord) -> bool:
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(not isinstance(handler, _Log) for handler in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


def _gone_on_with(view: RunView, file: Path, steps: int) -> RunView:
    """The view with what a file has of the run up to some steps; as it is where the file has nothing that fits."""
    try:
        before = read(file)
    except (OSError, NotARecording):
        return view
    if before.graph != view.graph:  # other flags make another plan, whose figures do not fit
        return view
    snapshots = tuple(one for one in before.snapshots if one.steps <= steps)
    return replace(
        view, snapshots=snapshots, events=before.events, latest=snapshots[-1] if snapshots else None
    )


def _write(file: Path, view: RunView) -> None:
    """Write the file anew; whoever reads it meanwhile sees the old one or the new one, whole."""
    whole = file.with_name(f".{file.name}")
    whole.write_text("".join(lines(view)), encoding="utf-8")
    whole.replace(file)


def read(file: Path) -> RunView:
    """The view that a file holds.

    Raises OSError if it cannot be read, NotARecording if it is none.
    """
    if not file.is_file():  # a pipe of this name would be waited for
        raise FileNotFoundError(f"{file} is no file")
    updated = file.stat().st_mtime
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise NotARecording(f"it is no text: {error.reason}") from error
    return view_of(text, updated)
