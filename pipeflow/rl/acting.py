"""Acting in numpy: the forward pass of small networks, and sampling with log-probabilities.

Apart from the torch policies because of its cost alone. One torch operator on eight rows spends more time on
its dispatch than on its arithmetic, and a rollout worker does little else: these functions take about a third
of the time. They compute the same numbers, up to float32 rounding, as `policies` and `distributions` do in
torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeflow.rl.basic_spaces import NoValidAction

Float32Array = NDArray[np.float32]

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Layer:
    """x -> x @ weight + bias. weight: [in, out]; bias: [out]."""

    weight: Float32Array
    bias: Float32Array


@dataclass(frozen=True, eq=False)
class LSTMCell:
    """One step of a long short-term memory of H units, whose state is [hidden, cell].

    inputs: [in, 4H], recurrent: [H, 4H], with the gates in torch's order: input, forget, candidate, output.
    Source: Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997), with the forget gate of Gers et al.,
    "Learning to Forget" (2000).
    """

    inputs: Layer
    recurrent: Layer

    def __call__(self, x: Float32Array, state: Float32Array) -> tuple[Float32Array, Float32Array]:
        """What is remembered after x [N, in]: (hidden [N, H], state [N, 2H])."""
        size = len(self.recurrent.weight)
        gates = affine(self.inputs, x)
        gates += affine(self.recurrent, state[:, :size])
        candidate = np.tanh(gates[:, 2 * size : 3 * size])
        _sigmoid_in_place(gates)
        following = np.empty_like(state)
        remembered, cell = following[:, :size], following[:, size:]
        np.multiply(gates[:, size : 2 * size], state[:, size:], out=cell)
        cell += gates[:, :size] * candidate
        np.multiply(gates[:, 3 * size :], np.tanh(cell), out=remembered)
        return remembered, following


@dataclass(frozen=True, eq=False)
class GRUCell:
    """One step of a gated recurrent unit of H units, whose state is what it gives.

    inputs: [in, 3H], recurrent: [H, 3H], with the gates in torch's order: reset, update, candidate.
    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder" (2014), with the reset gate
    after the product, as in torch.
    """

    inputs: Layer
    recurrent: Layer

    def __call__(self, x: Float32Array, state: Float32Array) -> tuple[Float32Array, Float32Array]:
        """What is remembered after x [N, in]: (hidden [N, H], state [N, H])."""
        size = len(self.recurrent.weight)
        from_input, from_state = affine(self.inputs, x), affine(self.recurrent, state)
        gates = from_input[:, : 2 * size] + from_state[:, : 2 * size]
        _sigmoid_in_place(gates)
        reset, keep = gates[:, :size], gates[:, size:]
        candidate = np.tanh(from_input[:, 2 * size :] + reset * from_state[:, 2 * size :])
        following = candidate + keep * (state - candidate)
        return following, following


@dataclass(frozen=True, eq=False)
class Perceptron:
    """A network of policy and value, as arrays that may be views of a torch module's own memory.

    policy_layers, value_layers: hidden layers; value_layers is None where the two share theirs. policy_head,
    value_head: the output layers, without activation. activation: applied in place after a hidden layer.
    memory: between the shared hidden layers and the output layers; None if the network has none.
    """

    policy_layers: Sequence[Layer]
    value_layers: Sequence[Layer] | None
    policy_head: Layer
    value_head: Layer
    activation: Callable[[Float32Array], object]
    memory: LSTMCell | GRUCell | None = None

    def outputs(
        self, observations: Float32Array, state: Float32Array
    ) -> tuple[Float32Array, Float32Array, Float32Array]:
        """What the heads give for observations [N, D]: (policy outputs [N, P], values [N], state [N, S])."""
        policy_features = hidden(self.policy_layers, self.activation, observations)
        if self.memory is not None:
            policy_features, state = self.memory(policy_features, state)
        if self.value_layers is None:
            value_features = policy_features
        else:
            value_features = hidden(self.value_layers, self.activation, observations)
        outputs = affine(self.policy_head, policy_features)
        return outputs, affine(self.value_head, value_features)[:, 0], state

    def values(self, observations: Float32Array, state: Float32Array) -> Float32Array:
        """Values [N] of observations [N, D]."""
        layers = self.policy_layers if self.value_layers is None else self.value_layers
        features = hidden(layers, self.activation, observations)
        if self.memory is not None:
            features, _ = self.memory(features, state)
        return affine(self.value_head, features)[:, 0]


class CategoricalFragment:
    """Draws the actions of one fragment, step by step, with weights that stay as they are meanwhile.

    network: whose policy's half is read; it has no memory. steps: T. rows: N. generator: of the noise that
    chooses, drawn for all steps at once. Log-probabilities are computed once too, at the end, and values not at
    all, so a step is three calls of numpy for each layer, all on arrays of equal shape: to add a bias by
    broadcasting would take longer than the product before it.
    """

    def __init__(self, network: Perceptron, steps: int, rows: int, generator: np.random.Generator) -> None:
        self._activation = network.activation
        self._layers = [(layer.weight, *_rows_of(layer, rows)) for layer in network.policy_layers]
        head = network.policy_head
        self._head, self._head_bias = head.weight, _rows_of(head, rows)[0]
        self._logits = np.empty((steps, rows, head.weight.shape[1]), np.float32)
        self._noise = generator.gumbel(size=self._logits.shape)
        self._step = 0

    def act(self, features: Float32Array, mask: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The next step's actions [N], by the Gumbel maximum.

        features: [N, D]. mask: [N, K], False where a category is excluded; None excludes nothing.
        Raises NoValidAction if a row of the mask allows nothing.
        """
        for weight, bias, x in self._layers:
            np.dot(features, weight, out=x)
            x += bias
            self._activation(x)
            features = x
        logits = self._logits[self._step]
        np.dot(features, self._head, out=logits)
        logits += self._head_bias
        if mask is not None:
            logits[...] = masked(logits, mask, (logits.shape[1],))
        actions: NDArray[np.int64] = (logits + self._noise[self._step]).argmax(axis=1)
        self._step += 1
        return actions

    def log_probs(self, actions: NDArray[np.int64]) -> Float32Array:
        """Log-probabilities [T, N] of the actions [T, N] that all steps drew."""
        logits = self._logits.reshape(-1, self._logits.shape[2])
        return categorical_log_probs(logits, actions.reshape(-1)).reshape(actions.shape)


def _rows_of(layer: Layer, rows: int) -> tuple[Float32Array, Float32Array]:
    """The layer's bias once for every row, and memory of that shape."""
    bias = np.repeat(layer.bias[None], rows, axis=0)
    return bias, np.empty_like(bias)


def affine(layer: Layer, x: Float32Array) -> Float32Array:
    """x [N, in] through a layer: [N, out]."""
    y: Float32Array = np.dot(x, layer.weight)  # less overhead than the operator @
    y += layer.bias
    return y


def hidden(
    layers: Sequence[Layer], activation: Callable[[Float32Array], object], x: Float32Array
) -> Float32Array:
    """x [N, in] through hidden layers, with the activation, applied in place, behind each."""
    for layer in layers:
        x = affine(layer, x)
        activation(x)
    return x


def tanh_in_place(x: Float32Array) -> None:
    """x <- tanh(x)."""
    np.tanh(x, out=x)


def relu_in_place(x: Float32Array) -> None:
    """x <- max(x, 0)."""
    np.maximum(x, 0.0, out=x)


def masked(logits: Float32Array, mask: NDArray[np.bool_], sizes: Sequence[int]) -> Float32Array:
    """The logits with -inf where the mask is False.

    logits, mask: [N, sum of sizes]; sizes: number of categories of each component.
    Raises NoValidAction if a component of a row has nothing to choose from.
    """
    start = 0
    for size in sizes:
        possible = mask[:, start : start + size].any(axis=1)
        if not possible.all():
            raise NoValidAction.in_row(int(np.flatnonzero(~possible)[0]))
        start += size
    return np.where(mask, logits, np.float32(-np.inf))


def sample_categorical(
    logits: Float32Array, generator: np.random.Generator
) -> tuple[NDArray[np.int64], Float32Array]:
    """One of K actions a row, by the Gumbel maximum; an action with a logit of -inf is never drawn.

    logits: [N, K], unnormalised. Returns (actions [N], their log-probabilities [N]).
    """
    actions = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    return actions, categorical_log_probs(logits, actions)


def categorical_log_probs(logits: Float32Array, actions: NDArray[np.int64]) -> Float32Array:
    """Log-probabilities [N] of the actions [N] under unnormalised logits [N, K]."""
    shifted = logits - np.maximum.reduce(logits, axis=1, keepdims=True)
    chosen = shifted[np.arange(len(logits)), actions]
    log_probs: Float32Array = chosen - np.log(np.add.reduce(np.exp(shifted), axis=1))
    return log_probs


def sample_multi_categorical(
    logits: Float32Array, sizes: Sequence[int], generator: np.random.Generator
) -> tuple[NDArray[np.int64], Float32Array]:
    """Several independent choices a row.

    logits: [N, sum of sizes]. Returns (actions [N, len(sizes)], joint log-probabilities [N]).
    """
    actions = np.empty((len(logits), len(sizes)), dtype=np.int64)
    log_probs = np.zeros(len(logits), dtype=np.float32)
    start = 0
    for i, size in enumerate(sizes):
        actions[:, i], component = sample_categorical(logits[:, start : start + size], generator)
        log_probs += component
        start += size
    return actions, log_probs


def sample_bernoulli(
    logits: Float32Array, generator: np.random.Generator
) -> tuple[NDArray[np.int64], Float32Array]:
    """K independent bits a row.

    logits: [N, K], log-odds of a one. Returns (actions [N, K], joint log-probabilities [N]).
    """
    actions = (logits + generator.logistic(size=logits.shape) > 0).astype(np.int64)
    # log sigmoid(x) for a one, log sigmoid(-x) for a zero.
    signed = np.where(actions == 1, logits, -logits)
    return actions, -np.logaddexp(np.float32(0.0), -signed).sum(axis=1)


def sample_gaussian(
    mean: Float32Array, log_std: Float32Array, generator: np.random.Generator
) -> tuple[Float32Array, Float32Array]:
    """D independent real numbers a row.

    mean: [N, D]; log_std: [D]. Returns (actions [N, D], joint log-densities [N]).
    """
    noise: Float32Array = generator.standard_normal(mean.shape, dtype=np.float32)
    deviation: Float32Array = np.exp(log_std)
    actions: Float32Array = np.add(mean, deviation * noise, dtype=np.float32)
    # Taken back from the rounded action, as a learner must, not from the noise that it was made of.
    z = (actions - mean) / deviation
    constant = log_std.sum() + np.float32(_HALF_LOG_TWO_PI * len(log_std))
    return actions, np.float32(-0.5) * (z * z).sum(axis=1) - constant


def most_probable_categorical(logits: Float32Array, sizes: Sequence[int]) -> NDArray[np.int64]:
    """The largest logit of each component. logits: [N, sum of sizes]. Returns [N, len(sizes)]."""
    ends = np.cumsum(sizes)
    parts = [logits[:, end - size : end].argmax(axis=1) for end, size in zip(ends, sizes, strict=True)]
    return np.stack(parts, axis=1)


def _sigmoid_in_place(x: Float32Array) -> None:
    # By the hyperbolic tangent, which overflows nowhere.
    x *= 0.5
    np.tanh(x, out=x)
    x += 1.0
    x *= 0.5
