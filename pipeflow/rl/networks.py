"""Networks that several kinds of policies are made of: perceptrons, and convolutions for images.

Apart from the policies, which decide what comes out of them and how it is trained.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from typing_extensions import override

from pipeflow.rl import acting
from pipeflow.rl.spaces import Leaf, ObservationCodec

Activation: TypeAlias = Literal["tanh", "relu"]

_NATURE_MINIMUM = 36  # the smallest side that the three convolutions of Mnih et al. leave something of
_IMAGE_MINIMUM = 4
_IMAGE_FEATURES = 512


def image_network(observations: ObservationCodec) -> tuple[nn.Module | None, int]:
    """The convolutions that observations with images go through, and how many features there are then.

    Of observations without images there is no network, and the features are what a network is to read of them.
    Raises ValueError if an image is too small to convolve.
    """
    if observations.is_image:
        return ImageNetwork(observations.shape), _IMAGE_FEATURES
    if any(leaf.kind == "image" for leaf in observations.leaves):
        composite = CompositeNetwork(observations.leaves)
        return composite, composite.width
    return None, observations.feature_count


def perceptron(width: int, hidden: tuple[int, ...], activation: Activation) -> nn.Sequential:
    """Hidden layers [B, width] -> [B, hidden[-1]], each linear with a nonlinearity; none give the identity."""
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(width, size), nn.Tanh() if activation == "tanh" else nn.ReLU()]
        width = size
    return nn.Sequential(*layers)


def numpy_layer(weight: Tensor, bias: Tensor) -> acting.Layer:
    """A linear layer in numpy, its arrays views of torch's weight [out, in] and bias [out] on the CPU."""
    return acting.Layer(weight.detach().numpy().T, bias.detach().numpy())


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

    Each image goes through an `ImageNetwork` of its own, the rest is handed on as it is, but for an action mask.
    """

    def __init__(self, leaves: tuple[Leaf, ...]) -> None:
        super().__init__()
        self.leaves = tuple(leaf for leaf in leaves if leaf.kind != "mask")
        images = [leaf for leaf in leaves if leaf.kind == "image"]
        self.networks = nn.ModuleList(ImageNetwork(leaf.shape) for leaf in images)
        rest = sum(math.prod(leaf.shape) for leaf in self.leaves if leaf.kind != "image")
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


def initialise_orthogonally(
    module: nn.Module, generator: torch.Generator, gains: dict[nn.Module, float]
) -> None:
    """Orthogonal weights and zero biases in every layer of the module.

    The gain is that of `gains`; where it names none, sqrt(2), and 1 in recurrent layers.
    """
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, gains.get(layer, math.sqrt(2.0)), generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.RNNBase):
            for name, parameter in layer.named_parameters():
                if name.startswith("bias"):
                    nn.init.zeros_(parameter)
                else:
                    nn.init.orthogonal_(parameter, gains.get(layer, 1.0), generator=generator)
