"""`report_to` after a stream of what is no report, and before a gather."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import from_items
from pipeflow.tracking import CSV, report_to
from tests.typing.domain import RolloutWorker, workers


def reports_of_what_is_none() -> None:
    from_items([1, 2]) | report_to(CSV("run"))  # E: operator: Unsupported operand types for | ("Stream[int]" and "ReportTo")
    # R: report_to(CSV) takes Report .. delivers int


def reports_before_a_gather() -> None:
    workers.produce(RolloutWorker.sample) | report_to(CSV("run"))  # E: operator: Unsupported operand types for | ("ParallelStream[Trajectories, RolloutWorker]" and "ReportTo")
    # R: report_to(CSV) .. gather
