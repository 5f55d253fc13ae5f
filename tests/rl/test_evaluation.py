"""Evaluation: exactly so many episodes, none favoured, and nothing of the training touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from pipeflow.dsl import NotReady
from pipeflow.rl.batches import Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.evaluation import Evaluation, Evaluator, evaluate
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.running_moments import Moments
from pipeflow.state.objects import load_object_state, object_state
from tests.cases import Case
from tests.rl.selected_cases import selected

CARTPOLE = EnvSpec("CartPole-v1")
CARTPOLE_POLICY = PolicySpec.for_env(CARTPOLE)


class Uneven(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Each episode is short or long at even odds, and is worth its length."""

    observation_space = spaces.Box(-1.0, 100.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._left = 1 if self.np_random.random() < 0.5 else 20
        return np.zeros(1, np.float32), {}

    @override
    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self._left -= 1
        return np.zeros(1, np.float32), 1.0, False, self._left == 0, {}


class Echo(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One step, worth the action; the observation is always 5."""

    observation_space = spaces.Box(-10.0, 10.0, (1,), np.float32)
    action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        return np.full(1, 5.0, np.float32), {}

    @override
    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        return np.full(1, 5.0, np.float32), float(action[0]), True, False, {}


def identity(policy: PolicySpec) -> Weights:
    """Weights of a linear policy whose most probable action is what it observes."""
    weights = PPOLearner(policy).weights()
    return replace(
        weights,
        parameters={
            **weights.parameters,
            "policy_head.weight": np.ones((1, 1), np.float32),
            "policy_head.bias": np.zeros(1, np.float32),
        },
    )


@pytest.mark.parametrize("case", selected("running_stats", "RMS-04"))
def test_an_evaluation_uses_the_training_statistics_and_leaves_them(case: Case) -> None:
    env = EnvSpec(Echo)
    policy = replace(PolicySpec.for_env(env), hidden=())
    moments = Moments.of(np.array(case["inputs"]["train"])[:, None])
    stats = evaluate(env, policy, replace(identity(policy), observation_moments=moments), episodes=1, seed=0)
    # The reward is the action, and the action is the observation 5 as the policy saw it.
    assert case["inputs"]["eval_obs"] == [5.0]
    np.testing.assert_allclose(stats.returns, case["expected"]["normalised_eval"], rtol=1e-6)
    assert moments.count == case["expected"]["count_after_eval"]


@pytest.mark.parametrize("episodes", [1, 5, 8, 21])
def test_exactly_the_episodes_asked_for_are_played(episodes: int) -> None:
    env = EnvSpec(Uneven)
    policy = PolicySpec.for_env(env)
    stats = evaluate(env, policy, PPOLearner(policy).weights(), episodes, seed=0)
    assert stats.count == episodes
    np.testing.assert_array_equal(stats.returns, stats.lengths)


def test_short_episodes_are_not_favoured() -> None:
    env = EnvSpec(Uneven)
    policy = PolicySpec.for_env(env)
    stats = evaluate(env, policy, PPOLearner(policy).weights(), 400, seed=0)
    # Half the episodes are long; taking the first to end would leave far fewer. Four standard errors.
    assert np.mean(stats.lengths == 20) == pytest.approx(0.5, abs=0.1)


def test_equal_seeds_play_equal_episodes() -> None:
    weights = PPOLearner(CARTPOLE_POLICY).weights()
    one, same = (evaluate(CARTPOLE, CARTPOLE_POLICY, weights, 10, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.returns, same.returns)
    other = evaluate(CARTPOLE, CARTPOLE_POLICY, weights, 10, seed=4)
    assert not np.array_equal(one.returns, other.returns)


def test_no_episode_is_refused() -> None:
    weights = PPOLearner(CARTPOLE_POLICY).weights()
    with pytest.raises(ValueError, match="at least 1 episode, got 0"):
        evaluate(CARTPOLE, CARTPOLE_POLICY, weights, 0, seed=0)


def evaluated(evaluator: Evaluator) -> Evaluation:
    """What the evaluator played; it must have something to play with."""
    found = evaluator.evaluate()
    assert isinstance(found, Evaluation)
    return found


def test_an_evaluator_plays_once_with_the_weights_that_came_last() -> None:
    learner = PPOLearner(CARTPOLE_POLICY)
    evaluator = Evaluator(CARTPOLE, CARTPOLE_POLICY, episodes=3, seed=4)
    assert isinstance(evaluator.evaluate(), NotReady)
    for version in (1, 2):
        evaluator.set_weights(replace(learner.weights(), version=version))
    found = evaluated(evaluator)
    assert found.version == 2
    expected = evaluate(CARTPOLE, CARTPOLE_POLICY, learner.weights(), 3, 4)
    assert found.episodes.returns.tolist() == expected.returns.tolist()
    assert isinstance(evaluator.evaluate(), NotReady)


def test_a_restored_evaluator_plays_with_the_weights_that_waited() -> None:
    saved, restored = (Evaluator(CARTPOLE, CARTPOLE_POLICY, episodes=2) for _ in range(2))
    saved.set_weights(PPOLearner(CARTPOLE_POLICY, seed=3).weights())
    load_object_state(restored, object_state(saved))
    played, again = evaluated(saved).episodes, evaluated(restored).episodes
    assert played.returns.tolist() == again.returns.tolist()
