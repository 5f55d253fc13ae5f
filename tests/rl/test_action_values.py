"""Networks of action values: numpy acts as torch computes, masks exclude, and descriptions travel."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from gymnasium import Space, spaces
from numpy.typing import NDArray

from pipeflow.rl.action_values import ActionValueSpec, QNetwork
from pipeflow.rl.basic_spaces import NoValidAction
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.networks import Activation
from pipeflow.rl.spaces import UnsupportedSpace, action_codec, observation_codec

VECTOR = spaces.Box(-1.0, 1.0, (5,), np.float32)
MASKED = spaces.Dict({"action_mask": spaces.MultiBinary(3), "seen": spaces.Box(-1.0, 1.0, (4,), np.float32)})
STATE = np.zeros((6, 0), np.float32)


def spec(
    space: Space[object] = VECTOR, *, dueling: bool = False, activation: Activation = "relu"
) -> ActionValueSpec:
    return ActionValueSpec(
        observation_codec(space),
        action_codec(spaces.Discrete(3)),
        hidden=(16, 8),
        dueling=dueling,
        activation=activation,
    )


def observations(width: int = 5) -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(6, width)).astype(np.float32)


def torch_values(network: QNetwork, rows: NDArray[np.generic]) -> NDArray[np.float32]:
    with torch.no_grad():
        values: NDArray[np.float32] = network(torch.from_numpy(rows)).numpy()
    return values


def test_many_rows_have_the_values_that_few_have() -> None:
    network = spec().build(1)
    many = np.random.default_rng(0).normal(size=(20_000, 5)).astype(np.float32)
    values = network.value(many, np.zeros((len(many), 0), np.float32))
    np.testing.assert_allclose(values[:6], network.value(many[:6], STATE), rtol=1e-5, atol=1e-6)
    assert values.shape == (20_000,)


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_numpy_acts_as_torch_computes(dueling: bool, activation: Activation) -> None:
    network = spec(dueling=dueling, activation=activation).build(1)
    values = torch_values(network, observations())
    acted = network.act(observations(), STATE, np.random.default_rng(0))
    actions, state = network.greedy(observations(), STATE)
    np.testing.assert_array_equal(acted.actions, values.argmax(axis=1))
    np.testing.assert_array_equal(actions, values.argmax(axis=1))
    np.testing.assert_allclose(acted.values, values.max(axis=1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(network.value(observations(), STATE), values.max(axis=1), rtol=1e-5, atol=1e-6)
    assert acted.log_probs.tolist() == [0.0] * 6
    assert state is STATE


def test_a_dueling_networks_mean_over_actions_is_the_states_value() -> None:
    network = spec(dueling=True).build(1)
    assert network.value_head is not None
    rows = torch.from_numpy(observations())
    state_values = network.value_head(network.trunk(rows)).squeeze(1)
    torch.testing.assert_close(network(rows).mean(dim=1), state_values)


@pytest.mark.parametrize("shape", [(8, 8, 3), (40, 40, 1)])
def test_images_are_convolved(shape: tuple[int, ...]) -> None:
    network = spec(spaces.Box(0, 255, shape, np.uint8)).build(1)
    images = np.random.default_rng(0).integers(0, 256, (6, shape[2], *shape[:2]), dtype=np.uint8)
    values = torch_values(network, images)
    assert values.shape == (6, 3)
    np.testing.assert_array_equal(network.greedy(images, STATE)[0], values.argmax(axis=1))


def masked_observations(mask: list[int]) -> NDArray[np.float32]:
    rows = np.concatenate([observations(4), np.tile(np.array(mask, np.float32), (6, 1))], axis=1)
    return np.asarray(rows, np.float32)


def test_kl_03_a_masked_action_is_never_the_best_and_never_read() -> None:
    network = spec(MASKED, dueling=True).build(1)
    everything = torch_values(network, masked_observations([1, 1, 1]))
    some = torch_values(network, masked_observations([1, 0, 1]))
    np.testing.assert_array_equal(some[:, [0, 2]], everything[:, [0, 2]])
    assert (some[:, 1] == -np.inf).all()
    for mask in ([1, 0, 0], [0, 1, 0], [0, 0, 1]):
        acted = network.act(masked_observations(mask), STATE, np.random.default_rng(0))
        assert acted.actions.tolist() == [mask.index(1)] * 6
        np.testing.assert_allclose(acted.values, everything[:, mask.index(1)], rtol=1e-5, atol=1e-6)


def test_an_observation_that_allows_no_action_cannot_be_acted_on_but_has_a_value() -> None:
    network = spec(MASKED).build(1)
    with pytest.raises(NoValidAction):
        network.greedy(masked_observations([0, 0, 0]), STATE)
    assert np.isfinite(network.value(masked_observations([0, 0, 0]), STATE)).all()


def test_allowed_is_what_the_mask_says() -> None:
    assert spec().allowed(observations()).all()
    assert spec(MASKED).allowed(masked_observations([1, 0, 1])).tolist() == [[True, False, True]] * 6


@pytest.mark.parametrize(
    "space", [spaces.MultiDiscrete([2, 2]), spaces.MultiBinary(2), spaces.Box(-1.0, 1.0, (1,), np.float32)]
)
def test_other_actions_are_refused_by_name(space: Space[object]) -> None:
    with pytest.raises(UnsupportedSpace, match="is none; use a policy gradient"):
        ActionValueSpec(observation_codec(VECTOR), action_codec(space))


def test_a_mask_of_another_width_is_refused() -> None:
    with pytest.raises(UnsupportedSpace, match=r"mask of 3 does not fit Discrete\(4\), which needs 4"):
        ActionValueSpec(observation_codec(MASKED), action_codec(spaces.Discrete(4)))


def test_the_spec_of_an_environment_travels_and_builds_the_same_everywhere() -> None:
    described = ActionValueSpec.for_env(EnvSpec("CartPole-v1"), hidden=(8,), dueling=True)
    assert (described.num_actions, described.state_width) == (2, 0)
    first, second = described.build(3), pickle.loads(pickle.dumps(described)).build(3)
    for name, array in first.parameters_numpy().items():
        np.testing.assert_array_equal(array, second.parameters_numpy()[name])


def test_building_leaves_torchs_global_generator_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    spec().build(1)
    assert torch.equal(torch.rand(1), expected)


def test_the_numpy_form_follows_loaded_parameters_and_copies() -> None:
    network, other = spec(dueling=True).build(1), spec(dueling=True).build(2)
    network.greedy(observations(), STATE)
    copied = copy.deepcopy(network)
    network.load_numpy(other.parameters_numpy())
    np.testing.assert_array_equal(
        network.act(observations(), STATE, np.random.default_rng(0)).values,
        other.act(observations(), STATE, np.random.default_rng(0)).values,
    )
    before = spec(dueling=True).build(1)
    np.testing.assert_array_equal(
        copied.act(observations(), STATE, np.random.default_rng(0)).values,
        before.act(observations(), STATE, np.random.default_rng(0)).values,
    )
