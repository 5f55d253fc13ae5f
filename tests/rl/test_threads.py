"""Torch's threads are the actor's while it computes, and the process's own again afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.threads import torch_threads


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_the_setting_is_given_back_also_after_an_error() -> None:
    seen: list[int] = []

    @torch_threads(1)
    def failing() -> None:
        seen.append(torch.get_num_threads())
        raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert seen == [1]
    assert torch.get_num_threads() == 2


def test_no_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"), torch_threads(0):
        pass


def trained(threads: int) -> dict[str, np.ndarray]:
    env = EnvSpec("CartPole-v1")
    policy = PolicySpec.for_env(env)
    torch.set_num_threads(threads)
    learner = PPOLearner(policy, epochs=2, seed=1)
    learner.update(gae()(RolloutWorker(env, policy, seed=1).sample()))
    evaluate(env, policy, learner.weights(), 1, 1)
    assert torch.get_num_threads() == threads
    return {name: np.asarray(array) for name, array in learner.weights().parameters.items()}


@pytest.mark.usefixtures("two_threads")
def test_what_is_learnt_does_not_depend_on_the_threads_of_the_process() -> None:
    one, two = trained(1), trained(2)
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name])
