"""Environments with several agents: both kinds fulfil one protocol, and what breaks it is named."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from typing_extensions import override

from pipeflow.rl.multi_agent.cartpole import MULTI_AGENT_CARTPOLE, MultiAgentCartPole
from pipeflow.rl.multi_agent.environments import (
    CheckedMultiAgentEnvironment,
    MultiAgentEnvironment,
    MultiAgentEnvSpec,
)
from pipeflow.rl.single_environments import BadEnvironment, UnknownEnvironment
from pipeflow.rl.spaces import UnsupportedSpace
from tests.rl.multi_agent.scripted_environments import Frame, Scripted, spec

START = Frame({"a": 1, "b": 101})
SPREAD = MultiAgentEnvSpec("mpe2.simple_spread_v3", {"N": 2, "max_cycles": 3})


def checked(*frames: Frame) -> CheckedMultiAgentEnvironment:
    return CheckedMultiAgentEnvironment(spec((START, *frames)), 0, "Scripted, copy 2")


def converted_spread(**kwargs: Any) -> MultiAgentEnvironment:
    """PettingZoo's other API, in which agents act one after the other, through its own conversion."""
    make: Callable[..., object] = import_module("mpe2.simple_spread_v3").env
    converted: MultiAgentEnvironment = import_module("pettingzoo.utils").aec_to_parallel(make(**kwargs))
    return converted


@pytest.mark.parametrize(
    "env", [SPREAD, MultiAgentEnvSpec(converted_spread, {"N": 2, "max_cycles": 3})], ids=["parallel", "aec"]
)
def test_pettingzoo_fulfils_the_protocol(env: MultiAgentEnvSpec) -> None:
    pytest.importorskip("mpe2")
    its = env.spaces()
    assert list(its) == ["agent_0", "agent_1"]
    assert its["agent_0"].observations.shape == (12,)
    assert its["agent_1"].actions.sizes == (5,)
    environment = CheckedMultiAgentEnvironment(env, 0, "spread")
    for _ in range(2):
        assert list(environment.reset()) == ["agent_0", "agent_1"]
        steps = [environment.step({"agent_0": np.int64(0), "agent_1": np.int64(1)}) for _ in range(3)]
        assert [step.over for step in steps] == [False, False, True]
        assert steps[-1].truncated == {"agent_0", "agent_1"}
        assert list(steps[-1].observations) == ["agent_0", "agent_1"]
    environment.close()


def test_a_description_travels() -> None:
    copy = pickle.loads(pickle.dumps(MultiAgentEnvSpec(MultiAgentCartPole, {"agents": 3})))
    assert list(copy.spaces()) == ["0", "1", "2"]
    assert copy.name == "MultiAgentCartPole"


def test_an_environment_may_be_named() -> None:
    assert isinstance(MultiAgentEnvSpec(MULTI_AGENT_CARTPOLE).make(), MultiAgentCartPole)


def test_every_episode_is_seeded_from_the_one_seed() -> None:
    def seeds(seed: int) -> list[int | None]:
        made: list[Scripted] = []

        def make() -> Scripted:
            made.append(Scripted([START]))
            return made[-1]

        environment = CheckedMultiAgentEnvironment(MultiAgentEnvSpec(make), seed, "here")
        for _ in range(3):
            environment.reset()
        return made[-1].seeds

    assert seeds(1) == seeds(1) != seeds(2)
    assert len(set(seeds(1))) == 3
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds(1))


def test_an_episode_is_over_when_nobody_is_left() -> None:
    environment = checked(
        Frame({"b": 102}, terminated=["a"]),
        Frame({"a": 3, "b": 103}, truncated=["b"]),
        Frame({"a": 4}, terminated=["a"]),
    )
    environment.reset()
    assert [environment.step({}).over for _ in range(3)] == [False, False, True]


def test_an_agent_that_is_both_is_terminated() -> None:
    environment = checked(Frame({"a": 2, "b": 102}, terminated=["a", "b"], truncated=["a", "b"]))
    environment.reset()
    step = environment.step({})
    assert (step.terminated, step.truncated, step.over) == (frozenset({"a", "b"}), frozenset(), True)


class Reusing(Scripted):
    """Overwrites the arrays that it returned."""

    def __init__(self) -> None:
        super().__init__([START, Frame({"a": 2, "b": 102}, terminated=["a", "b"])])
        self._array = np.zeros(1, np.float32)

    @override
    def reset(self, *, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self._array[:] = 1
        return {"a": self._array}, {}

    @override
    def step(self, actions: dict[str, Any], /) -> Any:
        self._array[:] = 2
        return {"a": self._array}, {}, {"a": True}, {}, {}


def test_last_observations_outlive_the_reset() -> None:
    environment = CheckedMultiAgentEnvironment(MultiAgentEnvSpec(Reusing), 0, "here")
    environment.reset()
    step = environment.step({})
    environment.reset()
    assert step.observations["a"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (Frame({"a": 2, "c": 1}), r"observed agent 'c', which is not among possible_agents \['a', 'b'\]"),
        (Frame({"a": 2}, truncated=["b"]), "agent 'b' was truncated without a last observation"),
        (Frame({"a": 2}, {"a": float("nan")}), "the reward of agent 'a' is nan, where one finite number"),
        (Frame({"a": 2}, terminated=["__all__"]), "terminated names '__all__', which is no agent"),
        (Frame({"a": 2}, truncated=["z"]), "truncated names 'z', which is no agent"),
    ],
)
def test_what_breaks_the_protocol_is_named(frame: Frame, words: str) -> None:
    environment = checked(frame)
    environment.reset()
    with pytest.raises(BadEnvironment, match=f"^Scripted, copy 2: .*{words}"):
        environment.step({})


class WrongShape(Scripted):
    """Observes more than its space says."""

    @override
    def step(self, actions: dict[str, Any], /) -> Any:
        return {"a": np.zeros(3, np.float32)}, {}, {}, {}, {}


class FourValues(Scripted):
    """Ends as environments did before terminated and truncated were told apart."""

    @override
    def step(self, actions: dict[str, Any], /) -> Any:
        return {}, {}, {}, {}


class Vanishing(Scripted):
    """Says that nobody is left, but not how they ended."""

    agents: list[str] = []  # noqa: RUF012  # PettingZoo has it on the instance


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (WrongShape, r"the observation of agent 'a' has shape \(3,\) where the space says \(1,\)"),
        (FourValues, "step must return .observations, rewards, terminated, truncated, infos."),
        (Vanishing, "no agents are left, yet 'a' was neither terminated nor truncated"),
    ],
)
def test_results_that_fit_nothing_are_named(make: type[Scripted], words: str) -> None:
    env = MultiAgentEnvSpec(make, {"frames": [START, START]})
    environment = CheckedMultiAgentEnvironment(env, 0, "here")
    environment.reset()
    with pytest.raises(BadEnvironment, match=words):
        environment.step({})


class OneValue(Scripted):
    """Resets as environments did before infos."""

    @override
    def reset(self, *, seed: int | None = None) -> Any:
        return {"a": np.zeros(1, np.float32)}


class NobodyFirst(Scripted):
    """Observes nobody at the reset."""

    @override
    def reset(self, *, seed: int | None = None) -> Any:
        return {}, {}


@pytest.mark.parametrize(
    ("make", "words"), [(OneValue, "reset must return"), (NobodyFirst, "reset observed no agent")]
)
def test_resets_that_fit_nothing_are_named(make: type[Scripted], words: str) -> None:
    env = MultiAgentEnvSpec(make, {"frames": [START]})
    with pytest.raises(BadEnvironment, match=words):
        CheckedMultiAgentEnvironment(env, 0, "here").reset()


@pytest.mark.parametrize("agents", [[], [0, 1]])
def test_an_environment_must_name_its_agents(agents: list[Any]) -> None:
    with pytest.raises(BadEnvironment, match=r"possible_agents is .*, where the names of all agents"):
        spec([START], agents).make()


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("mpe2.simple_spread_v99", "cannot import 'mpe2.simple_spread_v99'"),
        ("math", "'math' has no parallel_env"),
        (f"{MultiAgentCartPole.__module__}:CartPoles", "cartpole' has no CartPoles; name one of"),
    ],
)
def test_modules_without_an_environment_are_named(module: str, words: str) -> None:
    with pytest.raises(UnknownEnvironment, match=words):
        MultiAgentEnvSpec(module).make()


class Texts(Scripted):
    """Acts in words."""

    @override
    def action_space(self, agent: str, /) -> spaces.Space[Any]:
        return spaces.Text(5)


def test_spaces_that_no_policy_is_built_for_are_refused_by_name() -> None:
    its: Mapping[str, Any] = MultiAgentEnvSpec(Texts, {"frames": [START]}).spaces()
    with pytest.raises(UnsupportedSpace, match="Text"):
        _ = its["a"].actions
