"""Action distributions in torch, as frozen dataclasses over the network's outputs: what losses differentiate.

Apart from the policies, which only produce the parameters, and from `acting`, which samples the same four
families in numpy. Everything is computed in log space: a probability that underflows to zero contributes zero
to an entropy or a divergence, never 0 * inf. A logit of -inf is an action that cannot happen. The
log-probability, entropy and divergence of an action of several components are sums over them, one number a
row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from pipeflow.rl.basic_spaces import NoValidAction


class Distribution(Protocol):
    """A batch of B distributions over actions."""

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One action a row, [B, *act], without gradient."""
        ...

    @property
    def mode(self) -> Tensor:
        """The most probable action of each row, [B, *act]."""
        ...

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability (density, for real actions) of `actions` [B, *act], as [B]."""
        ...

    def entropy(self) -> Tensor:
        """Entropy in nats, [B]; differential entropy for real actions, which may be negative."""
        ...

    def kl(self, other: Self) -> Tensor:
        """KL(self || other) in nats, [B]."""
        ...


@dataclass(frozen=True, eq=False)
class Categorical:
    """One of K actions. logits: [B, K], unnormalised; actions: [B] int64."""

    logits: Tensor

    @cached_property
    def log_probabilities(self) -> Tensor:
        """Normalised logits, [B, K]."""
        return F.log_softmax(self.logits, dim=-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One action a row, by the Gumbel maximum, whose precision does not end at small probabilities."""
        logits = self.logits.detach()
        exponential = torch.empty_like(logits).exponential_(generator=generator)
        return (logits - exponential.log()).argmax(dim=-1)

    @property
    def mode(self) -> Tensor:
        """The action of the largest logit."""
        return self.logits.argmax(dim=-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability of `actions` [B]."""
        return self.log_probabilities.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """Entropy, [B]."""
        log_probabilities = _finite(self.log_probabilities)
        return -(log_probabilities.exp() * log_probabilities).sum(dim=-1)

    def kl(self, other: Self) -> Tensor:
        """KL(self || other), [B]; very large where `other` excludes an action that self takes."""
        mine, theirs = _finite(self.log_probabilities), _finite(other.log_probabilities)
        return (mine.exp() * (mine - theirs)).sum(dim=-1)


@dataclass(frozen=True, eq=False)
class MultiCategorical:
    """Several independent choices.

    logits: [B, sum of sizes]; sizes: K of each; actions: [B, len(sizes)] int64.
    """

    logits: Tensor
    sizes: tuple[int, ...]

    @cached_property
    def components(self) -> tuple[Categorical, ...]:
        """The choices one by one."""
        return tuple(Categorical(part) for part in torch.split(self.logits, list(self.sizes), dim=-1))

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One action a row, [B, len(sizes)]."""
        return torch.stack([component.sample(generator) for component in self.components], dim=-1)

    @property
    def mode(self) -> Tensor:
        """The most probable action, component by component."""
        return torch.stack([component.mode for component in self.components], dim=-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability of `actions` [B, len(sizes)], [B]."""
        terms = [component.log_prob(actions[:, i]) for i, component in enumerate(self.components)]
        return torch.stack(terms).sum(dim=0)

    def entropy(self) -> Tensor:
        """Entropy, [B]."""
        return torch.stack([component.entropy() for component in self.components]).sum(dim=0)

    def kl(self, other: Self) -> Tensor:
        """KL(self || other), [B]."""
        pairs = zip(self.components, other.components, strict=True)
        return torch.stack([mine.kl(theirs) for mine, theirs in pairs]).sum(dim=0)


@dataclass(frozen=True, eq=False)
class Bernoulli:
    """K independent bits. logits: [B, K], log-odds of a one; actions: [B, K] of zeros and ones, int64."""

    logits: Tensor

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One action a row, [B, K]."""
        return torch.bernoulli(self.logits.detach().sigmoid(), generator=generator).long()

    @property
    def mode(self) -> Tensor:
        """A one where it is the likelier."""
        return (self.logits > 0).long()

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability of `actions` [B, K], [B]."""
        # log sigmoid(x) for a one, log sigmoid(-x) for a zero.
        return F.logsigmoid(self.logits * (2 * actions - 1)).sum(dim=-1)

    def entropy(self) -> Tensor:
        """Entropy, [B]."""
        return (F.softplus(self.logits) - self.logits.sigmoid() * self.logits).sum(dim=-1)

    def kl(self, other: Self) -> Tensor:
        """KL(self || other), [B]."""
        difference = self.logits.sigmoid() * (self.logits - other.logits)
        return (difference - F.softplus(self.logits) + F.softplus(other.logits)).sum(dim=-1)


@dataclass(frozen=True, eq=False)
class DiagonalGaussian:
    """D independent real numbers.

    mean: [B, D]; log_std: [D] or [B, D]; actions: [B, D] float32, without bounds.
    """

    mean: Tensor
    log_std: Tensor

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One action a row, [B, D]."""
        mean = self.mean.detach()
        noise = torch.empty_like(mean).normal_(generator=generator)
        return mean + self.log_std.detach().exp() * noise

    @property
    def mode(self) -> Tensor:
        """The mean."""
        return self.mean

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-density of `actions` [B, D], [B]."""
        z = (actions - self.mean) * torch.exp(-self.log_std)
        return (-0.5 * z.square() - (self.log_std + 0.5 * math.log(2 * math.pi))).sum(dim=-1)

    def entropy(self) -> Tensor:
        """Differential entropy, [B]."""
        constant = 0.5 * math.log(2 * math.pi * math.e)
        return (self.log_std + constant).expand_as(self.mean).sum(dim=-1)

    def kl(self, other: Self) -> Tensor:
        """KL(self || other), [B]."""
        variance_ratio = torch.exp(2 * (self.log_std - other.log_std))
        distance = ((self.mean - other.mean) * torch.exp(-other.log_std)).square()
        return (other.log_std - self.log_std + 0.5 * (variance_ratio + distance - 1)).sum(dim=-1)


def masked(logits: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The logits with -inf where the mask is False, and no gradient through those.

    logits, mask: [B, sum of sizes]; sizes: number of categories of each component.
    Raises NoValidAction if a component of a row has nothing to choose from.
    """
    impossible = torch.stack([~part.any(dim=-1) for part in torch.split(mask, list(sizes), dim=-1)])
    if impossible.any():
        raise NoValidAction.in_row(int(impossible.any(dim=0).nonzero()[0]))
    return logits.masked_fill(~mask, -torch.inf)


def _finite(log_probabilities: Tensor) -> Tensor:
    """-inf replaced by the lowest finite number, so that its product with a probability of zero is zero."""
    return log_probabilities.clamp(min=torch.finfo(log_probabilities.dtype).min)
