"""States of environments: which can be saved, and that what follows is the same to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray
from typing_extensions import override

from pipeflow.rl.environment_state import (
    UnsavableEnvironment,
    environment_state,
    load_environment_state,
)
from pipeflow.rl.environments import EnvSpec, EnvStep, VectorEnvironment
from pipeflow.rl.image_tasks import GRID_BREAKOUT
from pipeflow.rl.meta.point_navigation import POINT_NAVIGATION
from pipeflow.state.values import StateValue
from tests.rl.counting_environments import Counting, Reusing, no_action
from tests.rl.saved_states import identical, over_disk

SAVED = [
    EnvSpec("CartPole-v1"),
    EnvSpec("CartPole-v1", frame_stack=2),
    EnvSpec("Acrobot-v1", frame_stack=3),
    EnvSpec("MountainCar-v0"),
    EnvSpec("Pendulum-v1"),
    EnvSpec("FrozenLake-v1"),
    EnvSpec("FrozenLake-v1", {"desc": None}),
    EnvSpec("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"),
    EnvSpec("Blackjack-v1"),
    EnvSpec(GRID_BREAKOUT),
    EnvSpec(GRID_BREAKOUT, frame_stack=2),
    EnvSpec(POINT_NAVIGATION),
    EnvSpec(POINT_NAVIGATION, frame_stack=2),
    EnvSpec(Counting),
    EnvSpec(Reusing, frame_stack=2),
]
MUJOCO = [EnvSpec(name) for name in ("Hopper-v5", "Walker2d-v5", "Humanoid-v5", "Ant-v5", "Reacher-v5")]


def actions(env: VectorEnvironment, generator: np.random.Generator) -> NDArray[np.int64 | np.float32]:
    if env.actions.kind == "categorical":
        return generator.integers(env.actions.sizes[0], size=env.num_envs)
    return generator.normal(size=(env.num_envs, *env.actions.shape)).astype(np.float32)


def played(env: VectorEnvironment, steps: int, seed: int) -> list[EnvStep]:
    generator = np.random.default_rng(seed)
    return [env.step(actions(env, generator)) for _ in range(steps)]


@pytest.mark.parametrize(
    "spec", SAVED + MUJOCO, ids=lambda spec: f"{spec.name}-{spec.frame_stack}-{spec.kwargs}"
)
def test_a_loaded_environment_goes_on_as_the_saved_one(spec: EnvSpec, tmp_path: Path) -> None:
    one, other = spec.make(2, seed=3), spec.make(2, seed=4)
    one.reset()
    played(one, 33, seed=0)
    state = one.state()
    assert state["environments_saved"] == 1
    assert other.load_state(over_disk(state, tmp_path))
    # What is on the disk is not what goes on.
    assert identical(played(one, 120, seed=1), played(other, 120, seed=1))
    assert identical(one.state().keys(), other.state().keys())
    assert identical(one.reset(), other.reset())


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_way_to_reset_goes_on_in_the_middle_of_a_reset(mode: AutoresetMode, tmp_path: Path) -> None:
    def made() -> VectorEnvironment:
        makers = [lambda: Counting(lengths=(3, 4)), lambda: Counting(lengths=(2, 5))]
        return VectorEnvironment(SyncVectorEnv(makers, autoreset_mode=mode), 0, "counting")

    for steps in range(5):
        one, other = made(), made()
        one.reset()
        played(one, steps, seed=0)
        assert other.load_state(over_disk(one.state(), tmp_path))
        assert identical(played(one, 12, seed=0), played(other, 12, seed=0))


def test_before_the_first_reset_there_is_nothing_to_go_on_from(tmp_path: Path) -> None:
    spec = EnvSpec("CartPole-v1")
    one, other = spec.make(2, seed=3), spec.make(2, seed=3)
    assert other.load_state(over_disk(one.state(), tmp_path))
    assert identical(one.reset(), other.reset())


def test_a_state_does_not_change_with_what_gave_it() -> None:
    for spec in (EnvSpec("CartPole-v1"), EnvSpec(Reusing, frame_stack=2), MUJOCO[0]):
        env = spec.make(2, seed=3)
        env.reset()
        state = env.state()
        before = {name: np.array(value) for name, value in state.items()}
        played(env, 10, seed=0)
        assert identical(before, {name: np.array(value) for name, value in state.items()})


def test_what_cannot_be_saved_is_named() -> None:
    env = gymnasium.make("LunarLander-v3").unwrapped
    env.reset(seed=0)
    with pytest.raises(
        UnsavableEnvironment, match=r"^LunarLander cannot be saved: env\.world is of type b2World"
    ):
        environment_state(env)


def test_environments_that_cannot_be_saved_start_anew_each_time_with_other_seeds(tmp_path: Path) -> None:
    spec = EnvSpec("LunarLander-v3")
    first = spec.make(2, seed=0)
    observations = [first.reset()]
    env = first
    for _ in range(3):
        state = over_disk(env.state(), tmp_path)
        assert state["environments_saved"] == 0
        env, again = spec.make(2, seed=0), spec.make(2, seed=0)
        assert not env.load_state(state)
        assert not again.load_state(state)
        observations.append(env.reset())
        assert identical(observations[-1], again.reset())
    assert len({array.tobytes() for array in observations}) == 4


def test_a_state_of_another_environment_is_refused() -> None:
    state = EnvSpec("Pendulum-v1").make(2, seed=0).state()
    with pytest.raises(
        ValueError, match=r"does not fit SyncVectorEnv.*make the environment as it was made then"
    ):
        EnvSpec("Pendulum-v1", frame_stack=2).make(2, seed=0).load_state(state)
    with pytest.raises(ValueError, match="does not fit CartPoleVectorEnv"):
        load_environment_state(
            gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point"), {}
        )


class Remembering(Counting):
    """Holds something that no one else could save, and saves it."""

    def __init__(self) -> None:
        super().__init__((4, 3))
        self._held = iter(range(1, 1000))
        self._last = 0

    @override
    def step(self, action: Any) -> Any:
        self._last = next(self._held)
        observation, _, *ends = super().step(action)
        return observation, float(self._last), *ends

    def state(self) -> dict[str, StateValue]:
        return {"last": self._last, "at": np.array([self._episode, self._step])}

    def load_state(self, state: dict[str, Any], /) -> None:
        self._held = iter(range(int(state["last"]) + 1, 1000))
        self._episode, self._step = state["at"].tolist()


def test_an_environment_may_save_itself(tmp_path: Path) -> None:
    spec = EnvSpec(Remembering)
    one, other = spec.make(2, seed=0), spec.make(2, seed=0)
    one.reset()
    played(one, 5, seed=0)
    assert other.load_state(over_disk(one.state(), tmp_path))
    assert other.step(no_action(other)).rewards.tolist() == [6.0, 6.0]
    assert identical(played(one, 7, seed=0)[1:], played(other, 6, seed=0))


class Slotted(gymnasium.Env[Any, Any]):
    """Keeps a number where `vars` does not show it."""

    __slots__ = ("_hidden",)

    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(2)


def test_attributes_that_would_be_missed_are_refused() -> None:
    with pytest.raises(UnsavableEnvironment, match="env is of type Slotted"):
        environment_state(Slotted())


class Holding(gymnasium.Env[Any, Any]):
    """Has an array of another environment's, and lists of what stays as it is."""

    observation_space = spaces.Box(-1.0, 1.0, (3,))
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.all_spaces = {"a": spaces.Discrete(2)}
        self.whole = np.zeros(6)
        self.part = self.whole[2:5]
        self.clock = 0
        self.state = np.zeros(3)


def test_names_that_often_mean_other_things_are_saved_and_views_stay_views() -> None:
    one, other = Holding(), Holding()
    one.part += 1.0
    one.clock, one.state = 7, np.ones(3)
    load_environment_state(other, environment_state(one))
    assert (other.clock, other.state.tolist(), other.whole.tolist()) == (7, [1.0] * 3, [0, 0, 1, 1, 1, 0])
    other.part += 1.0
    assert other.whole.tolist() == [0, 0, 2, 2, 2, 0]
    assert one.whole.tolist() == [0, 0, 1, 1, 1, 0]
    assert list(other.all_spaces) == ["a"]
