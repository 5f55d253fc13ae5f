"""Adam over one flat parameter: torch's fused kernel, without torch's optimiser around it.

Apart from `learner`, which decides when to step. `torch.optim.Adam` imports torch's compiler when it is made,
which takes one to two seconds of every start, and wraps a step in hooks that take several times as long as the
step of a small network.
Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.adam import adam

_EPSILON = 1e-5  # Huang et al., "The 37 Implementation Details of PPO" (2022), detail 3


class Adam:
    """Steps down the gradient of `parameter`, which it has when `step` is called; the betas are 0.9 and 0.999.

    lr: the learning rate, which may be set anew at any time.
    """

    def __init__(self, parameter: nn.Parameter, lr: float) -> None:
        self.lr = lr
        self._parameter = parameter
        # Under the names that `torch.optim.Adam` has for them.
        self._state: dict[str, Tensor] = {
            "step": torch.zeros((), device=parameter.device),
            "exp_avg": torch.zeros_like(parameter.detach()),
            "exp_avg_sq": torch.zeros_like(parameter.detach()),
        }

    @torch.no_grad()
    def step(self) -> None:
        """One step."""
        gradient = self._parameter.grad
        assert gradient is not None
        adam(
            [self._parameter],
            [gradient],
            [self._state["exp_avg"]],
            [self._state["exp_avg_sq"]],
            [],
            [self._state["step"]],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.lr,
            weight_decay=0.0,
            eps=_EPSILON,
            maximize=False,
        )

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A copy of all that the next step depends on beside the parameter, its gradient and the learning rate."""
        return {name: tensor.cpu().numpy().copy() for name, tensor in self._state.items()}

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Go on where the optimiser that gave this state stood; the arrays are copied."""
        for name, tensor in self._state.items():
            tensor.copy_(torch.tensor(state[name]))
