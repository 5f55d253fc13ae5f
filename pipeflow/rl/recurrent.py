"""Memory of policies: a recurrent layer, and how the rows of sequences stand side by side for it.

Apart from the policies, which put it between their hidden layers and their heads, and from `acting`, which takes
single steps of the same layers in numpy. A recurrent state is one array [N, S] whatever the layer keeps, zeros
at the start of an episode.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from typing_extensions import override

from pipeflow.rl import acting
from pipeflow.rl.networks import numpy_layer

MemoryKind: TypeAlias = Literal["none", "lstm", "gru"]


def state_width(kind: MemoryKind, size: int) -> int:
    """Width S of the recurrent state of a memory of `size` units."""
    return {"none": 0, "lstm": 2 * size, "gru": size}[kind]


class Memory(nn.Module):
    """An LSTM or a GRU of one layer.

    kind: which of them. width: of the features that it reads. size: number of its units, and width of what it
    gives. The state of an LSTM is [hidden, cell].
    """

    def __init__(self, kind: Literal["lstm", "gru"], width: int, size: int) -> None:
        super().__init__()
        self.layer: nn.LSTM | nn.GRU = nn.LSTM(width, size) if kind == "lstm" else nn.GRU(width, size)

    @override
    def forward(self, features: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """What is remembered at each step, [T, N, size], and the state [N, S] after the last.

        features: [T, N, width]. state: [N, S], before the first step.
        """
        state = state.unsqueeze(0)
        if isinstance(self.layer, nn.LSTM):
            hidden, cell = state.chunk(2, dim=-1)
            output, (hidden, cell) = self.layer(features, (hidden.contiguous(), cell.contiguous()))
            return output, torch.cat([hidden, cell], dim=-1).squeeze(0)
        output, state = self.layer(features, state.contiguous())
        return output, state.squeeze(0)

    def cell(self) -> acting.LSTMCell | acting.GRUCell:
        """One step in numpy, on arrays that are views of the parameters."""
        kind = acting.LSTMCell if isinstance(self.layer, nn.LSTM) else acting.GRUCell
        tensors = dict(self.layer.named_parameters())
        return kind(
            numpy_layer(tensors["weight_ih_l0"], tensors["bias_ih_l0"]),
            numpy_layer(tensors["weight_hh_l0"], tensors["bias_hh_l0"]),
        )


class Padding:
    """How rows of sequences, one sequence after the other, stand side by side in time-major columns.

    Behind a shorter sequence its column is filled with zeros, which `unpad` leaves out again: whatever is computed
    there, a state or a loss, counts nowhere.
    lengths: [Q] int64 of the sequences, at least 1 each.
    """

    def __init__(self, lengths: Tensor) -> None:
        longest = int(lengths.max()) if len(lengths) else 0
        self._real = torch.arange(longest, device=lengths.device) < lengths.unsqueeze(1)

    @property
    def mask(self) -> Tensor:
        """[L, Q] bool, True for the rows that are real."""
        return self._real.T

    def pad(self, rows: Tensor) -> Tensor:
        """[B, ...] rows as [L, Q, ...]; differentiable."""
        columns = rows.new_zeros(*self._real.shape, *rows.shape[1:])
        columns[self._real] = rows
        return columns.transpose(0, 1)

    def unpad(self, columns: Tensor) -> Tensor:
        """The inverse of `pad`: the real ones of [L, Q, ...] as [B, ...], in the order of the rows."""
        return columns.transpose(0, 1)[self._real]
