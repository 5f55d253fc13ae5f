"""Runs that must give the same reports, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pipeflow.rl.batches import Report
from pipeflow.rl.replay_batches import TDReport


def assert_identical(first: Sequence[Report], second: Sequence[Report]) -> None:
    """Both runs gave reports, and as many, with equal counters, metrics, episodes and priorities."""
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        counted = (one.version, one.steps, one.lifetime_steps)
        assert counted == (other.version, other.steps, other.lifetime_steps)
        assert dict(one.metrics) == pytest.approx(dict(other.metrics), rel=0, abs=0, nan_ok=True)
        np.testing.assert_array_equal(one.episodes.returns, other.episodes.returns)
        if isinstance(one, TDReport) and isinstance(other, TDReport):
            assert dict(one.metrics) == dict(other.metrics)  # none of them may be nan
            np.testing.assert_array_equal(one.priorities.indices, other.priorities.indices)
            np.testing.assert_array_equal(one.priorities.priorities, other.priorities.priorities)
