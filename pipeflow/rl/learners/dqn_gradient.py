"""Passes through a network of action values without autograd: what a Q-learner computes for every sample.

Apart from `backpropagation`, which knows layers and actor-critics, and from `dqn`, which knows what is optimised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor

from pipeflow.rl.action_values import QNetwork
from pipeflow.rl.backpropagation import LinearGradient, TrunkGradient


class PassedValues(NamedTuple):
    """What a forward pass gave: Q [B, A], and what every layer read, [B, in] each."""

    values: Tensor
    inputs: Sequence[Tensor]


class ActionValueGradient:
    """Forward and backward passes through a perceptron of action values, whose parameters have gradients.

    network: not kept; the passes work on its parameters' memory. Made by `of`, which knows for which networks.
    """

    def __init__(self, network: QNetwork) -> None:
        self._feature_count = network.spec.observations.feature_count
        self._mask = network.spec.observations.mask
        self._trunk = TrunkGradient(network.trunk, network.spec.activation)
        self._action_head = LinearGradient.of(network.action_head)
        value_head = network.value_head
        self._value_head = None if value_head is None else LinearGradient.of(value_head)

    @classmethod
    def of(cls, network: QNetwork) -> Self | None:
        """The passes of a network that is nothing but linear layers and activations; None for any other."""
        return cls(network) if network.features is None else None

    def __call__(self, observations: Tensor) -> Tensor:
        """Q [B, A] of observations [B, D], as `QNetwork.forward` gives it."""
        return self.forward(observations).values

    def forward(self, observations: Tensor) -> PassedValues:
        """Q of observations [B, D]; -inf for an action that a mask excludes."""
        inputs = self._trunk.forward(observations[:, : self._feature_count])
        values = self._action_head.forward(inputs[-1])
        if self._value_head is not None:
            values = self._value_head.forward(inputs[-1]) + values - values.mean(dim=1, keepdim=True)
        if self._mask is not None:
            values = values.masked_fill(observations[:, self._mask] == 0, -torch.inf)
        return PassedValues(values, inputs)

    def backward(self, passed: PassedValues, gradient: Tensor) -> None:
        """Overwrite the parameters' gradients by those of a loss whose gradient in Q is `gradient` [B, A].

        It must be 0 for an action that a mask excludes.
        """
        features = passed.inputs[-1]
        if self._value_head is None:
            in_features = self._action_head.backward(features, gradient)
        else:
            # Q = V + A - mean(A): a change of A is taken back from all actions, one of V counts for each.
            centred = gradient - gradient.mean(dim=1, keepdim=True)
            in_features = self._action_head.backward(features, centred)
            in_features += self._value_head.backward(features, gradient.sum(dim=1, keepdim=True))
        self._trunk.backward(passed.inputs, in_features)
