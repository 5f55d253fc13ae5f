"""Every way that a vector environment resets gives the same transitions, returns and lengths."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from pipeflow.rl.environments import EnvSpec, VectorEnvironment
from tests.cases import Case
from tests.rl.counting_environments import Counting, Reusing, no_action, play
from tests.rl.selected_cases import selected

Transition: TypeAlias = tuple[list[float], float, bool, bool, list[float]]

MODES = list(AutoresetMode)


def vector(mode: AutoresetMode, *makers: Callable[[], gymnasium.Env[Any, Any]]) -> VectorEnvironment:
    return VectorEnvironment(SyncVectorEnv(makers, autoreset_mode=mode), 0, "Counting")


def transitions(environment: VectorEnvironment, steps: int) -> list[list[Transition]]:
    """By sub-environment: observation, reward, terminated, truncated, true next observation of valid rows."""
    rows: list[list[Transition]] = [[] for _ in range(environment.num_envs)]
    observations = environment.reset()
    for _ in range(steps):
        step = environment.step(no_action(environment))
        following = step.observations.copy()
        following[step.final_indices] = step.final_observations
        for i in np.flatnonzero(step.valid):
            flags = (bool(step.terminated[i]), bool(step.truncated[i]))
            rows[i].append((observations[i].tolist(), float(step.rewards[i]), *flags, following[i].tolist()))
        observations = step.observations
    return rows


@pytest.mark.parametrize("ends", ["terminated", "truncated"])
@pytest.mark.parametrize("mode", MODES)
def test_every_autoreset_mode_gives_the_same_transitions(mode: AutoresetMode, ends: str) -> None:
    rows = transitions(vector(mode, partial(Counting, (3,), ends), partial(Counting, (1, 2), ends)), 12)
    for row, lengths in zip(rows, ([3, 3, 3, 3], [1, 2, 2, 2, 2, 2, 2]), strict=True):
        expected: list[Transition] = []
        for episode, length in enumerate(lengths):
            for t in range(length):
                end = t == length - 1
                flags = (end and ends == "terminated", end and ends == "truncated")
                expected.append(([float(episode), float(t)], 1.0, *flags, [float(episode), float(t + 1)]))
        # A NEXT_STEP environment spends one step in each reset, so it gets less far in as many steps.
        assert len(row) >= 8
        assert row == expected[: len(row)]


@pytest.mark.parametrize("mode", MODES)
def test_every_autoreset_mode_gives_the_same_returns_and_lengths(mode: AutoresetMode) -> None:
    stats, _ = play(vector(mode, partial(Counting, (1, 2, 4))), 10)
    assert stats.returns.tolist()[:3] == [1.0, 2.0, 4.0]
    assert stats.lengths.tolist()[:3] == [1, 2, 4]


@pytest.mark.parametrize("case", selected("episode_stats", "MET-01", "MET-02"))
def test_episode_statistics_are_those_of_the_case(case: Case) -> None:
    inputs, expected, wrong = case["inputs"], case["expected"], case["wrong_values"]
    environment = vector(AutoresetMode[inputs["autoreset"]], partial(Counting, (inputs["episode_length"],)))
    stats, taken = play(environment, inputs["vector_steps"])
    assert stats.lengths.tolist() == expected["lengths"]
    if "returns" in expected:
        assert stats.returns.tolist() == expected["returns"] != wrong["returns"]
    if "reset_rows" in expected:
        assert stats.lengths.tolist() != wrong["lengths"]
        valid = [bool(step.valid[0]) for step in taken]
        assert valid.count(True) == expected["real_env_steps"]
        assert valid.count(False) == expected["reset_rows"]


@pytest.mark.parametrize("case", selected("autoreset", "GAE-08"))
def test_the_row_of_a_reset_is_marked_as_no_data(case: Case) -> None:
    inputs = case["inputs"]
    _, taken = play(
        vector(AutoresetMode[inputs["autoreset"]], partial(Counting, (2, 9))), len(inputs["rewards"])
    )
    assert [float(step.rewards[0]) for step in taken] == inputs["rewards"]
    assert [int(step.terminated[0]) for step in taken] == inputs["terminated"]
    valid_rows = [t for t, step in enumerate(taken) if step.valid[0]]
    assert valid_rows == case["expected"]["valid_rows"]
    assert len(valid_rows) != case["wrong_values"]["number_of_rows_used"]


@pytest.mark.parametrize("mode", MODES)
def test_the_final_observation_is_the_one_before_the_reset(mode: AutoresetMode) -> None:
    environment = vector(mode, partial(Counting, (9,)), partial(Counting, (2,)))
    environment.reset()
    environment.step(no_action(environment))
    step = environment.step(no_action(environment))
    assert step.final_indices.tolist() == [1]
    assert step.final_observations.tolist() == [[0.0, 2.0]]
    assert step.observations[0].tolist() == [0.0, 2.0]


def test_without_an_end_there_is_no_final_observation() -> None:
    environment = vector(AutoresetMode.SAME_STEP, Counting)
    environment.reset()
    step = environment.step(no_action(environment))
    assert step.final_observations.shape == (0, 2)
    assert step.final_indices.tolist() == []


@pytest.mark.parametrize("mode", MODES)
def test_after_a_reset_by_hand_nothing_resets_again(mode: AutoresetMode) -> None:
    environment = vector(mode, partial(Counting, (1, 9)))
    environment.reset()
    environment.step(no_action(environment))
    first = environment.reset()
    step = environment.step(no_action(environment))
    assert step.valid.tolist() == [True]
    assert step.observations[0].tolist() == [first[0, 0], 1.0]


def test_an_environment_that_reuses_its_array_keeps_its_final_observation() -> None:
    environment = EnvSpec(Reusing, {"lengths": (2,)}).make(1, 0)
    first = environment.reset()
    second = environment.step(no_action(environment))
    third = environment.step(no_action(environment))
    assert first.tolist() == [[0.0, 0.0]]
    assert second.observations.tolist() == [[0.0, 1.0]]
    assert third.final_observations.tolist() == [[0.0, 2.0]]
    assert third.observations.tolist() == [[1.0, 0.0]]
