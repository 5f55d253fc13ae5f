"""Minibatches of epochs as items: every row once an epoch, and nothing counted twice."""

from __future__ import annotations

import numpy as np
import pytest

from pipeflow import from_items, gather_sync
from pipeflow.dsl.sources import from_shards
from pipeflow.rl.batches import Advantages
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.minibatches import Minibatch, minibatch_epochs


def batch(rows: int, start: int = 0) -> Advantages:
    numbers = np.arange(start, start + rows, dtype=np.float32)
    return Advantages(
        observations=numbers[:, None],
        actions=np.zeros(rows, np.int64),
        log_probs=numbers,
        values=numbers,
        advantages=numbers,
        value_targets=numbers,
        version=3,
        episodes=EpisodeStats(np.array([7.0]), np.array([5])),
    )


def split(*batches: Advantages, epochs: int = 2, minibatches: int = 3, seed: int = 0) -> list[Minibatch]:
    return list((from_items(batches) | minibatch_epochs(epochs, minibatches, seed)).run())


def test_every_row_is_in_one_minibatch_of_each_epoch() -> None:
    found = split(batch(8))
    assert [minibatch.steps for minibatch in found] == [3, 3, 2, 3, 3, 2]
    for epoch in (found[:3], found[3:]):
        assert sorted(np.concatenate([m.rows.advantages for m in epoch]).tolist()) == list(range(8))
        for minibatch in epoch:
            np.testing.assert_array_equal(minibatch.rows.observations[:, 0], minibatch.rows.advantages)
            assert minibatch.rows.version == 3
    orders = [np.concatenate([m.rows.advantages for m in epoch]).tolist() for epoch in (found[:3], found[3:])]
    assert orders[0] != orders[1]


def test_steps_and_episodes_of_a_batch_come_with_its_first_minibatch_alone() -> None:
    found = split(batch(4), batch(6))
    assert [m.new_steps for m in found] == [4, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0]
    assert [m.episodes.count for m in found] == [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert all(m.rows.episodes.count == 0 for m in found)


def test_the_number_of_minibatches_does_not_depend_on_the_rows() -> None:
    assert [m.steps for m in split(batch(2), epochs=1, minibatches=4)] == [1, 1, 0, 0]
    assert len(split(batch(100), epochs=1, minibatches=4)) == 4


def test_shards_batches_and_seeds_are_shuffled_by_streams_of_their_own() -> None:
    def orders(seed: int) -> list[list[float]]:
        shards = from_shards([[batch(30), batch(30)], [batch(30), batch(30)]])
        found = (shards | minibatch_epochs(1, 1, seed) | gather_sync()).run()
        return [minibatch.rows.advantages.tolist() for minibatch in found]

    found = orders(0)
    assert len({tuple(order) for order in found}) == 4
    assert orders(0) == found != orders(1)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="epochs and minibatches must be at least 1, got 0 and 3"):
        minibatch_epochs(0, 3, 0)
