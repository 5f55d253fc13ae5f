"""IMPALA's learner: what it says of a fragment is what acting said, whatever ended, and it corrects for age."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from pipeflow.rl.batches import Trajectories
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.impala import EvaluatedFragment, IMPALALearner, VTraceSettings
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.recurrent import MemoryKind
from pipeflow.rl.returns import generalized_advantage_estimation
from pipeflow.rl.rollouts import RolloutWorker
from tests.rl.partial_environments import Forbidding
from tests.rl.read_only import read_only
from tests.rl.test_action_masks import ForbiddingSpec
from tests.rl.test_rollouts import Counting, CountingSpec

CPU = torch.device("cpu")
SETTINGS = VTraceSettings(gamma=0.9)
MEMORIES: tuple[MemoryKind, ...] = ("none", "lstm", "gru")

each_memory = pytest.mark.parametrize("memory", MEMORIES)
each_mode = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)


def spec(env: EnvSpec, memory: MemoryKind = "none") -> PolicySpec:
    return PolicySpec.for_env(env, hidden=(8,), memory=memory, memory_size=4)


def sampled(env: EnvSpec, memory: MemoryKind = "none", fragments: int = 2, seed: int = 0) -> Trajectories:
    """The last of several fragments of 7 vector steps: it begins and ends within episodes of 3 steps."""
    worker = RolloutWorker(env, spec(env, memory), num_envs=2, fragment_length=7, index=0, seed=seed)
    for _ in range(fragments - 1):
        worker.sample()
    return read_only(worker.sample())


def learner(env: EnvSpec, memory: MemoryKind = "none", seed: int = 0) -> IMPALALearner:
    return IMPALALearner(spec(env, memory), targets=SETTINGS, lr=1e-2, seed=seed)


@each_mode
@each_memory
@pytest.mark.parametrize("truncate", [True, False])
def test_at_the_same_weights_it_says_what_acting_said(
    mode: AutoresetMode, memory: MemoryKind, truncate: bool
) -> None:
    env = CountingSpec(Counting, mode=mode, truncate=truncate)
    fragment = sampled(env, memory)
    evaluated = EvaluatedFragment.by(learner(env, memory).policy, fragment, CPU)
    valid = fragment.valid
    np.testing.assert_allclose(
        evaluated.log_probs.detach().numpy()[valid], fragment.log_probs[valid], atol=1e-5
    )
    np.testing.assert_allclose(evaluated.values.detach().numpy()[valid], fragment.values[valid], atol=1e-5)
    # Behind a truncation stands the value of the final observation, behind the last row that of what follows.
    read = valid & ~fragment.terminated
    np.testing.assert_allclose(evaluated.next_values[read], fragment.next_values[read], atol=1e-5)


@each_mode
def test_on_policy_its_targets_are_the_sampled_returns(mode: AutoresetMode) -> None:
    env = CountingSpec(Counting, mode=mode)
    fragment = sampled(env)
    targets = SETTINGS.of(fragment, EvaluatedFragment.by(learner(env).policy, fragment, CPU))
    advantages, returns = generalized_advantage_estimation(
        fragment.rewards, fragment.values, fragment.next_values, fragment.terminated, fragment.truncated,
        gamma=0.9, lam=1.0, valid=fragment.valid,
    )  # fmt: skip
    np.testing.assert_allclose(targets.advantages, advantages, atol=1e-5)
    np.testing.assert_allclose(targets.value_targets[fragment.valid], returns[fragment.valid], atol=1e-5)


def test_rewards_are_scaled_as_the_worker_says() -> None:
    env = CountingSpec(Counting)
    fragment = sampled(env)
    evaluated = EvaluatedFragment.by(learner(env).policy, fragment, CPU)
    halved = replace(fragment, reward_scale=np.full(2, 0.5, np.float32))
    same = replace(fragment, rewards=fragment.rewards * np.float32(0.5))
    np.testing.assert_array_equal(
        SETTINGS.of(halved, evaluated).value_targets, SETTINGS.of(same, evaluated).value_targets
    )


@each_memory
def test_the_loss_is_the_papers_with_means_over_the_real_rows(memory: MemoryKind) -> None:
    env = CountingSpec(Counting, mode=AutoresetMode.NEXT_STEP)
    fragment, trained = sampled(env, memory, seed=1), learner(env, memory)
    assert not fragment.valid.all()
    evaluated = EvaluatedFragment.by(trained.policy, fragment, CPU)
    targets, valid = SETTINGS.of(fragment, evaluated), fragment.valid
    log_probs, values = evaluated.log_probs.detach().numpy(), evaluated.values.detach().numpy()
    report = trained.update(fragment)
    assert report.steps == int(valid.sum()) == fragment.steps
    expected = {
        "policy_loss": -(log_probs * targets.advantages)[valid].mean(),
        "value_loss": ((values - targets.value_targets) ** 2)[valid].mean(),
        "entropy": evaluated.entropies.detach().numpy()[valid].mean(),
        "importance_ratio": np.exp(log_probs - fragment.log_probs)[valid].mean(),
    }
    for name, value in expected.items():
        assert report.metrics[name] == pytest.approx(float(value), rel=1e-4, abs=1e-6), name


@each_memory
def test_reset_rows_teach_nothing(memory: MemoryKind) -> None:
    env = CountingSpec(Counting, mode=AutoresetMode.NEXT_STEP)
    fragment = sampled(env, memory)
    other = replace(
        fragment,
        rewards=np.where(fragment.valid, fragment.rewards, 1e6).astype(np.float32),
        log_probs=np.where(fragment.valid, fragment.log_probs, -50.0).astype(np.float32),
        observations=np.where(fragment.valid[..., None], fragment.observations, 77.0).astype(np.float32),
    )
    one, same = learner(env, memory), learner(env, memory)
    one.update(fragment)
    same.update(other)
    for name, array in one.policy.state_dict().items():
        torch.testing.assert_close(same.policy.state_dict()[name], array, rtol=1e-4, atol=1e-6)


def test_the_report_says_how_old_the_weights_were_and_what_happened() -> None:
    env = CountingSpec(Counting)
    fragment, trained = sampled(env), learner(env)
    trained.update(fragment)
    report = trained.update(fragment)
    assert (report.version, report.steps, report.lifetime_steps) == (2, 14, 28)
    assert report.metrics["policy_lag"] == 1
    assert report.metrics["importance_ratio"] != 1.0
    assert report.episodes.returns.tolist() == [3.0] * 4


def test_likelier_actions_than_when_acting_weigh_no_more_than_rho_clip() -> None:
    env = CountingSpec(Counting)
    fragment, policy = sampled(env), learner(env).policy
    evaluated = EvaluatedFragment.by(policy, fragment, CPU)
    rare = replace(fragment, log_probs=fragment.log_probs - np.float32(3.0))
    np.testing.assert_allclose(
        SETTINGS.of(rare, evaluated).advantages,
        SETTINGS.of(fragment, evaluated).advantages,
        rtol=1e-4,
        atol=1e-6,
    )
    wider = VTraceSettings(gamma=0.9, rho_clip=2.0)
    assert not np.allclose(wider.of(rare, evaluated).advantages, wider.of(fragment, evaluated).advantages)


@each_mode
@each_memory
def test_a_mask_that_allows_nothing_at_an_end_is_no_fault(mode: AutoresetMode, memory: MemoryKind) -> None:
    env = ForbiddingSpec(Forbidding, mode=mode)
    fragment = sampled(env, memory)
    evaluated = EvaluatedFragment.by(learner(env, memory).policy, fragment, CPU)
    valid = fragment.valid
    np.testing.assert_allclose(
        evaluated.log_probs.detach().numpy()[valid], fragment.log_probs[valid], atol=1e-5
    )
    report = learner(env, memory).update(fragment)
    assert np.isfinite(report.metrics["grad_norm"])
    assert report.metrics["skipped_updates"] == 0


@each_memory
def test_a_restored_and_a_copied_learner_go_on_bit_for_bit(memory: MemoryKind) -> None:
    env = CountingSpec(Counting)
    first, second = sampled(env, memory, 1), sampled(env, memory, 2)
    trained, restored = learner(env, memory), learner(env, memory, seed=9)
    trained.update(first)
    restored.load_state(trained.state())
    twin = copy.deepcopy(trained)
    last = dict(trained.update(second).metrics)
    assert dict(restored.update(second).metrics) == dict(twin.update(second).metrics) == last
    for name, array in trained.weights().parameters.items():
        np.testing.assert_array_equal(restored.weights().parameters[name], array)


def test_a_fragment_may_be_read_only_and_stays_as_it_was() -> None:
    env = ForbiddingSpec(Forbidding, mode=AutoresetMode.NEXT_STEP)
    fragment = sampled(env)
    before = fragment.observations.copy()
    learner(env).update(fragment)
    np.testing.assert_array_equal(fragment.observations, before)
