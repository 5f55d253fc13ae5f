"""The learner's guards, snapshots and state."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from pipeflow.rl.batches import Advantages
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.learners.learner import Learner, clipped_step, flatten_parameters
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.replay_batches import Samples
from pipeflow.rl.running_moments import Moments
from pipeflow.rl.schedules import Linear
from pipeflow.rl.spaces import action_codec, observation_codec
from tests.cases import Case, cases
from tests.rl.read_only import read_only

SPEC = PolicySpec(
    observation_codec(spaces.Box(-1.0, 1.0, (3,), np.float32)), action_codec(spaces.Discrete(2)), hidden=(8,)
)


def batch(seed: int, rows: int = 64, version: int = 0) -> Advantages:
    """Random rows that a uniform policy might have acted out."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(rows, 3)).astype(np.float32)
    values, advantages, value_targets = rng.normal(size=(3, rows)).astype(np.float32)
    return read_only(
        Advantages(
            observations=observations,
            actions=rng.integers(0, 2, rows),
            log_probs=np.full(rows, math.log(0.5), np.float32),
            values=values,
            advantages=advantages,
            value_targets=value_targets,
            version=version,
            observation_moments=Moments.of(observations),
            return_moments=Moments.of(values),
        )
    )


def learner(seed: int = 0) -> PPOLearner:
    return PPOLearner(SPEC, lr=Linear(1e-2, 0.0, 1000), minibatch_size=32, epochs=2, seed=seed)


def assert_equal_parameters(one: Learner, other: Learner) -> None:
    theirs = other.weights().parameters
    for name, array in one.weights().parameters.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


@pytest.mark.parametrize("case", cases("nan_guard"))
def test_a_gradient_that_is_not_finite_changes_nothing(case: Case) -> None:
    inputs = case["inputs"]
    parameter = nn.Parameter(torch.tensor(inputs["params"]))
    parameter.grad = torch.tensor([float(gradient) for gradient in inputs["gradients"]])
    outcome = clipped_step(torch.optim.SGD([parameter], lr=inputs["lr"]), parameter, inputs["max_norm"])
    assert parameter.tolist() == case["expected"]["params_after"]
    assert int(not outcome.applied) == case["expected"]["skipped_updates"]
    assert math.isnan(outcome.gradient_norm)


def test_gradients_are_scaled_down_to_the_norm_and_never_up() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    parameter.grad = torch.tensor([3.0, 4.0])
    outcome = clipped_step(optimizer, parameter, 0.5)
    assert outcome.gradient_norm == 5.0
    assert parameter.tolist() == pytest.approx([-0.3, -0.4])
    parameter.grad = torch.tensor([0.3, 0.0])
    clipped_step(optimizer, parameter, 0.5)
    assert parameter.tolist() == pytest.approx([-0.6, -0.4])


def test_no_limit_clips_nothing() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])
    clipped_step(torch.optim.SGD([parameter], lr=1.0), parameter, None)
    assert parameter.tolist() == [-3.0, -4.0]


def test_flat_parameters_share_memory_both_ways() -> None:
    first = nn.Linear(2, 3)
    module = nn.Sequential(first, nn.Linear(3, 1))
    expected = torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])
    flat = flatten_parameters(module)
    assert flat.detach().equal(expected)
    torch.autograd.backward(module(torch.ones(4, 2)).sum())
    assert flat.grad is not None
    assert first.weight.grad is not None
    assert flat.grad[:6].equal(first.weight.grad.reshape(-1))
    with torch.no_grad():
        flat.zero_()
    assert first.weight.count_nonzero().item() == 0


def test_parameters_of_several_dtypes_cannot_be_flat() -> None:
    module = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1).double()])
    with pytest.raises(ValueError, match="several dtypes or devices"):
        flatten_parameters(module)


def test_a_batch_of_nan_is_skipped_counted_and_does_no_harm() -> None:
    guarded, rows = learner(), batch(0)
    before = guarded.weights()
    report = guarded.update(replace(rows, advantages=np.full(64, np.nan, np.float32)))
    assert (report.metrics["skipped_updates"], report.metrics["optimizer_steps"]) == (4, 0)
    for name, array in guarded.weights().parameters.items():
        np.testing.assert_array_equal(array, before.parameters[name])
    assert guarded.update(rows).metrics["optimizer_steps"] == 4
    assert guarded.update(rows).metrics["skipped_updates"] == 4


def test_weights_are_a_snapshot_that_nobody_can_write_to() -> None:
    updated = learner()
    before = updated.weights()
    kept = {name: array.copy() for name, array in before.parameters.items()}
    updated.update(batch(0))
    after = updated.weights()
    assert (before.version, after.version) == (0, 1)
    for name, array in before.parameters.items():
        np.testing.assert_array_equal(array, kept[name])
        assert not array.flags.writeable
    assert any(not np.array_equal(after.parameters[name], array) for name, array in kept.items())


def test_statistics_are_merged_once_each() -> None:
    updated = learner()
    assert updated.weights().observation_moments is None
    updated.update(batch(0))
    updated.update(batch(1))
    moments = updated.weights().observation_moments
    assert moments is not None
    assert moments.count == 128
    both = np.concatenate([batch(0).observations, batch(1).observations])
    np.testing.assert_allclose(moments.mean, both.mean(axis=0), atol=1e-6)


def test_equal_seeds_and_batches_give_equal_parameters() -> None:
    one, other, different = learner(seed=1), learner(seed=1), learner(seed=2)
    for seed in range(3):
        one.update(batch(seed))
        other.update(batch(seed))
        different.update(batch(seed))
    assert_equal_parameters(one, other)
    with pytest.raises(AssertionError):
        assert_equal_parameters(one, different)


def test_a_restored_learner_goes_on_bit_for_bit_twice() -> None:
    unbroken = learner()
    restored = learner()
    for part in range(2):
        for seed in range(2):
            unbroken.update(batch(10 * part + seed))
            restored.update(batch(10 * part + seed))
        state = restored.state()
        restored = learner()
        restored.load_state(state)
    last, same = unbroken.update(batch(99)), restored.update(batch(99))
    assert_equal_parameters(unbroken, restored)
    assert last.metrics == same.metrics
    assert (last.version, last.lifetime_steps) == (same.version, same.lifetime_steps) == (5, 320)
    ours, theirs = unbroken.weights().observation_moments, restored.weights().observation_moments
    assert ours is not None
    assert theirs is not None
    np.testing.assert_array_equal(ours.variance, theirs.variance)
    assert restored.state().keys() == unbroken.state().keys()


def test_the_state_of_a_learner_that_made_no_update_restores_too() -> None:
    fresh, restored = learner(), learner(seed=7)
    restored.update(batch(0))
    restored.load_state(fresh.state())
    assert (restored.version, restored.lifetime_steps) == (0, 0)
    assert_equal_parameters(fresh, restored)
    assert restored.weights().observation_moments is None


def test_the_state_is_arrays_and_numbers_of_its_own() -> None:
    updated = learner()
    updated.update(batch(0))
    state = updated.state()
    kept = {name: np.array(value) for name, value in state.items()}
    updated.update(batch(1))
    for name, value in state.items():
        assert isinstance(value, (np.ndarray, int, float)), name
        np.testing.assert_array_equal(np.array(value), kept[name], err_msg=name)


def test_a_state_without_counters_is_refused() -> None:
    state = learner().state()
    del state["version"]
    with pytest.raises(ValueError, match="has no 'version'"):
        learner().load_state(state)


def test_the_learning_rate_follows_the_lifetime_steps() -> None:
    updated = learner()
    rates = [updated.update(batch(seed)).metrics["learning_rate"] for seed in range(3)]
    assert rates == pytest.approx([1e-2, 1e-2 * (1 - 0.064), 1e-2 * (1 - 0.128)])


def sample(rows: int, new_env_steps: int, episodes: EpisodeStats) -> Samples:
    """Rows of replay, that nothing is trained on."""
    column = np.zeros(rows, np.float32)
    return Samples(
        observations=np.zeros((rows, 3), np.float32),
        actions=np.zeros(rows, np.int64),
        rewards=column,
        next_observations=np.zeros((rows, 3), np.float32),
        terminated=np.zeros(rows, np.bool_),
        discounts=column,
        indices=np.arange(rows),
        generations=np.arange(rows),
        weights=column,
        new_env_steps=new_env_steps,
        episodes=episodes,
    )


def test_a_report_on_a_sample_counts_what_was_stored_and_says_no_lag() -> None:
    updated: Learner = Learner(SPEC)
    finished = EpisodeStats(np.array([7.0]), np.array([20]))
    updated.report(sample(32, 10, EpisodeStats.none()), {})
    report = updated.report(sample(64, 5, finished), {"loss": 0.5})
    assert (report.version, report.steps, report.lifetime_steps) == (2, 64, 15)
    assert report.metrics == {"loss": 0.5, "skipped_updates": 0}
    assert report.episodes is finished
    assert updated.weights().observation_moments is None


def test_a_report_on_a_batch_counts_its_rows_and_says_the_lag() -> None:
    updated: Learner = Learner(SPEC)
    updated.report(batch(0), {})
    report = updated.report(batch(1, rows=32), {})
    assert (report.version, report.steps, report.lifetime_steps) == (2, 32, 96)
    assert report.metrics == {"skipped_updates": 0, "policy_lag": 1}
