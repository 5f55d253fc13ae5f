"""Distributions: against torch.distributions, the numeric cases, and what happens at the edges of float32."""

from __future__ import annotations

import math

import pytest
import torch
from torch import distributions as reference

from pipeflow.rl.distributions import Bernoulli, Categorical, DiagonalGaussian, Distribution, MultiCategorical
from tests.cases import Case
from tests.rl.selected_cases import selected

GENERATOR = torch.Generator().manual_seed(0)
LOGITS, OTHER = torch.randn(2, 5, 4, generator=GENERATOR)
LOG_STD = torch.tensor([0.1, -0.5, 0.3, 0.0])


@pytest.mark.parametrize("case", selected("kl", "KL-02"))
def test_an_underflowed_probability_adds_nothing_to_a_divergence(case: Case) -> None:
    previous = Categorical(torch.tensor([case["inputs"]["prev_logits"]]))
    current = Categorical(torch.tensor([case["inputs"]["cur_logits"]]))
    kl = previous.kl(current).item()
    assert kl == pytest.approx(case["expected"]["kl"], abs=case["tolerance"])
    assert case["inputs"]["kl_coeff"] * kl == case["expected"]["kl_coeff_times_kl"]


PAIRS = [
    pytest.param(
        Categorical(LOGITS),
        Categorical(OTHER),
        reference.Categorical(logits=LOGITS),
        reference.Categorical(logits=OTHER),
        id="categorical",
    ),
    pytest.param(
        Bernoulli(LOGITS),
        Bernoulli(OTHER),
        reference.Independent(reference.Bernoulli(logits=LOGITS), 1),
        reference.Independent(reference.Bernoulli(logits=OTHER), 1),
        id="bernoulli",
    ),
    pytest.param(
        DiagonalGaussian(LOGITS, LOG_STD),
        DiagonalGaussian(OTHER, -LOG_STD),
        reference.Independent(reference.Normal(LOGITS, LOG_STD.exp()), 1),
        reference.Independent(reference.Normal(OTHER, (-LOG_STD).exp()), 1),
        id="gaussian",
    ),
]


@pytest.mark.parametrize(("ours", "other", "theirs", "their_other"), PAIRS)
def test_numbers_agree_with_torch(
    ours: Categorical, other: Categorical, theirs: reference.Distribution, their_other: reference.Distribution
) -> None:
    actions = ours.sample(torch.Generator().manual_seed(1))
    their_actions = actions.float() if isinstance(theirs, reference.Independent) else actions
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(their_actions))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    torch.testing.assert_close(ours.kl(other), reference.kl_divergence(theirs, their_other))


def test_several_choices_are_the_sum_of_their_parts() -> None:
    ours, other = MultiCategorical(LOGITS, (3, 1)), MultiCategorical(OTHER, (3, 1))
    first, other_first = Categorical(LOGITS[:, :3]), Categorical(OTHER[:, :3])
    actions = torch.tensor([[0, 0], [1, 0], [2, 0], [1, 0], [0, 0]])
    torch.testing.assert_close(ours.log_prob(actions), first.log_prob(actions[:, 0]))
    torch.testing.assert_close(ours.entropy(), first.entropy())
    torch.testing.assert_close(ours.kl(other), first.kl(other_first))
    assert ours.mode[:, 0].equal(first.mode)
    assert ours.sample().shape == (5, 2)


FREQUENCIES = [
    pytest.param(
        Categorical(torch.tensor([[0.5, 0.25, 0.25]]).log().expand(40_000, 3)), [0.75], id="categorical"
    ),
    pytest.param(
        MultiCategorical(torch.tensor([[0.3, 0.7, 0.6, 0.4]]).log().expand(40_000, 4), (2, 2)),
        [0.7, 0.4],
        id="multi_categorical",
    ),
    pytest.param(
        Bernoulli(torch.tensor([[math.log(3.0), 0.0]]).expand(40_000, 2)), [0.75, 0.5], id="bernoulli"
    ),
    pytest.param(
        DiagonalGaussian(torch.tensor([[1.0, -1.0]]).expand(40_000, 2), torch.zeros(2)),
        [1.0, -1.0],
        id="gaussian",
    ),
]


@pytest.mark.parametrize(("distribution", "mean"), FREQUENCIES)
def test_samples_have_the_mean_that_they_should(distribution: Distribution, mean: list[float]) -> None:
    samples = distribution.sample(torch.Generator().manual_seed(2)).float().reshape(40_000, -1)
    # Five standard errors, for a standard deviation of at most one.
    torch.testing.assert_close(samples.mean(dim=0), torch.tensor(mean), rtol=0, atol=0.025)


@pytest.mark.parametrize(("distribution", "mean"), FREQUENCIES)
def test_samples_repeat_with_the_generator(distribution: Distribution, mean: list[float]) -> None:
    first = distribution.sample(torch.Generator().manual_seed(3))
    assert first.equal(distribution.sample(torch.Generator().manual_seed(3)))
    assert not first.equal(distribution.sample(torch.Generator().manual_seed(4)))


def test_an_excluded_action_is_never_taken_and_adds_nothing() -> None:
    excluded = Categorical(torch.tensor([[1.0, 2.0, -torch.inf, 0.5]]))
    kept = Categorical(torch.tensor([[1.0, 2.0, 0.5]]))
    torch.testing.assert_close(excluded.entropy(), kept.entropy())
    assert excluded.kl(excluded).tolist() == [0.0]
    many = Categorical(excluded.logits.expand(10_000, 4))
    assert not (many.sample(torch.Generator().manual_seed(0)) == 2).any()


def test_the_gradient_of_an_entropy_with_an_excluded_action_is_finite() -> None:
    logits = torch.tensor([[1.0, 2.0, -torch.inf]], requires_grad=True)
    (gradient,) = torch.autograd.grad(Categorical(logits).entropy().sum(), logits)
    assert gradient.isfinite().all()


def test_certain_bits_have_finite_numbers() -> None:
    certain = Bernoulli(torch.tensor([[200.0, -200.0]]))
    assert certain.entropy().item() == pytest.approx(0.0)
    assert certain.log_prob(torch.tensor([[1, 0]])).item() == pytest.approx(0.0)
    assert certain.log_prob(torch.tensor([[0, 0]])).item() == pytest.approx(-200.0)


def test_the_mode_is_the_most_probable_action() -> None:
    assert Categorical(torch.tensor([[0.0, 2.0, 1.0]])).mode.tolist() == [1]
    assert Bernoulli(torch.tensor([[-0.1, 0.1]])).mode.tolist() == [[0, 1]]
    assert DiagonalGaussian(torch.tensor([[0.5]]), torch.zeros(1)).mode.tolist() == [[0.5]]
