"""Passes through action values without autograd: values and gradients are those of torch's autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.learners.dqn_gradient import ActionValueGradient
from pipeflow.rl.learners.learner import flatten_parameters
from pipeflow.rl.networks import Activation
from pipeflow.rl.spaces import action_codec, observation_codec

VECTOR = observation_codec(spaces.Box(-1.0, 1.0, (3,)))
MASKED = observation_codec(
    spaces.Dict({"action_mask": spaces.MultiBinary(4), "seen": spaces.Box(-1.0, 1.0, (3,))})
)
IMAGE = observation_codec(spaces.Box(0, 255, (8, 8, 3), np.uint8))
ACTIONS = action_codec(spaces.Discrete(4))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (7,), (8, 6)], ids=str)
def test_values_and_gradients_are_those_of_autograd(
    hidden: tuple[int, ...], activation: Activation, dueling: bool, masked: bool
) -> None:
    spec = ActionValueSpec(MASKED if masked else VECTOR, ACTIONS, hidden, dueling, activation)
    network = spec.build(seed=1)
    flat = flatten_parameters(network)
    assert flat.grad is not None
    generator = torch.Generator().manual_seed(2)
    observations = torch.randn((9, spec.observations.shape[0]), generator=generator)
    gradient = torch.randn((9, 4), generator=generator)
    if spec.observations.mask is not None:
        allowed = torch.rand((9, 4), generator=generator) < 0.7
        observations[:, spec.observations.mask] = allowed.float()
        gradient[~allowed] = 0.0
    passes = ActionValueGradient.of(network)
    assert passes is not None
    passed = passes.forward(observations)
    passes.backward(passed, gradient)
    found = flat.grad.clone()

    flat.grad.zero_()
    values = network(observations)
    torch.autograd.backward(values, gradient)
    torch.testing.assert_close(passed.values, values.detach())
    torch.testing.assert_close(passes(observations), values.detach())
    torch.testing.assert_close(found, flat.grad)
    assert not passed.values.requires_grad


def test_a_network_with_convolutions_has_no_such_passes() -> None:
    network = ActionValueSpec(IMAGE, ACTIONS).build(seed=1)
    flatten_parameters(network)
    assert ActionValueGradient.of(network) is None
