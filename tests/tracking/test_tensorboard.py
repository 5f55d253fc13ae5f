"""The event file of a run, read back as bytes: reading it properly needs TensorBoard itself."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from pipeflow.tracking import TensorBoard
from tests.tracking.reports import RECORD, episodes, report


def test_the_event_file_has_the_curves_and_no_nan(tmp_path: Path) -> None:
    sink = TensorBoard(tmp_path).open()
    sink.record(
        replace(RECORD, report=report(1, policy_loss=0.5, entropy=math.nan), evaluation=episodes(9.0))
    )
    sink.close()
    (events,) = tmp_path.glob("events.out.tfevents.*")
    content = events.read_bytes()
    for tag in (
        b"learner/policy_loss",
        b"episodes/recent_return",
        b"evaluation/return",
        b"time/steps_per_second",
    ):
        assert tag in content
    assert b"learner/entropy" not in content
    assert b"episodes/return" not in content
