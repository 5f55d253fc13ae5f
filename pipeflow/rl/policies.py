"""Policies with a value function, as torch modules: perceptrons, and convolutions for images.

Apart from the distributions, which know nothing of networks, and from the learners, which know nothing of
architectures. A `PolicySpec` is a description that travels to every actor; `PolicySpec.build` makes the
module there, with the same parameters everywhere for the same seed. Acting takes and returns numpy arrays,
and goes through `acting` where the network is a perceptron on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import override

from pipeflow.rl import acting
from pipeflow.rl.batches import ActionArray, ObservationArray
from pipeflow.rl.distributions import Bernoulli, Categorical, DiagonalGaussian, Distribution, MultiCategorical
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.policy import Acted, StateArray
from pipeflow.rl.spaces import ActionCodec, Leaf, ObservationCodec, action_codec, observation_codec
from pipeflow.rl.threads import torch_threads

Activation: TypeAlias = Literal["tanh", "relu"]

_NATURE_MINIMUM = 36  # the smallest side that the three convolutions of Mnih et al. leave something of
_IMAGE_MINIMUM = 4
_IMAGE_FEATURES = 512


@dataclass(frozen=True)
class PolicySpec:
    """What a policy is, before it is built.

    observations, actions: how the environment's spaces are encoded. hidden: width of each hidden layer; a
    single image goes from the convolutional network straight to the output layers, as in the papers, so there
    `hidden` is not used. shared_trunk: one set of hidden layers for policy and value, rather than one each;
    the convolutional network is always shared.
    """

    observations: ObservationCodec
    actions: ActionCodec
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "tanh"
    shared_trunk: bool = False

    @property
    def state_width(self) -> int:
        """Width of the recurrent state: 0, since these policies have no memory."""
        return 0

    @classmethod
    def for_env(
        cls,
        env: EnvSpec,
        *,
        hidden: tuple[int, ...] = (64, 64),
        activation: Activation = "tanh",
        shared_trunk: bool = False,
    ) -> PolicySpec:
        """The spec for an environment's spaces.

        Raises UnsupportedSpace for a space that no policy is built for, UnknownEnvironment for an unknown id.
        """
        observation_space, action_space = env.spaces()
        return cls(
            observation_codec(observation_space),
            action_codec(action_space),
            hidden=hidden,
            activation=activation,
            shared_trunk=shared_trunk,
        )

    def build(self, seed: int, device: str = "cpu") -> ActorCritic:
        """The module, its parameters drawn from `seed` alone.

        torch's global generators are neither read nor moved.
        Raises ValueError if an image is too small to convolve.
        """
        # The layers' constructors draw from the global CPU generator, before all of it is overwritten.
        with torch.random.fork_rng(devices=[]), torch_threads(1):
            policy = ActorCritic(self, torch.Generator().manual_seed(seed))
        return policy.to(device)


class ActorCritic(nn.Module):
    """A stochastic policy and a value function over the same observations.

    Initialisation is orthogonal, with gain sqrt(2) in hidden layers, 0.01 at the policy's output (so that the
    first policy is close to uniform) and 1 at the value's; biases are zero. The standard deviation of
    Gaussian policies does not depend on the observation. Source: Andrychowicz et al., "What Matters in
    On-Policy Reinforcement Learning?" (2021), sections 3.2 and 3.3; Huang et al., "The 37 Implementation
    Details of PPO" (2022).
    """

    def __init__(self, spec: PolicySpec, generator: torch.Generator) -> None:
        super().__init__()
        self.spec = spec
        self.features: nn.Module | None = None
        width, hidden = math.prod(spec.observations.shape), spec.hidden
        images = [leaf for leaf in spec.observations.leaves if leaf.kind == "image"]
        if spec.observations.is_image:
            self.features = ImageNetwork(spec.observations.shape)
            width, hidden = _IMAGE_FEATURES, ()
        elif images:
            composite = CompositeNetwork(spec.observations.leaves)
            self.features, width = composite, composite.width
        self.policy_trunk = _trunk(width, hidden, spec.activation)
        self.value_trunk = None if spec.shared_trunk else _trunk(width, hidden, spec.activation)
        last = hidden[-1] if hidden else width
        self.policy_head = nn.Linear(last, sum(spec.actions.sizes))
        self.value_head = nn.Linear(last, 1)
        if spec.actions.kind == "gaussian":
            self.log_std = nn.Parameter(torch.zeros(sum(spec.actions.sizes)))
        _initialise(self, generator)
        self._perceptron: acting.Perceptron | None = None
        self._perceptron_address = 0

    @override
    def forward(self, observations: Tensor) -> tuple[Distribution, Tensor]:
        """Distributions over actions, and values [B], of encoded observations [B, *obs]; differentiable."""
        outputs, values = self._outputs(observations)
        return self._distribution(outputs), values

    def evaluate(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(log-probabilities of `actions` [B, *act], entropies, values), each [B] and differentiable."""
        distribution, values = self(observations)
        return distribution.log_prob(actions), distribution.entropy(), values

    def act(self, observations: ObservationArray, state: StateArray, generator: np.random.Generator) -> Acted:
        """Sample an action for each of N observations: see `Policy.act`."""
        outputs, values = self._acting_outputs(observations)
        actions, log_probs = self._sampled(outputs, generator)
        return Acted(actions, log_probs, values, state)

    def greedy(self, observations: ObservationArray, state: StateArray) -> tuple[ActionArray, StateArray]:
        """The most probable action, [N, *act], for each of N observations, and the next state."""
        outputs, _ = self._acting_outputs(observations)
        return self._most_probable(outputs), state

    def value(self, observations: ObservationArray, state: StateArray) -> NDArray[np.float32]:
        """Values [N] of N observations."""
        perceptron = self._fast()
        if perceptron is not None:
            return perceptron.values(observations.astype(np.float32, copy=False))
        return self._acting_outputs(observations)[1]

    def parameters_numpy(self) -> dict[str, NDArray[np.generic]]:
        """A copy of every tensor of the module by name, buffers too."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.state_dict().items()}

    def load_numpy(self, parameters: Mapping[str, NDArray[np.generic]]) -> None:
        """Overwrite every tensor of the module with `parameters`, which are copied.

        Raises ValueError if a name is missing or unknown, or a shape differs: then nothing has been written.
        """
        own = self.state_dict()
        if own.keys() != parameters.keys():
            raise ValueError(
                f"parameters do not belong to this policy: missing {sorted(own.keys() - parameters.keys())}, "
                f"unknown {sorted(parameters.keys() - own.keys())}; build both sides from one PolicySpec"
            )
        for name, tensor in own.items():
            if tuple(tensor.shape) != parameters[name].shape:
                raise ValueError(
                    f"parameter {name} has shape {parameters[name].shape}, this policy's has "
                    f"{tuple(tensor.shape)}; build both sides from one PolicySpec"
                )
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(to_tensor(parameters[name], "cpu"))

    def _outputs(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        features = observations if self.features is None else self.features(observations)
        policy_features = self.policy_trunk(features)
        value_features = policy_features if self.value_trunk is None else self.value_trunk(features)
        return self.policy_head(policy_features), self.value_head(value_features).squeeze(-1)

    def _distribution(self, outputs: Tensor) -> Distribution:
        match self.spec.actions.kind:
            case "categorical":
                return Categorical(outputs)
            case "multi_categorical":
                return MultiCategorical(outputs, self.spec.actions.sizes)
            case "bernoulli":
                return Bernoulli(outputs)
            case "gaussian":
                return DiagonalGaussian(outputs, self.log_std)

    def _most_probable(self, outputs: NDArray[np.float32]) -> ActionArray:
        match self.spec.actions.kind:
            case "categorical":
                return acting.most_probable_categorical(outputs, self.spec.actions.sizes)[:, 0]
            case "multi_categorical":
                return acting.most_probable_categorical(outputs, self.spec.actions.sizes)
            case "bernoulli":
                return (outputs > 0).astype(np.int64)
            case "gaussian":
                return outputs

    def _sampled(
        self, outputs: NDArray[np.float32], generator: np.random.Generator
    ) -> tuple[ActionArray, NDArray[np.float32]]:
        match self.spec.actions.kind:
            case "categorical":
                return acting.sample_categorical(outputs, generator)
            case "multi_categorical":
                return acting.sample_multi_categorical(outputs, self.spec.actions.sizes, generator)
            case "bernoulli":
                return acting.sample_bernoulli(outputs, generator)
            case "gaussian":
                return acting.sample_gaussian(outputs, self.log_std.detach().cpu().numpy(), generator)

    def _acting_outputs(
        self, observations: ObservationArray
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        perceptron = self._fast()
        if perceptron is not None:
            return perceptron.outputs(observations.astype(np.float32, copy=False))
        with torch.inference_mode():
            outputs, values = self._outputs(to_tensor(observations, self.value_head.weight.device))
        return outputs.cpu().numpy(), values.cpu().numpy()

    def _fast(self) -> acting.Perceptron | None:
        """The numpy form, whose arrays are views of the parameters, so that it never lags behind them."""
        weight = self.value_head.weight
        if self.features is not None or weight.device.type != "cpu":
            return None
        # Moving or copying the module gives its parameters new memory: then the views are of the old.
        if self._perceptron is None or self._perceptron_address != weight.data_ptr():
            self._perceptron_address = weight.data_ptr()
            self._perceptron = acting.Perceptron(
                policy_layers=_layers(self.policy_trunk),
                value_layers=None if self.value_trunk is None else _layers(self.value_trunk),
                policy_head=_layer(self.policy_head),
                value_head=_layer(self.value_head),
                activation=acting.tanh_in_place if self.spec.activation == "tanh" else acting.relu_in_place,
            )
        return self._perceptron

    @override
    def __getstate__(self) -> dict[str, Any]:
        # In another process the same address says nothing.
        return self.__dict__ | {"_perceptron": None}


class ImageNetwork(nn.Module):
    """Convolutions over uint8 images [B, C, H, W], to 512 features.

    Sides of 36 pixels or more: the network of Mnih et al., "Human-level control through deep reinforcement
    learning" (2015), methods. Smaller ones, from 4 pixels: three 3x3 convolutions with padding, of which the
    last two halve the image. Pixels are divided by 255 here, so that images stay bytes until they are used.
    Raises ValueError for images smaller than that.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        channels, height, width = shape
        if min(height, width) < _IMAGE_MINIMUM:
            raise ValueError(
                f"an image of {height}x{width} pixels is too small for convolutions, which need "
                f"{_IMAGE_MINIMUM}x{_IMAGE_MINIMUM}; flatten it to a float Box in the environment"
            )
        if min(height, width) >= _NATURE_MINIMUM:
            convolutions = [nn.Conv2d(channels, 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3, 1)]
        else:
            convolutions = [
                nn.Conv2d(channels, 32, 3, 1, padding=1),
                nn.Conv2d(32, 64, 3, 2, padding=1),
                nn.Conv2d(64, 64, 3, 2, padding=1),
            ]
        self.convolutions = nn.Sequential(*(layer for conv in convolutions for layer in (conv, nn.ReLU())))
        with torch.no_grad():
            flat = self.convolutions(torch.zeros(1, *shape)).numel()
        self.linear = nn.Linear(flat, _IMAGE_FEATURES)

    @override
    def forward(self, images: Tensor) -> Tensor:
        """Features [B, 512] of images [B, C, H, W]: uint8, or float32 already in [0, 1]."""
        pixels = images.float() / 255.0 if images.dtype == torch.uint8 else images
        return torch.relu(self.linear(self.convolutions(pixels).flatten(1)))


class CompositeNetwork(nn.Module):
    """Vectors with images among their parts [B, D].

    Each image goes through an `ImageNetwork` of its own, the rest is handed on as it is.
    """

    def __init__(self, leaves: tuple[Leaf, ...]) -> None:
        super().__init__()
        self.leaves = leaves
        images = [leaf for leaf in leaves if leaf.kind == "image"]
        self.networks = nn.ModuleList(ImageNetwork(leaf.shape) for leaf in images)
        rest = sum(math.prod(leaf.shape) for leaf in leaves if leaf.kind != "image")
        self.width = _IMAGE_FEATURES * len(images) + rest

    @override
    def forward(self, observations: Tensor) -> Tensor:
        """Features [B, width], the leaves in their order."""
        networks = iter(self.networks)
        parts = []
        for leaf in self.leaves:
            part = observations[:, leaf.slice]
            if leaf.kind == "image":
                part = next(networks)(part.reshape(-1, *leaf.shape))
            parts.append(part)
        return torch.cat(parts, dim=1)


def to_tensor(array: NDArray[np.generic], device: torch.device | str) -> Tensor:
    """The array on `device`, sharing its memory where that can be written to.

    A read-only array is copied, since torch knows no such thing.
    """
    tensor = torch.from_numpy(array) if array.flags.writeable else torch.tensor(array)
    return tensor.to(device)


def _trunk(width: int, hidden: tuple[int, ...], activation: Activation) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(width, size), nn.Tanh() if activation == "tanh" else nn.ReLU()]
        width = size
    return nn.Sequential(*layers)


def _initialise(policy: ActorCritic, generator: torch.Generator) -> None:
    for module in policy.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            gain = math.sqrt(2.0)
            if module is policy.policy_head:
                gain = 0.01
            elif module is policy.value_head:
                gain = 1.0
            nn.init.orthogonal_(module.weight, gain, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def _layers(trunk: nn.Sequential) -> list[acting.Layer]:
    return [_layer(module) for module in _linears(trunk)]


def _linears(trunk: nn.Sequential) -> Iterator[nn.Linear]:
    return (module for module in trunk if isinstance(module, nn.Linear))


def _layer(linear: nn.Linear) -> acting.Layer:
    return acting.Layer(linear.weight.detach().numpy().T, linear.bias.detach().numpy())
