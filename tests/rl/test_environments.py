"""Making environments from a description: which implementation, which seeds, which frames, which actions."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from numpy.typing import NDArray
from typing_extensions import override

from pipeflow.rl.environments import EnvSpec, UnknownEnvironment
from pipeflow.rl.spaces import UnsupportedSpace
from tests.cases import Case
from tests.rl.counting_environments import Counting, no_action, play
from tests.rl.selected_cases import selected


def test_the_environments_own_vector_implementation_is_used_where_there_is_one() -> None:
    environment = EnvSpec("CartPole-v1").make(4, 0)
    assert type(environment._env.unwrapped).__name__ == "CartPoleVectorEnv"
    environment.close()


def test_a_few_environments_are_stepped_one_by_one_which_is_faster() -> None:
    environment = EnvSpec("CartPole-v1").make(3, 0)
    assert isinstance(environment._env, SyncVectorEnv)
    environment.close()


def test_own_vector_and_single_environments_agree_on_lengths_and_flags() -> None:
    own = EnvSpec("CartPole-v1", {"max_episode_steps": 5}).make(4, 0)
    singles = EnvSpec(partial(gymnasium.make, "CartPole-v1", max_episode_steps=5)).make(4, 0)
    for environment in (own, singles):
        stats, taken = play(environment, 12)
        assert set(stats.lengths.tolist()) == {5}
        assert any(step.truncated.any() for step in taken)
        assert not any(step.terminated.any() for step in taken)
        environment.close()


def test_a_keyword_that_only_the_single_environment_knows_makes_single_environments() -> None:
    # gymnasium.make itself takes the keyword; the vector implementation does not.
    environment = EnvSpec("CartPole-v1", {"disable_env_checker": True}).make(4, 0)
    assert isinstance(environment._env, SyncVectorEnv)
    environment.close()


def test_an_unknown_id_is_refused_by_spaces_and_by_make() -> None:
    spec = EnvSpec("CartPool-v1")
    with pytest.raises(UnknownEnvironment, match="CartPole-v1"):
        spec.spaces()
    with pytest.raises(UnknownEnvironment, match="CartPole-v1"):
        spec.make(1, 0)


def test_spaces_are_those_of_one_environment() -> None:
    observation_space, action_space = EnvSpec(Counting).spaces()
    assert observation_space == spaces.Box(0.0, 1e6, (2,))
    assert action_space == spaces.Discrete(2)


def test_a_space_without_a_policy_is_refused_when_the_environment_is_made() -> None:
    class Talking(Counting):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = spaces.Text(3)

    with pytest.raises(UnsupportedSpace, match="Text"):
        EnvSpec(Talking).make(1, 0)


def test_a_spec_travels_between_processes() -> None:
    spec = EnvSpec(Counting, {"lengths": (2,)}, frame_stack=2)
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize("num_envs", [0, -1])
def test_fewer_than_one_sub_environment_is_refused(num_envs: int) -> None:
    with pytest.raises(ValueError, match=f"num_envs must be at least 1, got {num_envs}"):
        EnvSpec(Counting).make(num_envs, 0)


def test_a_stack_of_no_frames_is_refused() -> None:
    with pytest.raises(ValueError, match="frame_stack must be at least 1, got 0"):
        EnvSpec(Counting, frame_stack=0)


class Replayed(gymnasium.Env[Any, Any]):
    """Observes the numbers of `events`, one a call, in one reused array; ends before the next reset."""

    def __init__(self, events: list[tuple[str, float]]) -> None:
        self.observation_space = spaces.Box(0.0, 99.0, (1,))
        self.action_space = spaces.Discrete(2)
        self._events, self._next = events, 0
        self._array = np.zeros(1, np.float32)

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self._observe("reset"), {}

    @override
    def step(self, action: Any) -> Any:
        observation = self._observe("step")
        ended = self._next < len(self._events) and self._events[self._next][0] == "reset"
        return observation, 0.0, ended, False, {}

    def _observe(self, call: str) -> Any:
        expected, value = self._events[self._next]
        assert call == expected
        self._next += 1
        self._array[:] = value
        return self._array


@pytest.mark.parametrize("case", selected("spaces", "SPC-05"))
def test_a_frame_stack_holds_one_episodes_frames_only(case: Case) -> None:
    inputs = case["inputs"]
    environment = EnvSpec(Replayed, {"events": inputs["events"]}, frame_stack=inputs["stack"]).make(1, 0)
    seen = [environment.reset()]
    for event, _ in inputs["events"]:
        if event == "step":
            step = environment.step(no_action(environment))
            seen += (
                [step.final_observations, step.observations]
                if len(step.final_indices)
                else [step.observations]
            )
    assert [stack.reshape(-1).tolist() for stack in seen] == case["expected"]["stacks"]


class Noise(Counting):
    """Observes random numbers."""

    @override
    def _observation(self) -> Any:
        return self.np_random.random(2, dtype=np.float32)


@pytest.mark.parametrize("spec", [EnvSpec(Noise), EnvSpec("CartPole-v1")])
def test_a_run_is_repeated_by_its_seed_and_by_no_other(spec: EnvSpec) -> None:
    def observed(seed: int) -> list[Any]:
        environment = spec.make(2, seed)
        return [environment.reset().tolist()] + [
            environment.step(no_action(environment)).observations.tolist() for _ in range(12)
        ]

    assert observed(7) == observed(7)
    assert observed(7) != observed(8)


@pytest.mark.parametrize("spec", [EnvSpec(Noise), EnvSpec("CartPole-v1")])
def test_sub_environments_have_streams_of_their_own(spec: EnvSpec) -> None:
    # Also between neighbouring seeds, where seeds of seed, seed + 1, ... would overlap.
    first = np.concatenate([spec.make(4, seed).reset() for seed in range(3)])
    assert len(np.unique(first, axis=0)) == 12


def test_a_second_reset_goes_on_with_the_streams() -> None:
    environment = EnvSpec(Noise).make(1, 0)
    assert environment.reset().tolist() != environment.reset().tolist()


class Echo(gymnasium.Env[Any, Any]):
    """Refuses an action that is not in its space, and observes the action."""

    def __init__(self, action_space: gymnasium.Space[Any]) -> None:
        self.action_space = action_space
        self.observation_space = spaces.Box(-99.0, 99.0, (1,))

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return np.zeros(1, np.float32), {}

    @override
    def step(self, action: Any) -> Any:
        assert action in self.action_space
        return np.array([action], np.float32).reshape(1), 0.0, False, False, {}


@pytest.mark.parametrize(
    ("space", "network", "received"),
    [
        (spaces.Discrete(3, start=-1), np.array([0, 2]), [[-1.0], [1.0]]),
        (spaces.Box(-1.0, 1.0, (1,)), np.array([[1.7], [0.5]], np.float32), [[1.0], [0.5]]),
    ],
)
def test_the_environment_receives_actions_of_its_own_space(
    space: gymnasium.Space[Any], network: NDArray[Any], received: list[list[float]]
) -> None:
    environment = EnvSpec(Echo, {"action_space": space}).make(2, 0)
    environment.reset()
    assert environment.step(network).observations.tolist() == received


@pytest.mark.parametrize(
    "space",
    [
        spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
        spaces.MultiBinary(3),
        spaces.Dict({"a": spaces.Discrete(3, start=1), "b": spaces.Tuple((spaces.MultiDiscrete([2, 2]),))}),
    ],
)
def test_composite_actions_reach_single_environments_as_members_of_their_space(
    space: gymnasium.Space[Any],
) -> None:
    class Member(Echo):
        @override
        def step(self, action: Any) -> Any:
            assert action in self.action_space
            return np.zeros(1, np.float32), 0.0, False, False, {}

    environment = EnvSpec(Member, {"action_space": space}).make(2, 0)
    environment.reset()
    environment.step(np.ones((2, *environment.actions.shape), np.int64))
