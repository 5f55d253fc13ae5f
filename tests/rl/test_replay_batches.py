"""Batches of replay: what joins, and how."""

from __future__ import annotations

import numpy as np
import pytest

from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.replay_batches import Samples, Transitions


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


def test_samples_count_their_rows() -> None:
    rows = transitions(3, 3)
    samples = Samples(
        rows.observations,
        rows.actions,
        rows.rewards,
        rows.next_observations,
        rows.terminated,
        rows.discounts,
        indices=np.arange(3),
        generations=np.arange(3),
        weights=np.ones(3, np.float32),
        new_env_steps=10,
    )
    assert (samples.steps, samples.episodes.count) == (3, 0)
