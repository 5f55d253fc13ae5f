"""Torch's tensors as numpy's arrays and back, for programs that use torch; for others it is not imported.

Apart from the values, whose types numpy has: bfloat16 it has not.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeIs

if TYPE_CHECKING:
    import torch


def is_tensor(value: object) -> TypeIs[torch.Tensor]:
    """Whether it is a tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_trained(value: object) -> bool:
    """Whether it is a tensor that an optimiser may hold: a leaf that gradients are computed for."""
    return is_tensor(value) and value.requires_grad and value.is_leaf


def tensor_parts(tensor: torch.Tensor) -> tuple[NDArray[Any], str, bool]:
    """A copy of a tensor's values, the name of its dtype, and whether gradients are computed for it."""
    import torch

    plain = tensor.detach().cpu()
    bits = plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain
    return bits.numpy().copy(), str(tensor.dtype).removeprefix("torch."), tensor.requires_grad


def tensor_of(array: NDArray[Any], dtype: str, requires_grad: bool, like: object) -> torch.Tensor:
    """The tensor of such parts, on the device of the one whose place it takes, if there is one.

    Raises ValueError if there is no such dtype.
    """
    import torch

    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise ValueError(f"torch has no dtype {dtype!r}")
    tensor = torch.from_numpy(np.array(array))
    if tensor.dtype != kind:
        tensor = tensor.view(kind)
    if isinstance(like, torch.Tensor):
        tensor = tensor.to(like.device)
    return tensor.requires_grad_(requires_grad)
