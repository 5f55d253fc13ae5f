"""What every trained network has in common: tensors that travel as numpy arrays, and a description to build it.

Apart from the networks, of which there are several kinds (actor-critics, action values), so that learners share
one base whatever they train. What a learner does to any network, such as letting a target follow it, is here too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import TypeVar


class PortableModule(nn.Module):
    """A torch module whose tensors are handed out, and taken in, as numpy arrays by name."""

    _tensors: dict[str, Tensor] | None = None

    def parameters_numpy(self) -> dict[str, NDArray[np.generic]]:
        """A copy of every tensor of the module by name, buffers too."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self._named_tensors().items()}

    def load_numpy(self, parameters: Mapping[str, NDArray[np.generic]]) -> None:
        """Overwrite every tensor of the module with `parameters`, which are copied.

        Raises ValueError if a name is missing or unknown, or a shape differs: then nothing has been written.
        """
        own = self._named_tensors()
        if own.keys() != parameters.keys():
            raise ValueError(
                f"parameters do not belong to this policy: missing {sorted(own.keys() - parameters.keys())}, "
                f"unknown {sorted(parameters.keys() - own.keys())}; build both sides from one description"
            )
        for name, tensor in own.items():
            if tuple(tensor.shape) != parameters[name].shape:
                raise ValueError(
                    f"parameter {name} has shape {parameters[name].shape}, this policy's has "
                    f"{tuple(tensor.shape)}; build both sides from one description"
                )
        for name, tensor in own.items():
            if tensor.device.type == "cpu":
                np.copyto(
                    tensor.detach().numpy(), parameters[name]
                )  # spares torch a copy of what is read-only
            else:
                tensor.detach().copy_(to_tensor(parameters[name], "cpu"))

    def _named_tensors(self) -> dict[str, Tensor]:
        """What `state_dict` holds, found once: a module keeps its parameters wherever their memory goes."""
        if self._tensors is None:
            self._tensors = self.state_dict(keep_vars=True)
        return self._tensors


Module_co = TypeVar("Module_co", bound=PortableModule, covariant=True)


class ModuleDescription(Protocol[Module_co]):
    """What a network is, before it is built; the same seed builds the same parameters everywhere."""

    def build(self, seed: int, device: str = "cpu") -> Module_co:
        """The module on `device`, its parameters drawn from `seed` alone."""
        ...


def to_tensor(array: NDArray[np.generic], device: torch.device | str) -> Tensor:
    """The array on `device`, sharing its memory where that can be written to.

    A read-only array is copied, since torch knows no such thing.
    """
    tensor = torch.from_numpy(array) if array.flags.writeable else torch.tensor(array)
    return tensor.to(device)


@torch.no_grad()
def polyak_update(target: nn.Module, online: nn.Module, tau: float) -> None:
    """Move every parameter of `target` by a share `tau` of the way to that of `online`; 1 copies.

    target, online: of one shape, `target` a copy of `online`. Buffers are no averages, and are copied whole.
    """
    for behind, ahead in zip(target.parameters(), online.parameters(), strict=True):
        behind.lerp_(ahead, tau)
    for kept, current in zip(target.buffers(), online.buffers(), strict=True):
        kept.copy_(current)


@contextlib.contextmanager
def frozen(module: nn.Module) -> Generator[None]:
    """What is computed inside has no gradient in the module's parameters, but one through it in its inputs.

    So a loss may train one part of a network through another one, as an actor is trained through its critic.
    """
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
