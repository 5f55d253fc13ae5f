"""PPO's gradient in closed form is that of autograd, whatever the network, the mask and the coefficients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from pipeflow.rl.batches import Advantages
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.learners.ppo_loss import METRICS, PPOLoss
from pipeflow.rl.learners.ppo_rows import Rows
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.spaces import action_codec, observation_codec

PLAIN = PolicySpec(
    observation_codec(spaces.Box(-1.0, 1.0, (3,), np.float32)),
    action_codec(spaces.Discrete(4)),
    hidden=(8, 5),
)
MASKED = replace(
    PLAIN,
    observations=observation_codec(
        spaces.Dict({"seen": spaces.Box(-1.0, 1.0, (3,), np.float32), "action_mask": spaces.MultiBinary(4)})
    ),
)
SPECS = {
    "separate trunks": PLAIN,
    "one trunk": replace(PLAIN, shared_trunk=True),
    "relu": replace(PLAIN, activation="relu"),
    "no hidden layer": replace(PLAIN, hidden=()),
    "mask": MASKED,
}
LOSSES = {
    "plain": PPOLoss(),
    "entropy": PPOLoss(entropy_coef=0.3),
    "value clip": PPOLoss(value_clip=0.2),
    "raw advantages": PPOLoss(normalise=False),
    "all": PPOLoss(clip=0.05, value_clip=0.1, value_coef=2.0, entropy_coef=0.1),
}


def rows(spec: PolicySpec, count: int) -> Advantages:
    """Rows whose ratios and values are on both sides of every clip."""
    rng = np.random.default_rng(1)
    observations = rng.normal(size=(count, *spec.observations.shape)).astype(np.float32)
    actions = rng.integers(0, 4, count)
    if spec.observations.mask is not None:
        mask = rng.random((count, 4)) < 0.5
        mask[np.arange(count), actions] = True
        observations[:, spec.observations.mask] = mask
    return Advantages(
        observations=observations,
        actions=actions,
        log_probs=rng.normal(-1.2, 0.4, size=count).astype(np.float32),
        values=rng.normal(0.0, 0.3, size=count).astype(np.float32),
        advantages=rng.normal(size=count).astype(np.float32),
        value_targets=rng.normal(size=count).astype(np.float32),
        version=0,
    )


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_the_closed_form_is_what_autograd_gives(spec: PolicySpec, loss: PPOLoss) -> None:
    learner = PPOLearner(spec, seed=3)
    learner.loss = loss
    with torch.no_grad():  # away from the first policy, whose actions are nearly equally likely
        learner.policy.policy_head.weight.mul_(100.0)
    minibatch = Rows.of(rows(spec, 64), torch.device("cpu"))

    record = learner.minibatch_gradient()(minibatch)
    gradient = learner.gradient()
    expected_loss, expected_record = learner.loss(learner.policy, minibatch)
    learner.differentiate(expected_loss)

    assert np.abs(gradient).max() > 1e-3
    np.testing.assert_allclose(gradient, learner.gradient(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(record, expected_record, rtol=1e-5, atol=1e-6)
    assert 0.1 < expected_record[METRICS.index("clip_fraction")] < 0.99


def test_a_gradient_is_overwritten_and_not_added_to() -> None:
    learner = PPOLearner(PLAIN)
    minibatch = Rows.of(rows(PLAIN, 16), torch.device("cpu"))
    gradient_of = learner.minibatch_gradient()
    gradient_of(minibatch)
    first = learner.gradient()
    gradient_of(minibatch)
    np.testing.assert_array_equal(learner.gradient(), first)


def test_a_row_whose_mask_allows_nothing_is_refused() -> None:
    minibatch = rows(MASKED, 4)
    assert MASKED.observations.mask is not None
    minibatch.observations[2, MASKED.observations.mask] = 0.0
    with pytest.raises(ValueError, match="the action mask of row 2 allows no action"):
        PPOLearner(MASKED).update(minibatch)
