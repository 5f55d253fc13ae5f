"""Epsilon-greedy choice, and the worker that acts with it."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.exploration import (
    EpsilonGreedyFragment,
    EpsilonGreedyWorker,
    EpsilonLadder,
    epsilon_greedy,
)
from pipeflow.rl.schedules import Linear, Schedule
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.spaces import action_codec, observation_codec
from tests.cases import Case
from tests.rl.selected_cases import selected

ENV = EnvSpec("CartPole-v1")
SPEC = ActionValueSpec.for_env(ENV, hidden=(8,))


def worker(
    epsilon: float | Schedule | EpsilonLadder, *, num_envs: int = 4, index: int = 0
) -> EpsilonGreedyWorker:
    return EpsilonGreedyWorker(
        ENV, SPEC, epsilon=epsilon, num_envs=num_envs, fragment_length=5, seed=1, index=index
    )


def test_without_epsilon_the_greedy_action_is_taken_for_certain() -> None:
    greedy = np.array([0, 2, 1])
    actions, log_probs = epsilon_greedy(greedy, np.ones((3, 3), np.bool_), 0.0, np.random.default_rng(0))
    assert actions.tolist() == greedy.tolist()
    assert log_probs.tolist() == [0.0] * 3


def test_with_epsilon_1_all_allowed_actions_are_alike() -> None:
    count = 30_000
    allowed = np.tile(np.array([True, False, True, True]), (count, 1))
    actions, log_probs = epsilon_greedy(np.zeros(count, np.int64), allowed, 1.0, np.random.default_rng(0))
    assert np.bincount(actions, minlength=4) / count == pytest.approx([1 / 3, 0.0, 1 / 3, 1 / 3], abs=0.01)
    assert np.exp(log_probs) == pytest.approx(np.full(count, 1 / 3))


def test_log_probabilities_are_of_the_mixture() -> None:
    count = 30_000
    allowed = np.tile(np.array([True, True, False]), (count, 1))
    actions, log_probs = epsilon_greedy(np.ones(count, np.int64), allowed, 0.2, np.random.default_rng(0))
    assert np.bincount(actions, minlength=3) / count == pytest.approx([0.1, 0.9, 0.0], abs=0.01)
    assert np.exp(log_probs) == pytest.approx(np.where(actions == 1, 0.9, 0.1), abs=1e-6)


def test_every_row_has_a_rate_of_its_own() -> None:
    greedy = np.zeros(2000, np.int64)
    rates = np.repeat([0.0, 1.0], 1000)
    actions, _ = epsilon_greedy(greedy, np.ones((2000, 2), np.bool_), rates, np.random.default_rng(0))
    assert not actions[:1000].any()
    assert actions[1000:].mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("case", selected("schedule", "SCH-07"))
def test_sch_07_every_worker_has_a_rate_of_its_own(case: Case) -> None:
    inputs = case["inputs"]
    ladder = EpsilonLadder(inputs["num_workers"], inputs["base"], inputs["alpha"])
    expected = case["expected"]["epsilons"]
    found = [worker(ladder, num_envs=1, index=index).epsilon for index in range(inputs["num_workers"])]
    assert np.concatenate(found).tolist() == pytest.approx(expected, abs=case["tolerance"])
    # The same rates where few workers have many environments.
    wide = [EpsilonLadder(2, inputs["base"], inputs["alpha"]).rates(index, 4) for index in range(2)]
    assert np.concatenate(wide).tolist() == pytest.approx(expected, abs=case["tolerance"])


def test_a_worker_that_never_explores_takes_the_networks_best_actions() -> None:
    trajectories = worker(0.0).sample()
    network = SPEC.build(derive_seed(1, "policy"))
    state = np.zeros((4, 0), np.float32)
    for observations, actions in zip(trajectories.observations, trajectories.actions, strict=True):
        np.testing.assert_array_equal(actions, network.greedy(observations, state)[0])
    assert not trajectories.log_probs.any()


def test_the_schedule_goes_by_the_workers_own_steps() -> None:
    acting = worker(Linear(1.0, 0.0, 40))
    assert acting.epsilon == 1.0
    assert acting.sample().steps == 20
    assert acting.epsilon == 0.5
    acting.sample()
    assert acting.epsilon == 0.0


def test_log_probs_of_a_fragment_are_of_the_rate_in_force() -> None:
    trajectories = worker(0.5).sample()
    assert set(np.exp(trajectories.log_probs).round(6).ravel().tolist()) == {0.25, 0.75}


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_a_fragment_keeps_to_its_masks_and_its_rate(epsilon: float) -> None:
    steps, rows = 200, 50
    space = spaces.Dict({"action_mask": spaces.MultiBinary(3), "seen": spaces.Box(-1.0, 1.0, (2,))})
    spec = ActionValueSpec(observation_codec(space), action_codec(spaces.Discrete(3)), hidden=(4,))
    mask = spec.observations.mask
    assert mask is not None
    network, generator = spec.build(seed=0), np.random.default_rng(0)
    observations = generator.normal(size=(steps, rows, 5)).astype(np.float32)
    observations[..., mask] = [1.0, 0.0, 1.0]
    fragment = EpsilonGreedyFragment(
        network, spec, epsilon, steps=steps, num_envs=rows, generator=np.random.default_rng(1)
    )
    actions = np.stack([fragment.act(each) for each in observations])
    state = np.zeros((rows, 0), np.float32)
    greedy = np.stack([network.greedy(each, state)[0] for each in observations])
    assert set(actions.ravel().tolist()) <= {0, 2}
    assert (actions != greedy).mean() == pytest.approx(epsilon / 2, abs=0.015)
    probabilities = np.where(actions == greedy, 1.0 - epsilon / 2, epsilon / 2)
    np.testing.assert_allclose(np.exp(fragment.log_probs(actions)), probabilities, rtol=1e-5)


def test_an_index_of_no_worker_is_refused() -> None:
    with pytest.raises(ValueError, match="is not one of 8 workers"):
        worker(EpsilonLadder(2), index=2)
