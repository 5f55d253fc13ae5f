"""Records of reports, with numbers by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pipeflow.tracking import Recorder
from tests.tracking.reports import RECORD, episodes, report


class Clock:
    """Shows the times that it was given, in turn."""

    def __init__(self, *times: float) -> None:
        self._times = iter(times)

    def __call__(self) -> float:
        return next(self._times)


def test_a_record_counts_from_the_start_of_the_run() -> None:
    recorder = Recorder(Clock(10.0, 12.0, 16.0))
    first, second = recorder.take(report(1, 1.0, 3.0)), recorder.take(report(2, 8.0))
    assert (first.seconds, first.episodes, first.recent_return) == (2.0, 2, 2.0)
    assert (second.seconds, second.episodes, second.recent_return) == (6.0, 3, 4.0)
    assert first.steps_per_second == 50.0
    assert second.steps_per_second == pytest.approx(200 / 6)


def test_the_recent_return_is_the_mean_of_the_last_hundred_episodes() -> None:
    recorder = Recorder(Clock(0.0, 1.0, 2.0))
    recorder.take(report(1, *[1000.0] * 50))
    # 40 old ones, 60 new ones; every episode weighs the same, whichever report it came with.
    record = recorder.take(report(2, *[0.0] * 60))
    assert record.recent_return == 400.0


def test_the_rate_is_that_of_the_last_twenty_reports() -> None:
    # The first report took 100 s, each other one 1 s.
    recorder = Recorder(Clock(0.0, *(99.0 + index for index in range(1, 31))))
    records = [recorder.take(report(version)) for version in range(1, 31)]
    assert records[-1].steps_per_second == 100.0
    assert records[0].steps_per_second == 1.0


def test_without_an_episode_the_return_is_no_number() -> None:
    assert math.isnan(Recorder(Clock(0.0, 1.0)).take(report(1)).recent_return)


def test_the_curves_are_in_sections_and_have_no_nan() -> None:
    shown = replace(
        RECORD, report=report(1, policy_loss=0.5, entropy=math.nan), evaluation=episodes(9.0, 10.0)
    )
    assert shown.curves() == {
        "episodes/recent_return": 2.5,
        "time/steps_per_second": 1234.56,
        "learner/policy_loss": 0.5,
        "evaluation/return": 9.5,
    }
