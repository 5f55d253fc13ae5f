"""Losses: the numeric cases, and small batches by hand."""

from __future__ import annotations

import math

import pytest
import torch

from pipeflow.rl.losses import (
    approx_kl,
    clip_fraction,
    clipped_surrogate_loss,
    explained_variance,
    kl_k1,
    masked_mean,
    normalise_advantages,
    value_loss,
)
from tests.cases import Case, cases
from tests.rl.selected_cases import selected


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("case", selected("kl", "KL-01"))
def test_kl_estimators_give_the_numbers_of_the_case(case: Case) -> None:
    log_ratio = tensor(*case["inputs"]["log_ratio_new_minus_old"])
    assert kl_k1(log_ratio).item() == pytest.approx(case["expected"]["k1"], abs=case["tolerance"])
    assert approx_kl(log_ratio).item() == pytest.approx(case["expected"]["k3"], abs=case["tolerance"])


def test_the_kl_that_stops_is_never_negative() -> None:
    log_ratio = torch.randn(1000, generator=torch.Generator().manual_seed(0)) * 1e-3
    assert approx_kl(log_ratio).item() >= 0.0
    assert approx_kl(torch.zeros(3)).item() == 0.0


@pytest.mark.parametrize("case", selected("sequence_mask", "MSK-01"))
def test_padding_does_not_divide_a_mean(case: Case) -> None:
    values = torch.tensor(case["inputs"]["values"], dtype=torch.float64)
    mask = torch.tensor(case["inputs"]["mask"], dtype=torch.bool)
    mean = masked_mean(values, mask).item()
    assert mean == pytest.approx(case["expected"]["mean"], abs=case["tolerance"])
    assert mean != pytest.approx(case["wrong_values"]["mean"], abs=case["tolerance"])


def test_what_is_masked_may_be_nan_and_gets_no_gradient() -> None:
    values = torch.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    mean = masked_mean(values, torch.tensor([True, False, True]))
    assert mean.item() == 2.0
    assert torch.autograd.grad(mean, values)[0].tolist() == [0.5, 0.0, 0.5]
    assert masked_mean(values, torch.zeros(3, dtype=torch.bool)).item() == 0.0


@pytest.mark.parametrize("case", cases("advantage_norm"))
def test_normalised_advantages_give_the_numbers_of_the_case(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    advantages = torch.tensor(inputs["advantages"], dtype=torch.float64)
    mask = torch.tensor(inputs["mask"], dtype=torch.bool) if "mask" in inputs else None
    normalised = normalise_advantages(advantages, mask)
    assert normalised.isfinite().all()
    if "allowed_values" in expected:
        assert normalised.item() in expected["allowed_values"]
    if "normalised" in expected:
        assert normalised.tolist() == pytest.approx(expected["normalised"], abs=case["tolerance"])
    if mask is not None:
        deviation = math.sqrt(expected["var_ddof0"]) + 1e-8
        by_hand = torch.where(mask, (advantages - expected["mean"]) / deviation, 0.0)
        torch.testing.assert_close(normalised, by_hand, rtol=0, atol=case["tolerance"])
        assert normalised[mask].mean().item() == pytest.approx(0.0, abs=case["tolerance"])


def test_equal_float32_advantages_normalise_to_exactly_zero() -> None:
    assert normalise_advantages(torch.full((3,), 0.1)).tolist() == [0.0, 0.0, 0.0]


def test_a_mask_that_keeps_nothing_gives_zeros() -> None:
    assert normalise_advantages(torch.ones(2), torch.zeros(2, dtype=torch.bool)).tolist() == [0.0, 0.0]


def test_the_surrogate_takes_the_worse_of_clipped_and_unclipped() -> None:
    log_ratio, advantages = tensor(1.5, 1.5, 0.5, 0.5).log(), tensor(1.0, -1.0, 1.0, -1.0)
    # Gains: min(1.5, 1.2), min(-1.5, -1.2), min(0.5, 0.8), min(-0.5, -0.8).
    expected = -(1.2 - 1.5 + 0.5 - 0.8) / 4
    assert clipped_surrogate_loss(log_ratio, advantages, 0.2).item() == pytest.approx(expected)


def test_the_surrogate_has_no_gradient_where_clipping_won() -> None:
    log_ratio = tensor(1.5, 0.9).log().requires_grad_()
    (gradient,) = torch.autograd.grad(clipped_surrogate_loss(log_ratio, tensor(1.0, 1.0), 0.2), log_ratio)
    assert gradient.tolist() == pytest.approx([0.0, -0.45])


def test_the_share_of_clipped_rows_counts_both_sides() -> None:
    assert clip_fraction(tensor(1.3, 0.7, 1.1, 1.0).log(), 0.2).item() == 0.5


def test_the_value_loss_is_the_mean_squared_error() -> None:
    assert value_loss(tensor(1.0, 2.0), tensor(0.0, 4.0)).item() == 2.5


def test_a_clipped_value_cannot_hide_an_error() -> None:
    # Clipped to 0.2, the value misses its target of 1 by more than the unclipped one, and that error counts.
    loss = value_loss(tensor(1.0), tensor(1.0), old_values=tensor(0.0), clip=0.2)
    assert loss.item() == pytest.approx(0.64)


def test_value_clipping_needs_the_old_values() -> None:
    with pytest.raises(ValueError, match="old_values"):
        value_loss(tensor(1.0), tensor(1.0), clip=0.2)


def test_explained_variance_is_one_for_the_targets_and_nan_for_constant_ones() -> None:
    targets = tensor(1.0, 2.0, 4.0)
    assert explained_variance(targets, targets).item() == 1.0
    assert explained_variance(torch.zeros(3), targets).item() == 0.0
    assert math.isnan(explained_variance(targets, torch.ones(3)).item())
