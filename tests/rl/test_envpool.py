"""EnvPool's vectors mean what gymnasium's single environments mean, ends and resets included."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from numpy.typing import NDArray

from pipeflow.rl.environments import BadEnvironment, EnvSpec, UnknownEnvironment

pytest.importorskip("envpool", reason="EnvPool is not installed: pip install 'pipeflow[envpool]'")
pytestmark = pytest.mark.slow  # where EnvPool is installed, which takes hundreds of megabytes

CARTPOLE = "pipeflow.rl.envpool:EnvPool/CartPole-v1"
STEPS = 60


def following(state: NDArray[np.float32], action: int) -> tuple[NDArray[np.float32], bool]:
    """What gymnasium's CartPole makes of a state and an action."""
    reference = CartPoleEnv()
    reference.reset()
    reference.state = state.astype(np.float64)
    env: gymnasium.Env[NDArray[np.float32], int | NDArray[Any]] = reference
    observation, _, terminated, _, _ = env.step(action)
    return observation, terminated


def test_every_transition_is_the_one_of_gymnasium_and_a_reset_is_no_transition() -> None:
    environment = EnvSpec(CARTPOLE, {"num_threads": 1}).make(3, 1)
    observations = environment.reset()
    ended = np.zeros(3, np.bool_)
    episodes = 0
    for t in range(STEPS):
        actions = np.array([1, t % 2, 0])
        step = environment.step(actions)
        true_next = step.observations.copy()
        true_next[step.final_indices] = step.final_observations
        assert step.valid.tolist() == (~ended).tolist()
        for i in range(3):
            if ended[i]:  # the step after an end only resets, whatever the action
                assert np.abs(step.observations[i]).max() <= 0.05
                assert (step.rewards[i], step.terminated[i], step.truncated[i]) == (0.0, False, False)
            else:
                expected, terminated = following(observations[i], int(actions[i]))
                np.testing.assert_allclose(true_next[i], expected, atol=1e-5)
                assert (step.rewards[i], step.terminated[i]) == (1.0, terminated)
        ended = step.terminated | step.truncated
        assert step.final_indices.tolist() == np.flatnonzero(ended).tolist()
        episodes += len(step.final_indices)
        observations = step.observations
    environment.close()
    assert episodes >= 10


def test_a_time_limit_truncates_and_the_true_last_observation_is_kept() -> None:
    environment = EnvSpec(CARTPOLE, {"max_episode_steps": 2}).make(2, 1)
    environment.reset()
    first = environment.step(np.array([0, 1]))
    last = environment.step(np.array([0, 1]))
    assert (first.truncated.tolist(), last.truncated.tolist()) == ([False, False], [True, True])
    assert not last.terminated.any()
    for i in range(2):
        np.testing.assert_allclose(
            last.final_observations[i], following(first.observations[i], i)[0], atol=1e-5
        )
    environment.close()


def test_the_seed_decides_every_observation_and_environments_differ() -> None:
    firsts = [EnvSpec(CARTPOLE).make(2, seed).reset() for seed in (1, 1, 2)]
    np.testing.assert_array_equal(firsts[0], firsts[1])
    assert not np.array_equal(firsts[0], firsts[2])
    assert not np.array_equal(firsts[0][0], firsts[0][1])


def test_spaces_are_those_of_one_environment_and_options_are_keywords() -> None:
    observations, actions = EnvSpec("pipeflow.rl.envpool:EnvPool/Pong-v5", {"stack_num": 2}).spaces()
    assert observations.shape == (2, 84, 84)
    assert str(actions) == "Discrete(6)"


def test_a_wrong_option_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"CartPole-v1: .*'num_thread'; its options are .*num_threads"):
        EnvSpec(CARTPOLE, {"num_thread": 1}).make(1, 0)


def test_frames_are_not_stacked_by_pipeflow() -> None:
    with pytest.raises(
        BadEnvironment, match="exists only as a vector of environments, which stacks no frames"
    ):
        EnvSpec(CARTPOLE, frame_stack=2).make(1, 0)


def test_an_unknown_task_is_refused_with_the_names_that_are_close() -> None:
    with pytest.raises(UnknownEnvironment, match="did you mean EnvPool/Pong-v5"):
        EnvSpec("pipeflow.rl.envpool:EnvPool/Pog-v5").spaces()


def test_without_envpool_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)
    monkeypatch.delitem(sys.modules, "pipeflow.rl.envpool", raising=False)
    with pytest.raises(UnknownEnvironment, match=r"pip install 'pipeflow\[envpool\]'"):
        EnvSpec(CARTPOLE).spaces()
