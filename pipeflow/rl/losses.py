"""Losses and their parts as pure torch functions: no modules, no state, one formula each.

Apart from the learners, which decide what is optimised when, so that a formula can be read and tested by
hand. `log_ratio` is everywhere log pi_new(a|s) - log pi_old(a|s), per row.
"""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_surrogate_loss(log_ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """PPO's policy loss, to be minimised.

    log_ratio, advantages: [B]. clip: distance of the probability ratio from 1 beyond which nothing is gained.
    Returns a scalar, the mean over rows.
    Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017), equation 7.
    """
    ratio = log_ratio.exp()
    return -torch.min(ratio * advantages, ratio.clamp(1.0 - clip, 1.0 + clip) * advantages).mean()


def value_loss(
    values: Tensor, targets: Tensor, old_values: Tensor | None = None, clip: float | None = None
) -> Tensor:
    """Mean squared error of the values.

    With `clip`, a row's error is the worse of those before and after clipping the change of its value.
    values, targets, old_values: [B]; old_values are those that the acting policy gave, needed with `clip`.
    Raises ValueError if `clip` is given without old_values.
    Source of the clipping: Huang et al., "The 37 Implementation Details of PPO" (2022), detail 9.
    """
    if clip is None:
        return torch.nn.functional.mse_loss(values, targets)
    if old_values is None:
        raise ValueError("value_loss with clip needs old_values, the values that the acting policy gave")
    clipped = old_values + (values - old_values).clamp(-clip, clip)
    return torch.max((values - targets).square(), (clipped - targets).square()).mean()


def kl_k1(log_ratio: Tensor) -> Tensor:
    """KL(old || new) as the mean of -log_ratio over actions of the old policy: unbiased, but often negative.

    Source: Schulman, "Approximating KL Divergence" (2020), k1. Do not stop early on it: see `approx_kl`.
    """
    return -log_ratio.mean()


def approx_kl(log_ratio: Tensor) -> Tensor:
    """KL(old || new) as the mean of ratio - 1 - log_ratio over actions of the old policy.

    Unbiased as `kl_k1` is, and never negative.
    Source: Schulman, "Approximating KL Divergence" (2020), k3.
    """
    return (log_ratio.expm1() - log_ratio).mean()


def clip_fraction(log_ratio: Tensor, clip: float) -> Tensor:
    """The share of rows whose probability ratio is further than `clip` from 1."""
    return (log_ratio.expm1().abs() > clip).float().mean()


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean over the rows that count; 0 where none does.

    values: any shape. mask: the same shape, False where a row is padding or a reset row; whatever stands there,
    nan too, has no influence, and gets no gradient.
    """
    return values.masked_fill(~mask, 0.0).sum() / mask.sum().clamp(min=1)


def normalise_advantages(advantages: Tensor, mask: Tensor | None = None, epsilon: float = 1e-8) -> Tensor:
    """Advantages with mean 0 and standard deviation 1, by the population's standard deviation.

    advantages: any shape. mask: the same shape, False where a row does not count; those become 0.
    A single row, and rows that are all equal, become 0: there is nothing to prefer among them.
    """
    # In float64 the mean of equal float32 numbers is exact, so that no rounding is blown up by 1 / epsilon.
    wide = advantages.double()
    if mask is None:
        variance, mean = torch.var_mean(wide, correction=0)
        return ((wide - mean) / (variance.sqrt() + epsilon)).to(advantages.dtype)
    weights = mask.double()
    count = weights.sum().clamp(min=1.0)
    mean = (wide * weights).sum() / count
    centred = (wide - mean) * weights
    deviation = (centred.square().sum() / count).sqrt()
    return (centred / (deviation + epsilon)).to(advantages.dtype)


def explained_variance(values: Tensor, targets: Tensor) -> Tensor:
    """1 - Var(targets - values) / Var(targets): 1 is perfect, 0 no better than a constant.

    nan where the targets are constant.
    """
    variance = targets.var(correction=0)
    unexplained = (targets - values).var(correction=0)
    return torch.where(variance > 0, 1.0 - unexplained / variance, torch.nan)
