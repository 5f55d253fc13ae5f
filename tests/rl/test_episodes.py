"""Episode statistics weigh episodes, and totals survive restarts and restores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeflow.rl.episodes import EpisodeStats, EpisodeTracker, LifetimeCounter, count_steps
from tests.cases import Case
from tests.rl.selected_cases import selected


def stats(*returns: float) -> EpisodeStats:
    return EpisodeStats(np.array(returns), np.ones(len(returns), dtype=np.int64))


def flags(*values: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array(values, dtype=np.bool_)


def test_merged_means_weigh_episodes_not_reports() -> None:
    merged = stats(1.0, 1.0, 1.0).merged(stats(5.0))
    assert merged.count == 4
    assert merged.mean_return == 2.0  # the mean of the reports' means would be 3


def test_the_mean_of_no_episode_is_nan_and_merging_none_is_neutral() -> None:
    none = EpisodeStats.none()
    assert math.isnan(none.mean_return)
    assert math.isnan(none.mean_length)
    assert none.merged(stats(2.0)).mean_return == 2.0
    assert stats(2.0).merged(none).mean_return == 2.0


def test_each_sub_environment_has_its_own_episode() -> None:
    tracker = EpisodeTracker(2)
    valid = flags(1, 1)
    tracker.update(np.array([1.0, 10.0]), flags(0, 0), flags(0, 0), valid)
    tracker.update(np.array([2.0, 20.0]), flags(1, 0), flags(0, 0), valid)
    tracker.update(np.array([4.0, 40.0]), flags(0, 0), flags(0, 1), valid)
    collected = tracker.collect()
    assert collected.returns.tolist() == [3.0, 70.0]
    assert collected.lengths.tolist() == [2, 3]


def test_an_episode_is_collected_once_and_a_running_one_goes_on() -> None:
    tracker = EpisodeTracker(1)
    tracker.update(np.array([1.0]), flags(0), flags(0), flags(1))
    assert tracker.collect().count == 0
    tracker.update(np.array([1.0]), flags(1), flags(0), flags(1))
    assert tracker.collect().returns.tolist() == [2.0]
    assert tracker.collect().count == 0


def test_a_reset_row_is_neither_a_reward_nor_a_step_nor_an_end() -> None:
    tracker = EpisodeTracker(1)
    tracker.update(np.array([7.0]), flags(1), flags(0), flags(0))
    tracker.update(np.array([1.0]), flags(1), flags(0), flags(1))
    collected = tracker.collect()
    assert collected.returns.tolist() == [1.0]
    assert collected.lengths.tolist() == [1]


def test_collected_statistics_do_not_change_as_episodes_go_on() -> None:
    tracker = EpisodeTracker(1)
    tracker.update(np.array([1.0]), flags(1), flags(0), flags(1))
    collected = tracker.collect()
    tracker.update(np.array([5.0]), flags(1), flags(0), flags(1))
    assert collected.returns.tolist() == [1.0]


def test_returns_add_up_in_float64() -> None:
    tracker = EpisodeTracker(1)
    for reward in (2.0**24, 1.0, 1.0):
        tracker.update(np.array([reward], dtype=np.float32), flags(0), flags(0), flags(1))
    tracker.update(np.array([0.0], dtype=np.float32), flags(1), flags(0), flags(1))
    assert tracker.collect().returns.tolist() == [2.0**24 + 2.0]


@pytest.mark.parametrize("case", selected("metrics", "MET-04"))
def test_a_restored_counter_adds_only_the_increment(case: Case) -> None:
    inputs = case["inputs"]
    before = LifetimeCounter()
    before.report("w0", inputs["worker_cumulative_at_checkpoint"])
    assert before.total == inputs["total_at_checkpoint"]
    restored = LifetimeCounter(before.total, before.reported)
    total = restored.report("w0", inputs["worker_cumulative_at_next_report"])
    assert total == restored.total == case["expected"]["total"] != case["wrong_values"]["total"]


@pytest.mark.parametrize("case", selected("metrics", "MET-07"))
def test_a_restarted_worker_counts_from_zero_and_the_total_goes_on(case: Case) -> None:
    counter = LifetimeCounter()
    for incarnation, cumulative in case["inputs"]["reports"]:
        counter.report(incarnation, cumulative)
    assert counter.total == case["expected"]["total"]
    assert counter.total not in case["wrong_values"].values()


def test_a_count_that_goes_down_is_refused_and_changes_nothing() -> None:
    counter = LifetimeCounter()
    counter.report("w0", 150)
    with pytest.raises(ValueError, match="'w0' reported 20 after 150"):
        counter.report("w0", 20)
    assert counter.total == 150
    assert counter.reported == {"w0": 150}


@pytest.mark.parametrize("case", selected("metrics", "MET-05"))
def test_an_environment_step_counts_once_however_many_agents_act(case: Case) -> None:
    counts = count_steps(case["inputs"]["agents_present_per_step"])
    assert counts.env_steps == case["expected"]["env_steps"] != case["wrong_values"]["env_steps"]
    assert counts.agent_steps == case["expected"]["agent_steps"]


def test_a_fragment_counts_as_its_steps_one_by_one() -> None:
    rng = np.random.default_rng(0)
    rewards = rng.integers(-3, 4, (40, 3)).astype(np.float32)
    terminated, truncated = (rng.random((40, 3)) < 0.1 for _ in range(2))
    valid = rng.random((40, 3)) < 0.9
    whole, stepwise = EpisodeTracker(3), EpisodeTracker(3)
    for start, stop in ((0, 15), (15, 40)):
        part = slice(start, stop)
        whole.update(rewards[part], terminated[part], truncated[part], valid[part])
    for row in range(40):
        stepwise.update(rewards[row], terminated[row], truncated[row], valid[row])
    found, expected = whole.collect(), stepwise.collect()
    assert found.count > 10
    assert found.returns.tolist() == expected.returns.tolist()
    assert found.lengths.tolist() == expected.lengths.tolist()
