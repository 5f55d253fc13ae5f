"""Batches: what concatenation keeps, merges and refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeflow.rl.batches import Advantages, Sequences, Trajectories, merged_moments
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.running_moments import Moments


def trajectories(steps: int, num_envs: int, version: int, scale: float = 1.0) -> Trajectories:
    shape = (steps, num_envs)
    numbers = np.full(shape, version, np.float32)
    valid = np.ones(shape, np.bool_)
    valid[0, 0] = False
    return Trajectories(
        observations=np.full((*shape, 3), version, np.float32),
        actions=np.full(shape, version),
        log_probs=numbers,
        values=numbers,
        next_values=numbers,
        rewards=numbers,
        reward_scale=np.full(num_envs, scale, np.float32),
        terminated=np.zeros(shape, np.bool_),
        truncated=np.zeros(shape, np.bool_),
        valid=valid,
        final_observations=np.full((1, 3), version, np.float32),
        final_rows=np.array([num_envs]),
        last_observations=np.full((num_envs, 3), version, np.float32),
        initial_state=np.zeros((num_envs, 0), np.float32),
        version=version,
        episodes=EpisodeStats(np.array([float(version)]), np.array([steps])),
        observation_moments=Moments.of(np.full((2, 3), float(version))),
    )


def advantages(rows: int, version: int) -> Advantages:
    numbers = np.full(rows, version, np.float32)
    return Advantages(
        observations=np.full((rows, 3), version, np.float32),
        actions=np.full(rows, version),
        log_probs=numbers,
        values=numbers,
        advantages=numbers,
        value_targets=numbers,
        version=version,
        episodes=EpisodeStats(np.array([float(version)]), np.array([rows])),
        return_moments=Moments.of(np.full(rows, float(version))),
    )


def test_trajectories_count_valid_rows_only() -> None:
    assert trajectories(4, 2, version=1).steps == 7


def test_trajectories_join_along_the_environments() -> None:
    joined = Trajectories.concatenate(
        [trajectories(4, 2, version=2, scale=0.5), trajectories(4, 3, version=1)]
    )
    assert joined.observations.shape == (4, 5, 3)
    assert joined.rewards[0].tolist() == [2, 2, 1, 1, 1]
    assert joined.reward_scale.tolist() == [0.5, 0.5, 1, 1, 1]
    assert joined.steps == 7 + 11
    assert joined.version == 1
    assert joined.episodes.returns.tolist() == [2.0, 1.0]
    assert joined.observation_moments is not None
    assert (joined.observation_moments.count, joined.observation_moments.mean[0]) == (4, 1.5)


def test_trajectories_of_different_lengths_do_not_join() -> None:
    with pytest.raises(ValueError, match=r"\[3, 4\] steps cannot stand side by side"):
        Trajectories.concatenate([trajectories(4, 2, version=1), trajectories(3, 2, version=1)])


def test_advantages_join_row_by_row() -> None:
    joined = Advantages.concatenate([advantages(2, version=5), advantages(1, version=4)])
    assert joined.steps == 3
    assert joined.actions.tolist() == [5, 5, 4]
    assert joined.version == 4
    assert joined.episodes.count == 2
    assert joined.return_moments is not None
    assert joined.return_moments.count == 3
    assert joined.observation_moments is None


def test_a_single_item_is_handed_on_without_a_copy() -> None:
    item = advantages(2, version=1)
    assert Advantages.concatenate([item]) is item


@pytest.mark.parametrize("kind", [Trajectories, Advantages])
def test_nothing_cannot_be_joined(kind: type[Trajectories | Advantages]) -> None:
    with pytest.raises(ValueError, match=f"{kind.__name__}.concatenate was given no item"):
        kind.concatenate([])


def test_moments_of_items_without_any_are_none() -> None:
    assert merged_moments([None, None]) is None


def sequences(*lengths: int) -> Sequences:
    states = np.array(lengths, np.float32)[:, None]  # each one's state is its length, to know it by
    return Sequences(np.array(lengths, np.int64), states)


def test_sequences_stand_one_after_the_other() -> None:
    assert sequences(3, 1, 2).starts.tolist() == [0, 3, 4]


def test_taken_sequences_bring_their_rows() -> None:
    taken, rows = sequences(3, 1, 2).take(np.array([2, 0]))
    assert taken.lengths.tolist() == [2, 3]
    assert taken.states[:, 0].tolist() == [2, 3]
    assert rows.tolist() == [4, 5, 0, 1, 2]


def test_sequences_join_with_their_rows() -> None:
    one, other = (
        replace(advantages(sum(lengths), version=0), sequences=sequences(*lengths))
        for lengths in ((3, 1), (2,))
    )
    joined = Advantages.concatenate([one, other]).sequences
    assert joined is not None
    assert joined.lengths.tolist() == [3, 1, 2]
    assert joined.starts.tolist() == [0, 3, 4]
    assert joined.states[:, 0].tolist() == [3, 1, 2]


def test_a_memory_restarts_behind_ends_and_behind_reset_rows() -> None:
    fragment = trajectories(4, 2, version=0)  # its row (0, 0) is not valid
    ends = np.zeros((4, 2), np.bool_)
    ends[1, 1] = ends[3, 0] = True
    for cut in (replace(fragment, terminated=ends), replace(fragment, truncated=ends)):
        assert cut.restarts().tolist() == [[False, False], [True, False], [False, True], [False, False]]
