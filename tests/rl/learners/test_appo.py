"""APPO's learner: on fresh data it is PPO on sampled returns, on old data the target network holds it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pipeflow.rl.batches import Trajectories
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.appo import APPOLearner, adapted
from pipeflow.rl.learners.impala import VTraceSettings
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from tests.rl.read_only import read_only

CARTPOLE = EnvSpec("CartPole-v1")
SPEC = PolicySpec.for_env(CARTPOLE, hidden=(8,))
SETTINGS = VTraceSettings(gamma=0.9)


def sampled(seed: int = 0) -> Trajectories:
    return read_only(
        RolloutWorker(CARTPOLE, SPEC, num_envs=4, fragment_length=32, seed=seed, index=0).sample()
    )


def learner(
    *,
    target_every: int = 1,
    kl_coef: float = 0.0,
    kl_target: float | None = None,
    lr: float = 1e-2,
    seed: int = 0,
) -> APPOLearner:
    return APPOLearner(
        SPEC, targets=SETTINGS, lr=lr, epochs=2, minibatch_size=32, target_every=target_every, kl_coef=kl_coef,
        kl_target=kl_target, seed=seed,
    )  # fmt: skip


def parameters(of: APPOLearner) -> dict[str, NDArray[np.generic]]:
    return dict(of.weights().parameters)


def target(of: APPOLearner) -> dict[str, object]:
    return {name: value for name, value in of.state().items() if name.startswith("target/")}


def test_on_fresh_data_it_is_ppo_on_sampled_returns() -> None:
    fragment = sampled()
    ours = learner()
    theirs = PPOLearner(SPEC, lr=1e-2, epochs=2, minibatch_size=32)
    report = ours.update(fragment)
    other = theirs.update(gae(0.9, 1.0)(fragment))
    for name, tensor in theirs.policy.state_dict().items():
        torch.testing.assert_close(ours.policy.state_dict()[name], tensor, rtol=1e-3, atol=1e-5)
    for name in ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "optimizer_steps"):
        assert report.metrics[name] == pytest.approx(other.metrics[name], rel=1e-3, abs=1e-5), name
    assert (report.steps, report.version) == (other.steps, other.version)


def test_the_target_network_follows_after_every_so_many_updates() -> None:
    fragment, trained = sampled(), learner(target_every=2)
    before = target(trained)
    trained.update(fragment)
    for name, value in target(trained).items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(before[name]))
    trained.update(fragment)
    for name, array in parameters(trained).items():
        np.testing.assert_array_equal(np.asarray(target(trained)[f"target/{name}"]), array)


def test_an_action_much_likelier_when_acting_than_for_the_target_weighs_less() -> None:
    # min(mu / target, 2) * pi / mu, at pi = target: 1 up to mu = 2 target, then 2 target / mu.
    fragment = sampled()
    for factor, clipped in ((1.5, 0.0), (4.0, 1.0)):
        likelier = replace(fragment, log_probs=fragment.log_probs + np.float32(math.log(factor)))
        still = learner(lr=0.0)
        assert still.update(likelier).metrics["clip_fraction"] == pytest.approx(clipped)


def test_the_penalty_keeps_the_policy_closer_to_the_target() -> None:
    fragment = sampled()
    free, held = learner(target_every=100), learner(target_every=100, kl_coef=50.0)
    loose, tight = ([each.update(fragment) for _ in range(3)][-1] for each in (free, held))
    assert tight.metrics["approx_kl"] < 0.5 * loose.metrics["approx_kl"]


def test_the_weight_of_the_penalty_is_adapted_and_reported() -> None:
    assert [adapted(1.0, kl, 0.01) for kl in (0.0149, 0.0151, 0.0067, 0.0066)] == [1.0, 2.0, 1.0, 0.5]
    assert adapted(3.0, 99.0, None) == 3.0
    trained, fragment = learner(kl_coef=0.2, kl_target=1e9), sampled()
    assert [trained.update(fragment).metrics["kl_coef"] for _ in range(3)] == [0.2, 0.1, 0.05]


def test_a_restored_and_a_copied_learner_go_on_bit_for_bit() -> None:
    fragments = [sampled(seed) for seed in range(4)]
    trained = learner(target_every=2, kl_coef=0.2, kl_target=0.01)
    for fragment in fragments[:3]:
        trained.update(fragment)
    restored, twin = learner(target_every=2, kl_target=0.01, seed=0), copy.deepcopy(trained)
    restored.load_state(trained.state())
    last = dict(trained.update(fragments[3]).metrics)
    assert dict(restored.update(fragments[3]).metrics) == last
    # The copy has a target network of its own: the update above did not move it.
    assert dict(twin.update(fragments[3]).metrics) == last
    for name, array in parameters(trained).items():
        np.testing.assert_array_equal(parameters(restored)[name], array)
        np.testing.assert_array_equal(parameters(twin)[name], array)


def test_without_real_rows_nothing_is_learnt_but_the_update_counts() -> None:
    fragment, trained = sampled(), learner(kl_coef=0.2, kl_target=0.01)
    before = parameters(trained)
    report = trained.update(replace(fragment, valid=np.zeros_like(fragment.valid)))
    assert (report.version, report.steps, report.metrics["optimizer_steps"]) == (1, 0, 0)
    assert trained.state()["kl_coef"] == 0.2
    for name, array in parameters(trained).items():
        np.testing.assert_array_equal(array, before[name])


def test_the_report_says_how_old_the_weights_were() -> None:
    trained, fragment = learner(), sampled()
    assert [trained.update(fragment).metrics["policy_lag"] for _ in range(3)] == [0, 1, 2]
    assert trained.lifetime_steps == 3 * fragment.steps


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="epochs must be at least 1, got 0"):
        APPOLearner(SPEC, targets=SETTINGS, epochs=0)
    with pytest.raises(ValueError, match="shuffles rows, which a policy with memory cannot be given"):
        APPOLearner(PolicySpec.for_env(CARTPOLE, memory="gru"), targets=SETTINGS)
