"""Backpropagation through perceptrons: outputs and gradients are those of torch's autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from pipeflow.rl.backpropagation import PerceptronGradient
from pipeflow.rl.learners.learner import flatten_parameters
from pipeflow.rl.networks import Activation
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.spaces import action_codec, observation_codec

VECTOR = observation_codec(spaces.Box(-1.0, 1.0, (3,), np.float32))
IMAGE = observation_codec(spaces.Box(0, 255, (8, 8, 3), np.uint8))
DISCRETE = action_codec(spaces.Discrete(4))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (7,), (8, 6, 5)], ids=str)
def test_outputs_and_gradients_are_those_of_autograd(
    hidden: tuple[int, ...], activation: Activation, shared: bool
) -> None:
    policy = PolicySpec(VECTOR, DISCRETE, hidden, activation, shared).build(seed=1)
    flat = flatten_parameters(policy)
    assert flat.grad is not None
    generator = torch.Generator().manual_seed(2)
    observations, by_outputs, by_values = (
        torch.randn(shape, generator=generator) for shape in ((9, 3), (9, 4), (9,))
    )
    passes = PerceptronGradient.of(policy)
    assert passes is not None
    with torch.no_grad():
        passed = passes.forward(observations)
        passes.backward(passed, by_outputs, by_values)
    found = flat.grad.clone()

    flat.grad.zero_()
    features = policy.policy_trunk(observations)
    outputs = policy.policy_head(features)
    if policy.value_trunk is not None:
        features = policy.value_trunk(observations)
    values = policy.value_head(features).squeeze(1)
    torch.autograd.backward([outputs, values], [by_outputs, by_values])
    torch.testing.assert_close(passed.outputs, outputs.detach())
    torch.testing.assert_close(passed.values, values.detach())
    torch.testing.assert_close(found, flat.grad)


@pytest.mark.parametrize(
    "spec",
    [
        PolicySpec(VECTOR, DISCRETE, memory="gru"),
        PolicySpec(VECTOR, DISCRETE, memory="lstm"),
        PolicySpec(IMAGE, DISCRETE),
    ],
    ids=["gru", "lstm", "image"],
)
def test_other_networks_are_left_to_autograd(spec: PolicySpec) -> None:
    assert PerceptronGradient.of(spec.build(seed=0)) is None
