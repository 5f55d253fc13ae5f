"""Law 22 for every algorithm: from a folder, the reports after it are those of the unbroken run, bit for bit."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typing_extensions import override

from pipeflow import Stream, actors, gather_rounds, sync_weights, take
from pipeflow.algorithms.catalogue import CATALOGUE
from pipeflow.algorithms.dqn import DQNConfig, dqn
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.lowering.run import EngineName
from pipeflow.rl.batches import Advantages, Report
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.state.values import StateValue
from tests.algorithms.compared import assert_identical
from tests.algorithms.small import SMALL, small_plan
from tests.algorithms.test_plans import SYNCHRONOUS


def go_on(
    plan: Stream[Report], checkpoint: Checkpoint | Path, count: int, engine: EngineName
) -> list[Report]:
    with plan.run(engine, resume=checkpoint) as run:
        return list(itertools.islice(run, count))


@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE])
def test_every_algorithm_resumes_twice_in_a_row_in_one_process(name: str, tmp_path: Path) -> None:
    plan = small_plan(name)
    with plan.run() as run:
        whole = list(itertools.islice(run, 6))
    with plan.run() as run:
        assert_identical(list(itertools.islice(run, 2)), whole[:2])
        run.checkpoint(tmp_path / "first")
    with plan.run(resume=tmp_path / "first") as run:
        assert_identical(list(itertools.islice(run, 2)), whole[2:4])
        run.checkpoint(tmp_path / "second")
    # A plan that is written again is the same plan, as it is in another process.
    assert_identical(go_on(small_plan(name), tmp_path / "second", 2, "inline"), whole[4:])


class TrackingLearner(PPOLearner):
    """A user's: a running mean, a slow copy of the network, and no word of a checkpoint."""

    def __init__(self, policy: PolicySpec) -> None:
        super().__init__(policy, minibatch_size=16)
        self._mean_steps = 0.0
        self._slow = copy.deepcopy(self.policy)

    @override
    def update(self, batch: Advantages, /) -> Report:
        report = super().update(batch)
        self._mean_steps += 0.1 * (report.episodes.mean_length - self._mean_steps)
        with torch.no_grad():
            for slow, online in zip(self._slow.parameters(), self.policy.parameters(), strict=True):
                slow.lerp_(online, 0.1)
        total = sum(float(slow.detach().abs().sum()) for slow in self._slow.parameters())
        return replace(report, metrics={"mean_steps": self._mean_steps, "slow": total})


def test_what_a_learner_of_a_users_own_adds_goes_on_too(tmp_path: Path) -> None:
    env = EnvSpec("CartPole-v1")
    policy = PolicySpec.for_env(env, hidden=(4,))
    workers, learner = actors(RolloutWorker, 2, env, policy), actors(TrackingLearner, 1, policy)
    plan = (
        workers.produce(RolloutWorker.sample)
        | gae(0.99, 0.95)
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(TrackingLearner.update)
        | sync_weights(learner, workers)
    )
    with plan.run() as run:
        before = list(itertools.islice(run, 3))
        run.checkpoint(tmp_path / "it")
        after = list(itertools.islice(run, 3))
    assert before[-1].metrics["mean_steps"] > 0
    assert_identical(go_on(plan, tmp_path / "it", 3, "inline"), after)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
@pytest.mark.slow  # the command's own test resumes PPO on Ray, and Ray's start takes seconds for each
@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_a_synchronous_algorithm_resumes_on_ray(name: str, tmp_path: Path) -> None:
    plan = small_plan(name)
    with plan.run() as run:
        whole = list(itertools.islice(run, 4))
    with plan.run("ray") as run:
        assert_identical(list(itertools.islice(run, 2)), whole[:2])
        run.checkpoint(tmp_path / "it")
    assert_identical(go_on(plan, tmp_path / "it", 2, "ray"), whole[2:])


def ppo_plan() -> Stream[Report]:
    config = SMALL["ppo"]
    assert isinstance(config, PPOConfig)
    return ppo(replace(config, normalise_observations=True, normalise_rewards=True))


def dqn_plan() -> Stream[Report]:
    config = SMALL["dqn"]
    assert isinstance(config, DQNConfig)
    return dqn(config)


@pytest.mark.parametrize(
    ("write", "left_out"),
    [
        (ppo_plan, "/generator"),
        (ppo_plan, "/optimizer/"),
        (ppo_plan, "/moments/"),
        (ppo_plan, "/parameters/"),
        (dqn_plan, "/generator"),
    ],
)
def test_a_checkpoint_without_a_part_of_the_state_is_found_out(
    write: Callable[[], Stream[Report]], left_out: str
) -> None:
    plan = write() | take(14)
    with plan.run() as run:
        before = [next(run)]
        earlier = run.checkpoint()
        before += list(itertools.islice(run, 9))
        checkpoint = run.checkpoint()
        after = list(run)
    assert len(before) == 10
    assert_identical(go_on(plan, checkpoint, 4, "inline"), after)
    state: dict[str, StateValue] = {}
    for name, value in checkpoint.state.items():
        found = earlier.state.get(name)
        forgotten = left_out in name and found is not None
        state[name] = found if forgotten and found is not None else value
    changed = [name for name in state if not np.array_equal(state[name], checkpoint.state[name])]
    assert changed, f"no state has {left_out} in its name"
    with pytest.raises(AssertionError):
        assert_identical(go_on(plan, replace(checkpoint, state=state), 4, "inline"), after)
