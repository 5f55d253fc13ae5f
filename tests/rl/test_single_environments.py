"""Ids that help when they are wrong, and environments that are told what they do wrong."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from typing_extensions import override

from pipeflow.rl.single_environments import (
    BadEnvironment,
    CheckedEnvironment,
    UnknownEnvironment,
    environment_name,
    make_environment,
    registration,
)


class Scripted(gymnasium.Env[Any, Any]):
    """Returns what it is given: from every reset, and from every step."""

    def __init__(self, reset: Any, step: Any, space: gymnasium.Space[Any] | None = None) -> None:
        self.observation_space = spaces.Box(-9.0, 9.0, (2,)) if space is None else space
        self.action_space = spaces.Discrete(2)
        self._reset, self._step = reset, step

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self._reset

    @override
    def step(self, action: Any) -> Any:
        return self._step


ZEROS = np.zeros(2, np.float32)


def checked(reset: Any = (ZEROS, {}), step: Any = None, space: Any = None) -> CheckedEnvironment:
    return CheckedEnvironment(Scripted(reset, step, space), "Scripted, sub-environment 3")


def test_a_mistyped_id_suggests_the_close_ones_in_one_line() -> None:
    with pytest.raises(
        UnknownEnvironment, match=r"no environment 'cartpol-v1'.*did you mean.*CartPole-v1"
    ) as caught:
        registration("cartpol-v1")
    assert "\n" not in str(caught.value)


def test_an_id_like_no_other_says_how_to_name_a_module() -> None:
    with pytest.raises(UnknownEnvironment, match='"ale_py:ALE/Pong-v5", or pass a class') as caught:
        registration("zzzzzzzz")
    assert "did you mean" not in str(caught.value)


def test_an_id_without_its_version_is_not_guessed() -> None:
    with pytest.raises(UnknownEnvironment, match="CartPole-v1"):
        registration("CartPole")


def test_a_module_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(UnknownEnvironment, match="cannot import 'no_such_module'"):
        registration("no_such_module:Env-v0")


def test_the_module_before_the_colon_is_imported_to_find_the_id() -> None:
    assert registration("gymnasium:CartPole-v1").id == "CartPole-v1"


def test_a_factory_gets_its_keywords() -> None:
    env = make_environment(Scripted, {"reset": 1, "step": 2})
    assert isinstance(env, Scripted)
    assert env.step(0) == 2


def test_a_registered_environment_gets_its_keywords() -> None:
    env = make_environment("FrozenLake-v1", {"map_name": "8x8"})
    assert env.observation_space == spaces.Discrete(64)
    env.close()


def test_a_factory_of_something_else_is_refused() -> None:
    with pytest.raises(BadEnvironment, match=r"dict made an object of type dict, which is no gymnasium\.Env"):
        make_environment(dict, {})  # type: ignore[arg-type]  # what an unchecked caller may pass


def test_messages_name_an_environment_by_id_or_by_class() -> None:
    assert environment_name("CartPole-v1") == "CartPole-v1"
    assert environment_name(Scripted) == "Scripted"


def test_an_environment_of_the_old_api_is_told_so_at_reset() -> None:
    with pytest.raises(BadEnvironment, match=r"Scripted, sub-environment 3: reset returned ndarray"):
        checked(reset=ZEROS).reset()


def test_an_environment_of_the_old_api_is_told_so_at_a_step() -> None:
    with pytest.raises(BadEnvironment, match="step returned 4 values"):
        checked(step=(ZEROS, 0.0, False, {})).step(0)


def test_an_observation_of_a_wrong_shape_is_refused_with_both_shapes() -> None:
    env = checked(step=(np.zeros(3, np.float32), 0.0, False, False, {}))
    with pytest.raises(BadEnvironment, match=r"observation has shape \(3,\) where the space says \(2,\)"):
        env.step(0)


def test_an_observation_of_a_wrong_kind_of_number_is_refused() -> None:
    env = checked(reset=(np.array(0.5), {}), space=spaces.Discrete(3))
    with pytest.raises(BadEnvironment, match="observation has dtype float64 where the space says int64"):
        env.reset()


@pytest.mark.parametrize(
    ("observation", "fault"),
    [
        ({"a": ZEROS}, r"observation is \['a'\] where the space has a dict of \['a', 'b'\]"),
        ({"a": ZEROS, "b": [1]}, r"observation\['b'\] is list where the space has a tuple of 1"),
        ({"a": ZEROS, "b": (ZEROS,)}, r"observation\['b'\]\[0\] has shape \(2,\)"),
    ],
)
def test_a_fault_within_a_composite_observation_is_located(observation: object, fault: str) -> None:
    space = spaces.Dict({"a": spaces.Box(-9.0, 9.0, (2,)), "b": spaces.Tuple((spaces.Discrete(2),))})
    with pytest.raises(BadEnvironment, match=fault):
        checked(reset=(observation, {}), space=space).reset()


@pytest.mark.parametrize("observation", [[0.0, 1.0], np.array([0.0, 1.0]), np.array([0, 1])])
def test_lists_and_other_kinds_of_float_and_int_are_accepted(observation: object) -> None:
    assert checked(reset=(observation, {})).reset()[0] is observation


@pytest.mark.parametrize("reward", [1.0, 1, True, np.float32(1), np.array([1.0]), np.array([[1]])])
def test_any_single_number_is_a_reward(reward: object) -> None:
    result = checked(step=(ZEROS, reward, False, False, {})).step(0)
    assert type(result[1]) in (float, np.float64)
    assert result[1] == 1.0


@pytest.mark.parametrize("reward", [None, "1", np.array([1.0, 2.0]), []])
def test_what_is_no_single_number_is_refused_as_a_reward(reward: object) -> None:
    with pytest.raises(BadEnvironment, match="where one number is needed"):
        checked(step=(ZEROS, reward, False, False, {})).step(0)


@pytest.mark.parametrize(("terminated", "truncated"), [(True, False), (False, True)])
def test_the_last_observation_of_an_episode_is_a_copy(terminated: bool, truncated: bool) -> None:
    observation = ZEROS.copy()
    last = checked(step=(observation, 0.0, terminated, truncated, {})).step(0)[0]
    observation[:] = 5
    assert last.tolist() == [0.0, 0.0]


def test_an_environments_own_error_passes_through() -> None:
    class Broken(Scripted):
        @override
        def step(self, action: Any) -> Any:
            raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        CheckedEnvironment(Broken(None, None), "Broken").step(0)
