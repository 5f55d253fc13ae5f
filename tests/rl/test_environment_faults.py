"""No wrong number passes silently: environments that break their contract are named, with the place."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from typing_extensions import override

from pipeflow.rl.environments import BadEnvironment, EnvSpec, EnvStep, VectorEnvironment
from tests.rl.counting_environments import Counting, no_action


class Wrong(Counting):
    """Its second step returns `observation` and `reward`."""

    def __init__(
        self, observation: Any = (0.0, 0.0), reward: Any = 1.0, lengths: tuple[int, ...] = (9,)
    ) -> None:
        super().__init__(lengths)
        self._wrong = observation, reward

    @override
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        if self._step == 2:
            observation, reward = np.array(self._wrong[0], np.float32), self._wrong[1]
        return observation, reward, terminated, truncated, info


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            partial(Wrong, (0.0, np.nan)),
            r"sub-environment 1: the observation holds nan or infinity: \[ *0. nan\]",
        ),
        (partial(Wrong, (np.inf, 0.0)), "sub-environment 1: the observation holds nan or infinity"),
        (partial(Wrong, (np.nan, 0.0), 1.0, (2,)), "sub-environment 1: the observation holds nan"),
        (partial(Wrong, (0.0, 0.0, 0.0)), r"sub-environment 1.*\(3,\) where the space says \(2,\)"),
        (partial(Wrong, (0.0, 0.0), np.nan), "sub-environment 1: the reward is nan"),
        (partial(Wrong, (0.0, 0.0), -np.inf), "sub-environment 1: the reward is -inf"),
        (partial(Wrong, (0.0, 0.0), np.array([1.0, 2.0])), "sub-environment 1.*one number is needed"),
    ],
)
def test_a_wrong_number_stops_the_run_and_names_its_place(wrong: Any, message: str) -> None:
    good = Wrong
    makers = iter([good, wrong, good])
    environment = EnvSpec(lambda: next(makers)()).make(3, 0)
    environment.reset()
    environment.step(no_action(environment))
    with pytest.raises(BadEnvironment, match=message):
        environment.step(no_action(environment))


def test_rewards_of_shape_one_are_numbers() -> None:
    environment = EnvSpec(Wrong, {"reward": np.array([3.0]), "lengths": (2,)}).make(2, 0)
    environment.reset()
    environment.step(no_action(environment))
    step = environment.step(no_action(environment))
    assert step.rewards.tolist() == [3.0, 3.0]
    assert step.rewards.dtype == np.float32


class Scripted(VectorEnv[Any, Any, Any]):
    """Two sub-environments; the step returns what it is given."""

    def __init__(self, mode: object, step: Any = None) -> None:
        self.metadata = {"autoreset_mode": mode}
        self.num_envs = 2
        self.single_observation_space = spaces.Box(-9.0, 9.0, (1,))
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, 2)
        self.action_space = batch_space(self.single_action_space, 2)
        self._step = step

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return np.zeros((2, 1), np.float32), {}

    @override
    def step(self, actions: Any) -> Any:
        return self._step


def scripted(mode: object, *step: Any) -> EnvStep:
    environment = VectorEnvironment(Scripted(mode, step), 0, "Scripted")
    environment.reset()
    return environment.step(no_action(environment))


NO, SECOND = np.array([False, False]), np.array([False, True])
OBSERVED = np.zeros((2, 1))
REWARDS = np.ones(2)


@pytest.mark.parametrize("mode", [None, "sometimes"])
def test_an_environment_that_does_not_say_how_it_resets_is_refused(mode: object) -> None:
    with pytest.raises(BadEnvironment, match="nobody knows what follows the end of an episode"):
        VectorEnvironment(Scripted(mode), 0, "Scripted")


def test_an_autoreset_mode_may_be_given_by_its_value() -> None:
    step = scripted("SameStep", OBSERVED, REWARDS, NO, NO, {})
    assert step.valid.all()


def test_an_end_without_the_final_observation_it_promised_is_refused() -> None:
    with pytest.raises(BadEnvironment, match=r"sub-environments \[1\] ended.*no 'final_obs'"):
        scripted(AutoresetMode.SAME_STEP, OBSERVED, REWARDS, SECOND, NO, {})


def test_final_observations_may_come_as_one_array_whose_other_rows_mean_nothing() -> None:
    finals = np.array([[np.nan], [5.0]])
    step = scripted(AutoresetMode.SAME_STEP, OBSERVED, REWARDS, NO, SECOND, {"final_obs": finals})
    assert step.final_observations.tolist() == [[5.0]]
    assert step.final_indices.tolist() == [1]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ((np.zeros((2, 3)), REWARDS, NO, NO, {}), r"Scripted: the observation is wrong: shape \(3,\)"),
        ((np.zeros((3, 1)), REWARDS, NO, NO, {}), "3 observations came from 2 sub-environments"),
        ((OBSERVED, np.ones(3), NO, NO, {}), r"rewards have shape \(3,\), not \(2,\)"),
        ((OBSERVED, REWARDS, NO[:, None], NO, {}), r"terminated has shape \(2, 1\), not \(2,\)"),
        ((OBSERVED, REWARDS, NO, False, {}), r"truncated has shape \(\), not \(2,\)"),
    ],
)
def test_arrays_of_wrong_shapes_are_refused(step: tuple[Any, ...], message: str) -> None:
    with pytest.raises(BadEnvironment, match=message):
        scripted(AutoresetMode.NEXT_STEP, *step)


def test_a_column_of_rewards_is_accepted() -> None:
    assert scripted(AutoresetMode.NEXT_STEP, OBSERVED, np.ones((2, 1)), NO, NO, {}).rewards.tolist() == [
        1.0,
        1.0,
    ]


def test_a_step_owns_its_arrays() -> None:
    observations, rewards, flags = (
        np.zeros((2, 1), np.float32),
        np.ones(2, np.float32),
        np.array([True, False]),
    )
    step = scripted(AutoresetMode.NEXT_STEP, observations, rewards, flags, flags, {})
    observations[:], rewards[:], flags[:] = 7.0, 7.0, False
    assert step.observations.tolist() == [[0.0], [0.0]]
    assert step.rewards.tolist() == [1.0, 1.0]
    assert step.terminated.tolist() == step.truncated.tolist() == [True, False]


def test_a_reset_row_has_no_reward_and_no_end_whatever_the_environment_says() -> None:
    environment = VectorEnvironment(
        Scripted(AutoresetMode.NEXT_STEP, (OBSERVED, REWARDS, SECOND, SECOND, {})), 0, "Scripted"
    )
    environment.reset()
    environment.step(no_action(environment))
    step = environment.step(no_action(environment))
    assert step.valid.tolist() == [True, False]
    assert step.rewards.tolist() == [1.0, 0.0]
    assert step.terminated.tolist() == step.truncated.tolist() == [False, False]
    assert step.final_indices.tolist() == []
