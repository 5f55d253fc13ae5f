"""Policies: every kind of space, one result from numpy and from torch, and parameters that travel whole."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from pipeflow.rl.batches import ObservationArray
from pipeflow.rl.modules import to_tensor
from pipeflow.rl.policies import Activation, ActorCritic, PolicySpec
from pipeflow.rl.policy import StateArray
from pipeflow.rl.spaces import action_codec, observation_codec

VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)
ACTIONS: dict[str, spaces.Space[object]] = {
    "categorical": spaces.Discrete(4, start=-1),
    "multi_categorical": spaces.MultiDiscrete([2, 3]),
    "bernoulli": spaces.MultiBinary(3),
    "gaussian": spaces.Box(-1.0, 1.0, (2,), np.float32),
}


def image(*shape: int) -> spaces.Box:
    return spaces.Box(0, 255, shape, np.uint8)


OBSERVATIONS: dict[str, spaces.Space[object]] = {
    "vector": VECTOR,
    "atari": image(84, 84, 4),
    "small_image": image(10, 10, 3),
    "composite": spaces.Dict({"camera": image(12, 16, 3), "speed": VECTOR, "gear": spaces.Discrete(5)}),
}


def spec(
    observations: str = "vector", actions: str = "categorical", *, shared_trunk: bool = False
) -> PolicySpec:
    return PolicySpec(
        observation_codec(OBSERVATIONS[observations]),
        action_codec(ACTIONS[actions]),
        shared_trunk=shared_trunk,
    )


def observed(policy: PolicySpec, rows: int = 6) -> ObservationArray:
    """Random encoded observations, read-only, as after a journey between processes."""
    rng, shape = np.random.default_rng(0), (rows, *policy.observations.shape)
    batch: ObservationArray
    if policy.observations.is_image:
        batch = rng.integers(0, 256, shape, dtype=np.uint8)
    else:
        batch = rng.random(shape, dtype=np.float32)
    batch.setflags(write=False)
    return batch


def stateless(batch: ObservationArray) -> StateArray:
    """The recurrent state of a policy that has none."""
    return np.zeros((len(batch), 0), np.float32)


def shaken(policy: ActorCritic, seed: int = 0) -> ActorCritic:
    """The policy far from its initial near-uniform outputs, so that a mistake in them would show."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return policy


@pytest.mark.parametrize("observations", OBSERVATIONS)
@pytest.mark.parametrize("actions", ACTIONS)
def test_acting_and_evaluating_agree(observations: str, actions: str) -> None:
    policy_spec = spec(observations, actions)
    policy, batch = shaken(policy_spec.build(seed=1)), observed(policy_spec)
    taken, log_probs, values, _ = policy.act(batch, stateless(batch), np.random.default_rng(2))
    assert taken.shape == (6, *policy_spec.actions.shape)
    assert taken.dtype == policy_spec.actions.dtype
    assert log_probs.dtype == values.dtype == np.float32
    evaluated, entropies, evaluated_values = policy.evaluate(to_tensor(batch, "cpu"), torch.from_numpy(taken))
    np.testing.assert_allclose(evaluated.detach().numpy(), log_probs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(evaluated_values.detach().numpy(), values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(policy.value(batch, stateless(batch)), values, rtol=1e-6)
    assert entropies.shape == (6,)


@pytest.mark.parametrize("actions", ACTIONS)
def test_greedy_takes_the_mode(actions: str) -> None:
    policy_spec = spec("vector", actions)
    policy, batch = shaken(policy_spec.build(seed=1)), observed(policy_spec)
    distribution, _ = policy(to_tensor(batch, "cpu"))
    greedy = policy.greedy(batch, stateless(batch))[0]
    assert greedy.shape == (6, *policy_spec.actions.shape)
    np.testing.assert_allclose(greedy, distribution.mode.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shared_trunk", [False, True])
def test_many_rows_are_acted_on_and_valued_as_few_are(shared_trunk: bool) -> None:
    policy = shaken(replace(spec("vector", "categorical"), shared_trunk=shared_trunk).build(seed=1))
    many = np.random.default_rng(0).normal(size=(200, *policy.spec.observations.shape)).astype(np.float32)
    few = [many[start : start + 50] for start in range(0, 200, 50)]
    values = np.concatenate([policy.value(rows, stateless(rows)) for rows in few])
    np.testing.assert_allclose(policy.value(many, stateless(many)), values, rtol=1e-4, atol=1e-5)
    acted = policy.act(many, stateless(many), np.random.default_rng(0))
    np.testing.assert_allclose(acted.values, values, rtol=1e-4, atol=1e-5)
    greedy = np.concatenate([policy.greedy(rows, stateless(rows))[0] for rows in few])
    np.testing.assert_array_equal(policy.greedy(many, stateless(many))[0], greedy)


@pytest.mark.parametrize("shared_trunk", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_numpy_and_torch_give_one_result(shared_trunk: bool, activation: Activation) -> None:
    codec = observation_codec(VECTOR)
    policy_spec = PolicySpec(
        codec,
        action_codec(ACTIONS["gaussian"]),
        hidden=(16, 8),
        activation=activation,
        shared_trunk=shared_trunk,
    )
    policy, batch = shaken(policy_spec.build(seed=0)), observed(policy_spec)
    with torch.no_grad():
        distribution, values = policy(to_tensor(batch, "cpu"))
    np.testing.assert_allclose(
        policy.greedy(batch, stateless(batch))[0], distribution.mode.numpy(), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(policy.value(batch, stateless(batch)), values.numpy(), rtol=1e-4, atol=1e-6)


def test_a_policy_without_hidden_layers_is_linear() -> None:
    policy_spec = PolicySpec(observation_codec(VECTOR), action_codec(ACTIONS["categorical"]), hidden=())
    policy, batch = policy_spec.build(seed=0), observed(policy_spec)
    np.testing.assert_allclose(
        policy.value(batch, stateless(batch)),
        (batch @ policy.value_head.weight.detach().numpy().T)[:, 0],
        rtol=1e-5,
    )


def assert_same_outputs(one: ActorCritic, other: ActorCritic, batch: ObservationArray) -> None:
    np.testing.assert_array_equal(one.value(batch, stateless(batch)), other.value(batch, stateless(batch)))
    np.testing.assert_array_equal(
        one.greedy(batch, stateless(batch))[0], other.greedy(batch, stateless(batch))[0]
    )


@pytest.mark.parametrize("observations", OBSERVATIONS)
def test_loaded_parameters_act_alike(observations: str) -> None:
    policy_spec = spec(observations, "gaussian")
    learner, worker = shaken(policy_spec.build(seed=0)), policy_spec.build(seed=1)
    batch = observed(policy_spec)
    worker.value(batch, stateless(batch))  # whatever it keeps from acting must not outlive the load
    parameters = learner.parameters_numpy()
    for array in parameters.values():
        array.setflags(write=False)
    worker.load_numpy(parameters)
    assert parameters.keys() == worker.state_dict().keys()
    for name, tensor in worker.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), parameters[name], err_msg=name)
    assert_same_outputs(worker, learner, batch)


def test_exported_parameters_are_a_copy() -> None:
    policy = spec().build(seed=0)
    before = policy.parameters_numpy()
    kept = {name: array.copy() for name, array in before.items()}
    shaken(policy)
    for name, array in before.items():
        np.testing.assert_array_equal(array, kept[name])


def test_foreign_parameters_are_refused_whole() -> None:
    policy, other = spec("vector", "categorical").build(seed=0), spec("vector", "gaussian").build(seed=1)
    kept = policy.parameters_numpy()
    with pytest.raises(ValueError, match=r"unknown \['log_std'\]"):
        policy.load_numpy(other.parameters_numpy())
    wrong = kept | {"value_head.bias": np.zeros(2, np.float32)}
    with pytest.raises(ValueError, match=r"value_head.bias has shape \(2,\)"):
        policy.load_numpy(wrong)
    for name, array in policy.parameters_numpy().items():
        np.testing.assert_array_equal(array, kept[name])


def test_acting_follows_an_update_in_place() -> None:
    policy_spec = spec()
    policy, batch = policy_spec.build(seed=0), observed(policy_spec)
    before = policy.value(batch, stateless(batch))
    shaken(policy)
    with torch.no_grad():
        _, values = policy(to_tensor(batch, "cpu"))
    assert not np.allclose(before, values.numpy())
    np.testing.assert_allclose(policy.value(batch, stateless(batch)), values.numpy(), rtol=1e-4, atol=1e-6)


Moved: TypeAlias = Callable[[ActorCritic], ActorCritic]


def copied(policy: ActorCritic) -> ActorCritic:
    return copy.deepcopy(policy)


def unpickled(policy: ActorCritic) -> ActorCritic:
    policy_copy: ActorCritic = pickle.loads(pickle.dumps(policy))
    return policy_copy


def in_half_and_back(policy: ActorCritic) -> ActorCritic:
    return policy.half().float()


@pytest.mark.parametrize("moved", [copied, unpickled, in_half_and_back])
def test_acting_uses_the_parameters_after_they_moved(moved: Moved) -> None:
    policy_spec = spec()
    policy, batch = policy_spec.build(seed=0), observed(policy_spec)
    policy.value(batch, stateless(batch))
    other = shaken(moved(policy))
    with torch.no_grad():
        _, values = other(to_tensor(batch, "cpu"))
    np.testing.assert_allclose(other.value(batch, stateless(batch)), values.numpy(), rtol=1e-4, atol=1e-6)


def test_a_seed_fixes_the_parameters_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    first = spec("small_image").build(seed=3).parameters_numpy()
    assert torch.rand(1).equal(expected)
    second, other = spec("small_image").build(seed=3), spec("small_image").build(seed=4)
    for name, array in second.parameters_numpy().items():
        np.testing.assert_array_equal(array, first[name])
    assert not second.policy_head.weight.equal(other.policy_head.weight)


def test_initial_layers_are_orthogonal_with_the_gains_of_the_field() -> None:
    def gram(weight: torch.Tensor) -> NDArray[np.float32]:
        rows = weight.detach().numpy()
        product: NDArray[np.float32] = rows @ rows.T
        return product

    policy = spec("vector", "categorical").build(seed=0)
    hidden = next(module for module in policy.policy_trunk if isinstance(module, torch.nn.Linear))
    np.testing.assert_allclose(gram(hidden.weight.T), 2.0 * np.eye(3), atol=1e-5)
    np.testing.assert_allclose(gram(policy.policy_head.weight), 1e-4 * np.eye(4), atol=1e-7)
    np.testing.assert_allclose(gram(policy.value_head.weight), [[1.0]], atol=1e-5)
    assert policy.value_head.bias.tolist() == [0.0]


def test_the_first_policy_is_close_to_uniform() -> None:
    policy_spec = spec("atari", "categorical")
    distribution, _ = policy_spec.build(seed=0)(to_tensor(observed(policy_spec), "cpu"))
    torch.testing.assert_close(distribution.entropy(), torch.full((6,), float(np.log(4))), rtol=0, atol=1e-3)


def test_every_parameter_receives_a_gradient() -> None:
    policy_spec = spec("composite", "gaussian")
    policy = shaken(policy_spec.build(seed=0))
    log_probs, entropies, values = policy.evaluate(to_tensor(observed(policy_spec), "cpu"), torch.zeros(6, 2))
    torch.autograd.backward((log_probs + entropies + values).sum())
    assert [name for name, parameter in policy.named_parameters() if parameter.grad is None] == []


def test_pixels_are_scaled_once_in_the_network() -> None:
    policy_spec = spec("small_image")
    policy, batch = policy_spec.build(seed=0), observed(policy_spec)
    assert policy.features is not None
    pixels = torch.tensor(batch)
    torch.testing.assert_close(policy.features(pixels), policy.features(pixels.float() / 255))


def test_an_image_too_small_to_convolve_is_refused() -> None:
    tiny = PolicySpec(observation_codec(image(3, 20, 3)), action_codec(ACTIONS["categorical"]))
    with pytest.raises(ValueError, match="an image of 3x20 pixels is too small"):
        tiny.build(seed=0)
