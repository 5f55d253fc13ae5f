"""When greedy episodes are played during a training, and when they end it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from pipeflow.cli.goal import EPISODES, Goal
from pipeflow.rl.batches import Report, Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.policies import PolicySpec
from pipeflow.tracking.records import Record

ENV = EnvSpec("CartPole-v1")
POLICY = PolicySpec.for_env(ENV, hidden=(8,))
WEIGHTS = Weights(1, POLICY.build(seed=0).parameters_numpy())


def play(weights: Sequence[Weights], episodes: int, seed: int) -> EpisodeStats:
    return evaluate(ENV, POLICY, weights[0], episodes, seed)


def goal(target: float) -> Goal:
    return Goal(target, play, seed=0)


def record(steps: int, *returns: float) -> Record:
    episodes = EpisodeStats(np.array(returns), np.full(len(returns), 10))
    return Record(Report(1, 100, steps, episodes, {}), 0.0, 0.0, len(returns), math.nan)


def test_twenty_training_episodes_that_reach_it_earn_a_try_at_once() -> None:
    hopeful = goal(100.0)
    assert not hopeful.is_due(record(100, *[100.0] * 19), last=False)
    assert hopeful.is_due(record(200, 100.0), last=False)


def test_only_the_latest_twenty_count() -> None:
    assert goal(100.0).is_due(record(100, *[0.0] * 30, *[100.0] * 20), last=False)
    assert not goal(100.0).is_due(record(100, *[100.0] * 30, *[99.0] * 20), last=False)


def test_after_a_try_there_is_none_for_ten_thousand_steps() -> None:
    hopeful = goal(1000.0)
    good = [1000.0] * 20
    assert hopeful.is_due(record(1_000, *good), last=False)
    hopeful.evaluate([WEIGHTS], 1_000)
    assert not hopeful.is_due(record(10_999), last=False)
    assert hopeful.is_due(record(11_000), last=False)


def test_without_promise_there_is_a_try_every_fifty_thousand_steps() -> None:
    hopeful = goal(1000.0)
    assert not hopeful.is_due(record(49_999, 1.0), last=False)
    assert hopeful.is_due(record(50_000, 1.0), last=False)
    hopeful.evaluate([WEIGHTS], 50_000)
    assert not hopeful.is_due(record(99_999), last=False)
    assert hopeful.is_due(record(100_000), last=False)


def test_long_episodes_are_played_less_often() -> None:
    hopeful = goal(1000.0)
    hopeful.load_state({"evaluated_at": 0, "evaluation_steps": 20_000, "latest": []})  # a tenth of 200,000
    assert not hopeful.is_due(record(199_999), last=False)
    assert hopeful.is_due(record(200_000), last=False)


def test_the_last_report_is_always_worth_a_try() -> None:
    assert goal(1000.0).is_due(record(100), last=True)


def test_it_is_reached_by_the_mean_of_the_greedy_episodes() -> None:
    hopeful = goal(math.inf)
    assert not hopeful.reached
    mean = hopeful.evaluate([WEIGHTS], 100).mean_return
    assert not hopeful.reached
    hopeful.target = mean
    assert hopeful.reached


def test_an_evaluation_repeats_itself_for_the_same_weights_and_no_others() -> None:
    first, again = goal(0.0).evaluate([WEIGHTS], 100), goal(0.0).evaluate([WEIGHTS], 200)
    assert first.count == EPISODES
    np.testing.assert_array_equal(first.returns, again.returns)
    later = goal(0.0).evaluate([Weights(2, WEIGHTS.parameters)], 100)
    assert first.returns.tolist() != later.returns.tolist()


@pytest.mark.parametrize("seed", [0, 1])
def test_another_seed_plays_other_episodes(seed: int) -> None:
    found = Goal(0.0, play, seed).evaluate([WEIGHTS], 0).returns.tolist()
    other = Goal(0.0, play, seed + 1).evaluate([WEIGHTS], 0).returns.tolist()
    assert found != other
