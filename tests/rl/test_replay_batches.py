"""Batches of replay: what joins, and how."""

from __future__ import annotations

import numpy as np
import pytest

from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.replay_batches import Samples, TDReport, Transitions


def transitions(rows: int, env_steps: int, episodes: int = 0) -> Transitions:
    return Transitions(
        observations=np.full((rows, 3), rows, np.float32),
        actions=np.full(rows, rows),
        rewards=np.full(rows, rows, np.float32),
        next_observations=np.full((rows, 3), rows, np.float32),
        terminated=np.ones(rows, np.bool_),
        discounts=np.full(rows, 0.99, np.float32),
        env_steps=env_steps,
        episodes=EpisodeStats(np.full(episodes, float(rows)), np.full(episodes, rows)),
    )


def test_transitions_join_row_by_row_and_their_steps_add_up() -> None:
    joined = Transitions.concatenate([transitions(1, 1, episodes=1), transitions(4, 2), transitions(2, 2)])
    assert joined.actions.tolist() == [1, 4, 4, 4, 4, 2, 2]
    assert joined.observations.shape == joined.next_observations.shape == (7, 3)
    assert (joined.steps, joined.env_steps, joined.episodes.count) == (7, 5, 1)


def test_nothing_cannot_be_joined() -> None:
    with pytest.raises(ValueError, match=r"Transitions\.concatenate was given no item"):
        Transitions.concatenate([])


def samples(rows: int) -> Samples:
    stored = transitions(rows, rows)
    return Samples(
        stored.observations,
        stored.actions,
        stored.rewards,
        stored.next_observations,
        stored.terminated,
        stored.discounts,
        indices=np.arange(rows),
        generations=np.arange(rows) + 5,
        weights=np.ones(rows, np.float32),
        new_env_steps=10,
    )


def test_samples_count_their_rows() -> None:
    assert (samples(3).steps, samples(3).episodes.count) == (3, 0)


def test_a_report_with_errors_names_the_rows_and_keeps_the_rest() -> None:
    report = Report(2, 3, 40, EpisodeStats.none(), {"loss": 0.5})
    told = TDReport.of(report, samples(3), np.array([-1.5, 0.0, 2.0], np.float32))
    assert (told.version, told.steps, told.lifetime_steps, told.metrics) == (2, 3, 40, {"loss": 0.5})
    assert told.episodes is report.episodes
    priorities = told.priorities
    assert (priorities.indices.tolist(), priorities.generations.tolist()) == ([0, 1, 2], [5, 6, 7])
    assert priorities.priorities.tolist() == [1.5, 0.0, 2.0]
    assert priorities.priorities.dtype == np.float64
