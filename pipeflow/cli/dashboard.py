"""The page of a training: everything that the command line records, kept in the run's folder, served on demand.

Apart from the other sinks because it reads the run's counters too, and from `pipeflow.cli.show`, which serves what
this one has kept.
"""

from __future__ import annotations

import math
from pathlib import Path

from pipeflow.dashboard.live import LivePage
from pipeflow.dsl import Stream
from pipeflow.lowering.run import Run
from pipeflow.rl.batches import Report
from pipeflow.tracking.records import Record


class DashboardSink:
    """Keeps the page of a run in `dashboard.jsonl`, and serves it where a port is given.

    title: what the page calls the run. steps: of a run that is gone on with. port: 0 takes a free one, None serves
    nothing. Raises OSError if the port cannot be used.
    """

    def __init__(
        self,
        plan: Stream[Report],
        run: Run[Report],
        folder: Path,
        title: str,
        steps: int = 0,
        port: int | None = None,
    ) -> None:
        self._page = LivePage(plan.node, run.stats, port, title, folder, steps)

    @property
    def url(self) -> str | None:
        """Where the page is, None where nothing is served."""
        return self._page.url

    def record(self, record: Record, /) -> None:
        """Show this update, or with the next one if it comes too soon."""
        curves = {
            "recent_return": record.recent_return,
            "steps_per_second": record.steps_per_second,
            "evaluation_return": math.nan if record.evaluation is None else record.evaluation.mean_return,
        }
        self._page.record(record.report, curves, record.seconds)

    def close(self, error: BaseException | None = None) -> None:
        """The run is over. error: what ended it, None where nothing did."""
        self._page.close(error)
