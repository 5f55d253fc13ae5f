"""Acting in numpy: the same numbers as torch gives, and samples that follow them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from pipeflow.rl import acting
from pipeflow.rl.distributions import Bernoulli, Categorical, DiagonalGaussian, MultiCategorical
from pipeflow.rl.policies import Activation, ActorCritic, PolicySpec
from pipeflow.rl.spaces import action_codec, observation_codec

ROWS = 20_000
LOGITS = np.log(np.array([[0.5, 0.3, 0.2]], np.float32)).repeat(ROWS, axis=0)


def test_categories_come_as_often_as_their_probabilities_say() -> None:
    actions, log_probs = acting.sample_categorical(LOGITS, np.random.default_rng(0))
    frequencies = np.bincount(actions, minlength=3) / ROWS
    np.testing.assert_allclose(frequencies, [0.5, 0.3, 0.2], atol=5 * 0.5 / math.sqrt(ROWS))
    torch.testing.assert_close(
        torch.from_numpy(log_probs), Categorical(torch.from_numpy(LOGITS)).log_prob(torch.from_numpy(actions))
    )


def test_an_excluded_category_never_comes() -> None:
    logits = np.array([[0.0, -np.inf, 0.0]], np.float32).repeat(ROWS, axis=0)
    actions, log_probs = acting.sample_categorical(logits, np.random.default_rng(0))
    assert set(actions.tolist()) == {0, 2}
    np.testing.assert_allclose(log_probs, math.log(0.5), rtol=1e-6)


def test_large_logits_do_not_overflow() -> None:
    actions, log_probs = acting.sample_categorical(
        np.array([[1000.0, 0.0]], np.float32), np.random.default_rng(0)
    )
    assert (actions.tolist(), log_probs.tolist()) == ([0], [0.0])


def test_several_choices_have_the_joint_log_probability() -> None:
    logits = np.random.default_rng(1).normal(size=(50, 5)).astype(np.float32)
    actions, log_probs = acting.sample_multi_categorical(logits, (3, 2), np.random.default_rng(0))
    assert (actions.max(axis=0) <= [2, 1]).all()
    torch.testing.assert_close(
        torch.from_numpy(log_probs),
        MultiCategorical(torch.from_numpy(logits), (3, 2)).log_prob(torch.from_numpy(actions)),
    )


def test_bits_come_as_often_as_their_log_odds_say() -> None:
    logits = np.array([[math.log(3.0), -200.0]], np.float32).repeat(ROWS, axis=0)
    actions, log_probs = acting.sample_bernoulli(logits, np.random.default_rng(0))
    assert actions[:, 0].mean() == pytest.approx(0.75, abs=0.02)
    assert actions[:, 1].sum() == 0
    torch.testing.assert_close(
        torch.from_numpy(log_probs), Bernoulli(torch.from_numpy(logits)).log_prob(torch.from_numpy(actions))
    )


def test_real_actions_have_the_mean_and_deviation_that_they_should() -> None:
    mean, log_std = np.full((ROWS, 2), 3.0, np.float32), np.array([0.0, -5.0], np.float32)
    actions, log_probs = acting.sample_gaussian(mean, log_std, np.random.default_rng(0))
    np.testing.assert_allclose(actions.mean(axis=0), [3.0, 3.0], atol=0.04)
    np.testing.assert_allclose(actions.std(axis=0), np.exp(log_std), rtol=0.03)
    distribution = DiagonalGaussian(torch.from_numpy(mean), torch.from_numpy(log_std))
    torch.testing.assert_close(
        torch.from_numpy(log_probs), distribution.log_prob(torch.from_numpy(actions)), rtol=1e-5, atol=1e-5
    )
    assert actions.dtype == log_probs.dtype == np.float32


def test_the_most_probable_action_is_taken_component_by_component() -> None:
    logits = np.array([[0.0, 2.0, 1.0, 5.0, 4.0]], np.float32)
    assert acting.most_probable_categorical(logits, (3, 2)).tolist() == [[1, 0]]


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("masked", [False, True], ids=["plain", "masked"])
@pytest.mark.parametrize("shared", [False, True], ids=["two trunks", "one trunk"])
def test_a_fragment_is_acted_out_as_torch_would(activation: Activation, masked: bool, shared: bool) -> None:
    seen = spaces.Box(-1.0, 1.0, (3,), np.float32)
    space = spaces.Dict({"seen": seen, "action_mask": spaces.MultiBinary(4)}) if masked else seen
    spec = PolicySpec(
        observation_codec(space), action_codec(spaces.Discrete(4)), (8, 6), activation, shared_trunk=shared
    )
    policy = spec.build(seed=1)
    rng = np.random.default_rng(2)
    observations = rng.normal(size=(5, 2, *spec.observations.shape)).astype(np.float32)
    if spec.observations.mask is not None:
        observations[..., spec.observations.mask] = [[1, 0, 1, 1], [0, 1, 0, 0]]
    fragment = policy.act_out(5, 2, np.random.default_rng(3))
    assert fragment is not None
    actions = np.stack([fragment.act(step) for step in observations])

    rows = torch.from_numpy(observations).flatten(0, 1)
    distribution, _ = policy(rows)
    noise = np.random.default_rng(3).gumbel(size=(5, 2, 4))
    expected = (distribution.logits.detach().numpy().reshape(5, 2, 4) + noise).argmax(axis=2)
    np.testing.assert_array_equal(actions, expected)
    log_probs = distribution.log_prob(torch.from_numpy(actions).flatten()).detach().numpy()
    np.testing.assert_allclose(fragment.log_probs(actions).flatten(), log_probs, atol=1e-6)
    if masked:
        assert (actions[:, 1] == 1).all()


def test_new_weights_are_those_of_the_next_fragment() -> None:
    spec = PolicySpec(
        observation_codec(spaces.Box(-1.0, 1.0, (3,), np.float32)), action_codec(spaces.Discrete(2))
    )
    policy, other = spec.build(seed=1), spec.build(seed=2)
    observations = np.ones((4, 3), np.float32)

    def log_probs(policy: ActorCritic) -> NDArray[np.float32]:
        fragment = policy.act_out(1, 4, np.random.default_rng(0))
        assert fragment is not None
        return fragment.log_probs(fragment.act(observations)[None])

    before = log_probs(policy)
    policy.load_numpy(other.parameters_numpy())
    after = log_probs(policy)
    np.testing.assert_array_equal(after, log_probs(other))
    assert (after != before).any()
