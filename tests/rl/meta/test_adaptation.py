"""Adaptation: its steps by hand, and the derivative through them against finite differences."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from pipeflow.rl.batches import Advantages
from pipeflow.rl.losses import clipped_surrogate_loss
from pipeflow.rl.meta.adaptation import Rollout, adapted, log_ratio
from pipeflow.rl.policies import ActorCritic, PolicySpec
from pipeflow.rl.spaces import action_codec, observation_codec

VECTOR = observation_codec(spaces.Box(-1.0, 1.0, (2,), np.float32))
SPEC = PolicySpec(
    VECTOR, action_codec(spaces.Box(-1.0, 1.0, (2,), np.float32)), hidden=(3,), shared_trunk=True
)
STEP_SIZE = 0.3


@pytest.fixture
def policy() -> ActorCritic:
    """In float64, so that finite differences have digits left."""
    policy = SPEC.build(seed=1)
    with torch.no_grad():
        policy.policy_head.weight *= 50.0  # which is initialised near zero, where there is little to see
    return policy.double()


def rollout(seed: int, rows: int = 6) -> Rollout:
    generator = torch.Generator().manual_seed(seed)
    observations, actions = torch.randn(2, rows, 2, generator=generator, dtype=torch.float64)
    log_probs, advantages = torch.randn(2, rows, generator=generator, dtype=torch.float64)
    return Rollout(observations, actions, log_probs - 2.0, advantages)


def parameters_of(policy: ActorCritic) -> dict[str, Tensor]:
    return dict(policy.named_parameters())


def outer_loss(
    policy: ActorCritic, parameters: Mapping[str, Tensor], steps: int, differentiable: bool
) -> Tensor:
    explored = [rollout(seed) for seed in range(steps)]
    after = adapted(policy, parameters, explored, STEP_SIZE, differentiable=differentiable)
    last = rollout(100)
    return clipped_surrogate_loss(log_ratio(policy, after, last), last.advantages, clip=10.0)


def test_a_step_goes_up_the_gradient_of_the_surrogate(policy: ActorCritic) -> None:
    batch = rollout(0)
    log_probs, _, _ = policy.evaluate(batch.observations, batch.actions)
    surrogate = ((log_probs - batch.log_probs).exp() * batch.advantages).mean()
    (gradient,) = torch.autograd.grad(surrogate, [policy.policy_head.bias])
    after = adapted(policy, parameters_of(policy), [batch], STEP_SIZE, differentiable=False)
    expected = policy.policy_head.bias + STEP_SIZE * gradient
    torch.testing.assert_close(after["policy_head.bias"], expected, rtol=0, atol=1e-12)


def test_where_the_policy_acted_itself_that_is_the_policy_gradient(policy: ActorCritic) -> None:
    batch = rollout(0)
    log_probs, _, _ = policy.evaluate(batch.observations, batch.actions)
    own = Rollout(batch.observations, batch.actions, log_probs.detach(), batch.advantages)
    (gradient,) = torch.autograd.grad((log_probs * batch.advantages).mean(), [policy.log_std])
    after = adapted(policy, parameters_of(policy), [own], STEP_SIZE, differentiable=False)
    torch.testing.assert_close(after["log_std"], policy.log_std + STEP_SIZE * gradient, rtol=0, atol=1e-12)


def test_what_the_actions_do_not_depend_on_stays(policy: ActorCritic) -> None:
    after = adapted(policy, parameters_of(policy), [rollout(0)], STEP_SIZE, differentiable=False)
    assert torch.equal(after["value_head.weight"], policy.value_head.weight)


def test_no_rollout_means_no_step_and_the_policy_itself_never_changes(policy: ActorCritic) -> None:
    before = policy.parameters_numpy()
    start = parameters_of(policy)
    assert adapted(policy, start, [], STEP_SIZE, differentiable=True) == start
    adapted(policy, start, [rollout(0), rollout(1)], STEP_SIZE, differentiable=True)
    for name, array in policy.parameters_numpy().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("name", ["policy_head.weight", "policy_trunk.0.bias", "log_std"])
def test_the_gradient_through_the_steps_is_that_of_finite_differences(
    policy: ActorCritic, name: str, steps: int
) -> None:
    start = parameters_of(policy)
    (gradient,) = torch.autograd.grad(outer_loss(policy, start, steps, differentiable=True), [start[name]])
    (first_order,) = torch.autograd.grad(
        outer_loss(policy, start, steps, differentiable=False), [start[name]]
    )
    direction = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    width = 1e-5
    losses: list[float] = []
    for sign in (1.0, -1.0):
        moved = (start[name].detach() + sign * width * direction).requires_grad_()
        losses.append(outer_loss(policy, start | {name: moved}, steps, differentiable=True).item())
    difference = (losses[0] - losses[1]) / (2 * width)
    assert (gradient * direction).sum().item() == pytest.approx(difference, rel=1e-6)
    assert (first_order * direction).sum().item() != pytest.approx(difference, rel=1e-2)


def test_rows_become_tensors_with_standardised_advantages() -> None:
    ones = np.ones((3, 2), np.float32)
    ones.setflags(write=False)
    batch = Advantages(ones, ones, ones[:, 0], ones[:, 0], np.array([1, 2, 3], np.float32), ones[:, 0], 0)
    converted = Rollout.of(batch, torch.device("cpu"))
    assert converted.advantages.tolist() == pytest.approx([-(1.5**0.5), 0.0, 1.5**0.5])
    assert converted.observations.tolist() == ones.tolist()
