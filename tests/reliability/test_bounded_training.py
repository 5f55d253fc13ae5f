"""What is counted of a training (episodes, rates, metrics) does not grow with it."""

from __future__ import annotations

from collections import deque
from itertools import islice

import pytest

from pipeflow.algorithms.catalogue import CATALOGUE
from pipeflow.tracking.records import Recorder
from tests.algorithms.small import small_plan
from tests.reliability.gauges import Gauge


def growth(name: str, first: int, last: int) -> int:
    """Blocks that Python holds more after `last` reports than after `first`, when the buffers are full."""
    gauge, recorder = Gauge(first, last), Recorder()
    recorded = small_plan(name).tap(lambda report: recorder.take(report))
    deque(islice(recorded.tap(lambda report: gauge.tick()).run(), last), maxlen=0)
    return gauge.growth


@pytest.mark.parametrize("name", ["ppo"])
def test_a_training_holds_no_more_after_some_reports(name: str) -> None:
    assert growth(name, 40, 160) < 300


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE])
def test_no_training_holds_more_after_many_reports(name: str) -> None:
    assert growth(name, 100, 1_000) < 300
