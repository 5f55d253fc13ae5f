"""Fragments between workers and learner: which are replayed, what a replayed one still holds, and joining."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeflow import from_items
from pipeflow.rl.batches import Trajectories
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.fragments import Aggregator, ReplayMixing, mix_in_replay
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.running_moments import Moments

CARTPOLE = EnvSpec("CartPole-v1")


def fragments(count: int) -> list[Trajectories]:
    """Consecutive fragments of one worker, told apart by their versions from 0."""
    worker = RolloutWorker(
        CARTPOLE, PolicySpec.for_env(CARTPOLE, hidden=(4,)), num_envs=2, fragment_length=4, index=0
    )
    episodes = EpisodeStats(np.array([9.0]), np.array([9]))
    moments = Moments.of(np.zeros((8, 4)))
    return [
        replace(worker.sample(), version=version, episodes=episodes, observation_moments=moments)
        for version in range(count)
    ]


def versions(share: float, capacity: int, count: int, seed: int = 0) -> list[int]:
    plan = from_items(fragments(count)) | mix_in_replay(share, capacity=capacity, seed=seed)
    return [fragment.version for fragment in plan.run()]


def test_without_a_share_nothing_is_mixed_in() -> None:
    assert versions(0.0, 4, 5) == [0, 1, 2, 3, 4]


def test_behind_each_new_fragment_comes_its_share_of_older_ones() -> None:
    mixed = versions(1.0, 1, 4)
    assert mixed == [0, 1, 0, 2, 1, 3, 2]
    halves = versions(0.5, 1, 5)
    assert halves == [0, 1, 0, 2, 3, 2, 4]


def test_only_the_latest_are_kept_and_the_newest_is_not_replayed_at_once() -> None:
    mixed = versions(3.0, 2, 30)
    newest = -1
    for version in mixed:
        if version == newest + 1:
            newest = version
        else:
            assert newest - 2 <= version < newest
    assert len(mixed) == 30 + 3 * 29


def test_which_are_replayed_depends_on_the_seed_alone() -> None:
    assert versions(2.0, 8, 20, seed=1) == versions(2.0, 8, 20, seed=1)
    assert versions(2.0, 8, 20, seed=1) != versions(2.0, 8, 20, seed=2)


def test_a_replayed_fragment_has_the_same_steps_and_no_statistics() -> None:
    first, second = fragments(2)
    mixing = ReplayMixing(1.0, 4, seed=0)
    assert list(mixing.push(first)) == [first]
    new, old = mixing.push(second)
    assert new is second
    assert old.observations is first.observations
    assert (old.steps, old.version) == (first.steps, first.version)
    assert old.episodes.count == 0
    assert old.observation_moments is None
    assert list(mixing.finish()) == []


@pytest.mark.parametrize(("share", "capacity"), [(-1.0, 4), (1.0, 0)])
def test_a_share_that_cannot_be_is_refused(share: float, capacity: int) -> None:
    with pytest.raises(ValueError, match="a share of at least 0 and a capacity of at least 1"):
        mix_in_replay(share, capacity=capacity, seed=0)


def test_an_aggregator_joins_fragments_side_by_side() -> None:
    first, second = fragments(2)
    joined = Aggregator().concatenate([second, first])
    assert joined.rewards.shape == (4, 4)
    assert joined.version == 0
    np.testing.assert_array_equal(joined.observations[:, 2:], first.observations)
