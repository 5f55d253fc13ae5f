"""The gradient of perceptrons without autograd: the forward pass keeps what the backward pass reads.

Apart from `policies`, whose modules remain the definition of what is computed. One minibatch of a small network
is some thirty operators; as many nodes of a graph, made anew for every minibatch, take longer than the
arithmetic. Everything here is torch, without a graph, so it runs on whatever device the module is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from pipeflow.rl.networks import Activation
from pipeflow.rl.policies import ActorCritic


@dataclass(frozen=True, eq=False)
class Passed:
    """What a forward pass gave: policy outputs [B, P], values [B], and what every layer read, [B, in] each.

    policy_inputs, value_inputs: of the hidden layers, and last of the output layer.
    """

    outputs: Tensor
    values: Tensor
    policy_inputs: Sequence[Tensor]
    value_inputs: Sequence[Tensor]


class PerceptronGradient:
    """Forward and backward passes through an actor-critic of perceptrons, whose parameters have gradients.

    policy: not kept; the passes work on its parameters' memory, so a policy that was moved or given new
    parameters needs a new one. Made by `of`, which knows which policies this is for.
    """

    def __init__(self, policy: ActorCritic) -> None:
        activation, value_trunk = policy.spec.activation, policy.value_trunk
        self._feature_count = policy.spec.observations.feature_count
        self._policy_trunk = TrunkGradient(policy.policy_trunk, activation)
        self._value_trunk = None if value_trunk is None else TrunkGradient(value_trunk, activation)
        self._policy_head = LinearGradient.of(policy.policy_head)
        self._value_head = LinearGradient.of(policy.value_head)

    @classmethod
    def of(cls, policy: ActorCritic) -> Self | None:
        """The gradient of a policy that is nothing but linear layers and activations; None for any other."""
        return cls(policy) if policy.features is None and policy.memory is None else None

    def forward(self, observations: Tensor) -> Passed:
        """The outputs for observations [B, D], before any mask."""
        features = observations[:, : self._feature_count]
        policy_inputs = self._policy_trunk.forward(features)
        value_inputs = policy_inputs if self._value_trunk is None else self._value_trunk.forward(features)
        values = self._value_head.forward(value_inputs[-1]).squeeze(1)
        return Passed(self._policy_head.forward(policy_inputs[-1]), values, policy_inputs, value_inputs)

    def backward(self, passed: Passed, outputs: Tensor, values: Tensor) -> None:
        """Overwrite the parameters' gradients by those of a loss.

        outputs, values: its gradient in the policy outputs [B, P] and in the values [B].
        """
        policy_features, value_features = passed.policy_inputs[-1], passed.value_inputs[-1]
        from_policy = self._policy_head.backward(policy_features, outputs)
        from_value = self._value_head.backward(value_features, values.unsqueeze(1))
        if self._value_trunk is None:
            self._policy_trunk.backward(passed.policy_inputs, from_policy + from_value)
        else:
            self._policy_trunk.backward(passed.policy_inputs, from_policy)
            self._value_trunk.backward(passed.value_inputs, from_value)


class TrunkGradient:
    """Forward and backward passes through hidden layers: linear ones, each with the activation behind it."""

    def __init__(self, trunk: nn.Sequential, activation: Activation) -> None:
        self._layers = [LinearGradient.of(layer) for layer in trunk if isinstance(layer, nn.Linear)]
        self._activation = activation

    def forward(self, x: Tensor) -> list[Tensor]:
        """What every layer reads, from x [B, in] on, and what the last one gives."""
        inputs = [x]
        for layer in self._layers:
            x = layer.forward(x)
            x = x.tanh_() if self._activation == "tanh" else x.relu_()
            inputs.append(x)
        return inputs

    def backward(self, inputs: Sequence[Tensor], gradient: Tensor) -> None:
        """Set the gradients of the layers, from the gradient [B, out] in what the last one gives.

        inputs: what `forward` returned.
        """
        for index in range(len(self._layers) - 1, -1, -1):
            given = inputs[index + 1]
            if self._activation == "tanh":
                gradient = torch.ops.aten.tanh_backward(gradient, given)
            else:
                gradient = torch.ops.aten.threshold_backward(gradient, given, 0)
            self._layers[index].set_gradients(inputs[index], gradient)
            if index:  # nobody asks for the gradient in the observations
                gradient = gradient @ self._layers[index].weight


@dataclass(frozen=True, eq=False)
class LinearGradient:
    """A linear layer's weight [out, in], also transposed, and bias [out], and the memory of their gradients."""

    weight: Tensor
    transposed: Tensor
    bias: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor

    @classmethod
    def of(cls, layer: nn.Linear) -> Self:
        """Those of a layer whose parameters have gradients."""
        weight, bias = layer.weight, layer.bias
        assert weight.grad is not None  # the learner gave it memory
        assert bias.grad is not None
        return cls(weight.detach(), weight.detach().t(), bias.detach(), weight.grad, bias.grad)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, in] -> [B, out]."""
        return torch.addmm(self.bias, x, self.transposed)

    def backward(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Set the parameters' gradients, and return that in x."""
        self.set_gradients(x, gradient)
        return gradient @ self.weight

    def set_gradients(self, x: Tensor, gradient: Tensor) -> None:
        """Set the parameters' gradients, from x [B, in] and the gradient [B, out] in what was given."""
        torch.mm(gradient.t(), x, out=self.weight_gradient)
        torch.sum(gradient, 0, out=self.bias_gradient)
