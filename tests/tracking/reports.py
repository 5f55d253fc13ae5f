"""Reports and records with numbers that can be checked by hand."""

from __future__ import annotations

import numpy as np

from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.tracking import Record


def episodes(*returns: float) -> EpisodeStats:
    return EpisodeStats(np.array(returns), np.full(len(returns), 7))


def report(version: int, *returns: float, **metrics: float) -> Report:
    return Report(version, 100, 100 * version, episodes(*returns), metrics)


RECORD = Record(report(1, 1.0, 4.0, policy_loss=-0.25, updates_done=8), 1.23456, 1234.56, 5, 2.5)
