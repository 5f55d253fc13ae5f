"""Gradients in the workers, applied by the learner: together they do what one learner on all data would."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeflow.rl.batches import Advantages
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.gradients import Gradients
from pipeflow.rl.learners.actor_critic import ActorCriticLoss, GradientWorker
from pipeflow.rl.learners.gradient_learner import GradientLearner
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.recurrent import MemoryKind
from pipeflow.rl.returns import gae
from pipeflow.rl.schedules import Linear
from tests.rl.read_only import read_only

CARTPOLE = EnvSpec("CartPole-v1")
LOSS = ActorCriticLoss(value_coef=0.5, entropy_coef=0.01)


def worker(index: int, length: int = 16, memory: MemoryKind = "none") -> GradientWorker:
    return GradientWorker(
        CARTPOLE, spec(memory), loss=LOSS, num_envs=4, fragment_length=length, index=index,
        normalise_observations=True,
    )  # fmt: skip


def learner() -> GradientLearner:
    return GradientLearner(spec(), lr=Linear(1e-2, 0.0, 1000))


def spec(memory: MemoryKind = "none") -> PolicySpec:
    return PolicySpec.for_env(CARTPOLE, hidden=(8,), memory=memory, memory_size=8)


def rows(index: int, length: int = 16, memory: MemoryKind = "none") -> Advantages:
    return read_only(gae()(worker(index, length, memory).sample()))


def test_fault_7_the_mean_of_the_workers_gradients_is_the_gradient_of_all_their_rows() -> None:
    one, other = rows(0, length=8), rows(1, length=24)
    alone = worker(0)
    apart = Gradients.mean([alone.gradients(one), alone.gradients(other)])
    together = alone.gradients(Advantages.concatenate([one, other]))
    np.testing.assert_allclose(apart.values, together.values, rtol=1e-4, atol=1e-6)
    assert apart.steps == together.steps == one.steps + other.steps
    assert dict(apart.metrics) == pytest.approx(dict(together.metrics), rel=1e-5)
    unweighted = (alone.gradients(one).values + alone.gradients(other).values) / 2
    assert not np.allclose(unweighted, together.values, rtol=1e-2, atol=1e-3)


def test_the_loss_is_the_papers() -> None:
    batch = rows(0)
    policy = spec().build(seed=5)
    loss, parts = LOSS(policy, batch)
    log_probs, entropies, values = policy.evaluate(
        to_tensor(batch.observations, "cpu"), to_tensor(batch.actions, "cpu")
    )
    policy_loss = -(log_probs.detach().numpy() * batch.advantages).mean()
    value_loss = ((values.detach().numpy() - batch.value_targets) ** 2).mean()
    entropy = entropies.mean().item()
    assert parts.tolist() == pytest.approx([policy_loss, value_loss, entropy], rel=1e-5)
    assert loss.item() == pytest.approx(policy_loss + 0.5 * value_loss - 0.01 * entropy, rel=1e-5)


def test_normalised_advantages_do_not_depend_on_the_scale_of_rewards() -> None:
    batch, policy = rows(0), spec().build(seed=5)
    scaled = replace(batch, advantages=batch.advantages * np.float32(100.0))
    # The mean is of terms near 1 in size that cancel almost wholly, so its error is that of float32 beside 1.
    normalised, plain = ActorCriticLoss(normalise=True), ActorCriticLoss(normalise=False)
    assert normalised(policy, scaled)[1][0].item() == pytest.approx(
        normalised(policy, batch)[1][0].item(), abs=1e-6
    )
    assert plain(policy, scaled)[1][0].item() == pytest.approx(
        100 * plain(policy, batch)[1][0].item(), rel=1e-4
    )


def test_worker_and_learner_agree_on_the_order_of_parameters() -> None:
    # One step of plain descent through the learner's flat vector is a step of every parameter of the module.
    batch, trained = rows(0), learner()
    loss, _ = LOSS(trained.policy, batch)
    expected = torch.autograd.grad(loss, list(trained.policy.parameters()))
    gradient = worker(0).gradients(batch)
    trained.apply(gradient)
    for parameter, wanted in zip(trained.policy.parameters(), expected, strict=True):
        assert parameter.grad is not None
        scale = min(1.0, 0.5 / float(np.linalg.norm(gradient.values)))
        torch.testing.assert_close(parameter.grad, wanted * scale, rtol=1e-4, atol=1e-6)


def test_gradients_are_of_the_newest_weights() -> None:
    trained, sampling = learner(), worker(0)
    before = sampling.gradients(rows(0))
    trained.apply(before)
    sampling.set_weights(trained.weights())
    after = sampling.gradients(gae()(sampling.sample()))
    assert (before.version, after.version) == (0, 1)
    assert not np.array_equal(sampling.gradients(rows(0)).values, before.values)


def test_a_report_counts_steps_episodes_and_age() -> None:
    trained = learner()
    long, short = rows(0, length=64), rows(0)
    first = trained.apply(worker(0, length=64).gradients(long))
    stale = trained.apply(worker(0).gradients(short))
    assert (first.version, first.steps, first.lifetime_steps) == (1, long.steps, long.steps)
    assert (stale.version, stale.steps, stale.lifetime_steps) == (2, short.steps, long.steps + short.steps)
    assert first.episodes.count == long.episodes.count > 0
    assert (first.metrics["policy_lag"], stale.metrics["policy_lag"]) == (0, 1)
    assert stale.metrics["learning_rate"] == pytest.approx(1e-2 * (1 - long.steps / 1000))
    moments = trained.weights().observation_moments
    assert moments is not None
    assert moments.count == long.steps + short.steps


def test_without_rows_nothing_is_learnt_but_the_update_counts() -> None:
    trained, batch = learner(), rows(0)
    trained.apply(worker(0).gradients(batch))
    before = trained.weights().parameters
    empty = batch.rows(np.zeros(0, np.int64))
    gradient = worker(0).gradients(empty)
    assert gradient.steps == 0
    assert not gradient.values.any()
    report = trained.apply(gradient)
    assert (report.version, report.steps) == (2, 0)
    for name, array in trained.weights().parameters.items():
        np.testing.assert_array_equal(array, before[name])


def test_a_gradient_of_nan_is_skipped_and_counted() -> None:
    trained = learner()
    before = trained.weights().parameters
    broken = Gradients(np.full(worker(0).gradients(rows(0)).values.shape, np.nan, np.float32), 64, 64, 0)
    assert trained.apply(broken).metrics["skipped_updates"] == 1
    for name, array in trained.weights().parameters.items():
        np.testing.assert_array_equal(array, before[name])


def test_a_restored_learner_and_a_copied_worker_go_on_bit_for_bit() -> None:
    trained, sampling = learner(), worker(0)
    trained.apply(sampling.gradients(gae()(sampling.sample())))
    sampling.set_weights(trained.weights())
    twin, restored = copy.deepcopy(sampling), learner()
    restored.load_state(trained.state())
    one, other = (each.gradients(gae()(each.sample())) for each in (sampling, twin))
    np.testing.assert_array_equal(one.values, other.values)
    assert dict(trained.apply(one).metrics) == dict(restored.apply(other).metrics)


@pytest.mark.parametrize("memory", ["lstm", "gru"])
def test_with_memory_the_gradient_reaches_back_through_time(memory: MemoryKind) -> None:
    batch = rows(0, memory=memory)
    gradient = worker(0, memory=memory).gradients(batch)
    assert np.isfinite(gradient.values).all()
    policy = spec(memory).build(seed=0)
    assert len(gradient.values) == sum(parameter.numel() for parameter in policy.parameters())
    loss, _ = LOSS(policy, batch)
    torch.autograd.backward(loss)
    recurrent = dict(policy.named_parameters())["memory.layer.weight_hh_l0"].grad
    assert recurrent is not None
    assert recurrent.abs().max() > 0
