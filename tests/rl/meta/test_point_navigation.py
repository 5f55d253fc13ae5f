"""Point navigation: rewards and ends by hand, and one behaviour alone and as a vector."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.meta.point_navigation import POINT_NAVIGATION, PointNavigation, PointNavigationVector


def test_a_step_is_a_tenth_of_the_action_and_costs_the_squared_distance_that_is_left() -> None:
    env = PointNavigation(goal_x=0.3, goal_y=-0.4)
    observation, _ = env.reset(seed=0)
    assert observation.tolist() == [0.0, 0.0]
    observation, reward, terminated, truncated, _ = env.step(np.array([1.0, -0.5], np.float32))
    assert observation == pytest.approx([0.1, -0.05])
    assert reward == pytest.approx(-(0.2**2 + 0.35**2))
    assert not terminated
    assert not truncated


def test_actions_are_clipped_to_a_step() -> None:
    env = PointNavigation()
    env.reset()
    assert env.step(np.array([9.0, -9.0], np.float32))[0] == pytest.approx([0.1, -0.1])


def test_an_episode_terminates_at_the_goal_even_in_its_last_step() -> None:
    env = PointNavigation(goal_x=0.1, goal_y=0.0, horizon=1)
    env.reset()
    observation, reward, terminated, truncated, _ = env.step(np.array([1.0, 0.05], np.float32))
    assert observation == pytest.approx([0.1, 0.005])
    assert reward == pytest.approx(-(0.005**2), abs=1e-8)
    assert (terminated, truncated) == (True, False)


def test_an_episode_is_truncated_after_the_horizon_and_the_next_begins_in_the_origin() -> None:
    env = EnvSpec(POINT_NAVIGATION, {"horizon": 2}).make(2, seed=0)
    env.reset()
    actions = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    assert not env.step(actions).truncated.any()
    step = env.step(actions)
    assert step.truncated.all()
    assert not step.terminated.any()
    assert step.final_observations == pytest.approx(np.array([[0.2, 0.0], [0.0, 0.2]]))
    assert step.observations.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert not env.step(actions).truncated.any()


def test_one_point_may_end_while_the_others_go_on() -> None:
    env = EnvSpec(POINT_NAVIGATION, {"goal_x": 0.1, "goal_y": 0.0}).make(2, seed=0)
    env.reset()
    step = env.step(np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32))
    assert step.terminated.tolist() == [True, False]
    assert step.final_indices.tolist() == [0]
    assert step.observations == pytest.approx(np.array([[0.0, 0.0], [-0.1, 0.0]]))


def test_the_id_gives_the_vectorised_points_and_they_walk_as_single_ones_do() -> None:
    kwargs = {"goal_x": 0.2, "goal_y": 0.1, "horizon": 7}
    rng = np.random.default_rng(0)
    vector = EnvSpec(POINT_NAVIGATION, kwargs).make(4, seed=0)
    assert isinstance(vector._env, PointNavigationVector)
    singles = EnvSpec(PointNavigation, kwargs).make(4, seed=0)
    np.testing.assert_array_equal(vector.reset(), singles.reset())
    for _ in range(20):
        actions = rng.normal(size=(4, 2)).astype(np.float32)
        for mine, theirs in zip(vector.step(actions), singles.step(actions), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore:.*A Box observation space:UserWarning")  # the plane has no border
def test_gymnasium_finds_no_fault() -> None:
    check_env(gymnasium.make(POINT_NAVIGATION).unwrapped, skip_render_check=True)


def test_a_horizon_of_no_step_is_refused() -> None:
    with pytest.raises(ValueError, match="horizon must be at least 1, got 0"):
        PointNavigation(horizon=0)
