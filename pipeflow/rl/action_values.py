"""Action values: a network that gives Q(s, a) for every action a, and the greedy policy that it stands for.

Apart from `policies`, whose networks give a distribution and a value. An `ActionValueSpec` is a description that
travels to every actor; `ActionValueSpec.build` makes the module there. Acting takes and returns numpy arrays, and
needs no torch where the network is a small perceptron on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import override

from pipeflow.rl import acting
from pipeflow.rl.batches import ActionArray, ObservationArray
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.modules import PortableModule, to_tensor
from pipeflow.rl.networks import (
    Activation,
    image_network,
    initialise_orthogonally,
    numpy_layer,
    perceptron,
)
from pipeflow.rl.policy import Acted, StateArray
from pipeflow.rl.spaces import (
    ActionCodec,
    ObservationCodec,
    UnsupportedSpace,
    action_codec,
    observation_codec,
)
from pipeflow.rl.threads import torch_threads


@dataclass(frozen=True)
class ActionValueSpec:
    """What a network of action values is, before it is built.

    observations, actions: how the environment's spaces are encoded. hidden: width of each hidden layer; a single
    image goes from the convolutional network straight to the output layers. dueling: the state's value and the
    actions' advantages from output layers of their own.
    Raises UnsupportedSpace for actions that are not one choice among several, and for an action mask that does
    not fit them.
    """

    observations: ObservationCodec
    actions: ActionCodec
    hidden: tuple[int, ...] = (64, 64)
    dueling: bool = False
    activation: Activation = "relu"

    def __post_init__(self) -> None:
        if self.actions.kind != "categorical":
            raise UnsupportedSpace(
                f"action values need one choice among several, and {self.actions.space} is none; use a policy "
                "gradient, or a Discrete space"
            )
        mask = self.observations.mask
        if mask is not None and mask.stop - mask.start != self.num_actions:
            raise UnsupportedSpace(
                f"an action mask of {mask.stop - mask.start} does not fit {self.actions.space}, which needs "
                f"{self.num_actions}"
            )

    @property
    def num_actions(self) -> int:
        """How many actions A there are."""
        return self.actions.sizes[0]

    @property
    def state_width(self) -> int:
        """Width of the recurrent state: 0, since these networks have no memory."""
        return 0

    @classmethod
    def for_env(
        cls,
        env: EnvSpec,
        *,
        hidden: tuple[int, ...] = (64, 64),
        dueling: bool = False,
        activation: Activation = "relu",
    ) -> ActionValueSpec:
        """The spec for an environment's spaces.

        Raises UnsupportedSpace for a space that no such network is built for, UnknownEnvironment for an unknown
        id.
        """
        observation_space, action_space = env.spaces()
        return cls(
            observation_codec(observation_space),
            action_codec(action_space),
            hidden=hidden,
            dueling=dueling,
            activation=activation,
        )

    def build(self, seed: int, device: str = "cpu") -> QNetwork:
        """The module, its parameters drawn from `seed` alone.

        torch's global generators are neither read nor moved.
        Raises ValueError if an image is too small to convolve.
        """
        # The layers' constructors draw from the global CPU generator, before all of it is overwritten.
        with torch.random.fork_rng(devices=[]), torch_threads(1):
            network = QNetwork(self, torch.Generator().manual_seed(seed))
        return network.to(device)

    def allowed(self, observations: ObservationArray) -> NDArray[np.bool_]:
        """Which actions [N, A] the masks of N observations allow; all where there is no mask."""
        mask = self.observations.mask
        if mask is None:
            return np.ones((len(observations), self.num_actions), np.bool_)
        allowed: NDArray[np.bool_] = observations[:, mask] != 0
        return allowed


class QNetwork(PortableModule):
    """Action values over encoded observations.

    With `dueling`, Q = V + A - mean(A) over all actions: Wang et al., "Dueling Network Architectures for Deep
    Reinforcement Learning" (2016), equation 9. Initialisation is orthogonal, with gain sqrt(2) in hidden layers
    and 1 at the outputs; biases are zero.
    """

    def __init__(self, spec: ActionValueSpec, generator: torch.Generator) -> None:
        super().__init__()
        self.spec = spec
        self.features, width = image_network(spec.observations)
        hidden = () if spec.observations.is_image else spec.hidden
        self.trunk = perceptron(width, hidden, spec.activation)
        last = hidden[-1] if hidden else width
        self.action_head = nn.Linear(last, spec.num_actions)
        self.value_head = nn.Linear(last, 1) if spec.dueling else None
        gains: dict[nn.Module, float] = {self.action_head: 1.0}
        if self.value_head is not None:
            gains[self.value_head] = 1.0
        initialise_orthogonally(self, generator, gains)
        self._in_numpy: _NumpyValues | None = None
        self._address = 0

    @override
    def forward(self, observations: Tensor) -> Tensor:
        """Q [B, A] of encoded observations [B, *obs], differentiable; -inf for an action that a mask excludes."""
        values = self._values(observations)
        mask = self.spec.observations.mask
        return values if mask is None else values.masked_fill(observations[:, mask] == 0, -torch.inf)

    def act(self, observations: ObservationArray, state: StateArray, generator: np.random.Generator) -> Acted:
        """The best action for each of N observations, with its value; nothing is drawn.

        Raises NoValidAction if an observation's mask allows no action.
        """
        values = self._allowed_values(observations)
        actions = values.argmax(axis=1)
        return Acted(actions, np.zeros(len(values), np.float32), values.max(axis=1), state)

    def greedy(self, observations: ObservationArray, state: StateArray) -> tuple[ActionArray, StateArray]:
        """The best action [N] for each of N observations, and the next state.

        Raises NoValidAction if an observation's mask allows no action.
        """
        return self._allowed_values(observations).argmax(axis=1), state

    def value(self, observations: ObservationArray, state: StateArray) -> NDArray[np.float32]:
        """The largest Q [N] of N observations; action masks are not looked at."""
        best: NDArray[np.float32] = self._numpy_values(observations).max(axis=1)
        return best

    def _values(self, observations: Tensor) -> Tensor:
        if self.features is not None:
            features = self.features(observations)
        else:
            features = observations[:, : self.spec.observations.feature_count]
        hidden = self.trunk(features)
        values: Tensor = self.action_head(hidden)
        if self.value_head is not None:
            values = self.value_head(hidden) + values - values.mean(dim=1, keepdim=True)
        return values

    def _allowed_values(self, observations: ObservationArray) -> NDArray[np.float32]:
        values = self._numpy_values(observations)
        if self.spec.observations.mask is None:
            return values
        return acting.masked(values, self.spec.allowed(observations), self.spec.actions.sizes)

    def _numpy_values(self, observations: ObservationArray) -> NDArray[np.float32]:
        """Q [N, A] without masks."""
        fast = self._fast()
        if fast is not None and len(observations) <= _MOST_PARTS * fast.most_rows:
            rows = observations.astype(np.float32, copy=False)[:, : self.spec.observations.feature_count]
            if len(rows) <= fast.most_rows:
                return fast(rows)
            return np.concatenate(
                [fast(rows[start : start + fast.most_rows]) for start in range(0, len(rows), fast.most_rows)]
            )
        with torch.inference_mode():
            values: NDArray[np.float32] = (
                self._values(to_tensor(observations, self.action_head.weight.device)).cpu().numpy()
            )
        return values

    def _fast(self) -> _NumpyValues | None:
        """The numpy form, whose arrays are views of the parameters, so that it never lags behind them."""
        weight = self.action_head.weight
        if self.features is not None or weight.device.type != "cpu":
            return None
        # Moving or copying the module gives its parameters new memory: then the views are of the old.
        if self._in_numpy is None or self._address != weight.data_ptr():
            self._address = weight.data_ptr()
            value_head = self.value_head
            self._in_numpy = _NumpyValues(
                [
                    numpy_layer(layer.weight, layer.bias)
                    for layer in self.trunk
                    if isinstance(layer, nn.Linear)
                ],
                numpy_layer(weight, self.action_head.bias),
                None if value_head is None else numpy_layer(value_head.weight, value_head.bias),
                acting.tanh_in_place if self.spec.activation == "tanh" else acting.relu_in_place,
            )
        return self._in_numpy

    @override
    def __getstate__(self) -> dict[str, Any]:
        # In another process the same address says nothing.
        return self.__dict__ | {"_in_numpy": None}


# Numpy's OpenBLAS computes a product of more multiplications than this on all cores, whatever torch is told, and
# actors would wait for each other's: 65536 * GEMM_MULTITHREAD_THRESHOLD in its interface/gemm.c.
_ONE_THREAD = 1 << 18
_MOST_PARTS = 4  # from where on torch is faster than numpy with one part of the rows after the other


class _NumpyValues:
    """The values of a small perceptron in numpy, over arrays that are views of a module's own memory.

    hidden: layers with the activation, applied in place, behind each. action_head, value_head: without one; a
    network that is not dueling has no value_head.
    """

    def __init__(
        self,
        hidden: Sequence[acting.Layer],
        action_head: acting.Layer,
        value_head: acting.Layer | None,
        activation: Callable[[acting.Float32Array], object],
    ) -> None:
        self._hidden = hidden
        self._action_head = action_head
        self._value_head = value_head
        self._activation = activation
        self.most_rows = _ONE_THREAD // max(layer.weight.size for layer in [*hidden, action_head])

    def __call__(self, features: acting.Float32Array) -> acting.Float32Array:
        """Q [N, A] of features [N, D], of at most `most_rows` rows."""
        features = acting.hidden(self._hidden, self._activation, features)
        values = acting.affine(self._action_head, features)
        if self._value_head is not None:
            values += acting.affine(self._value_head, features) - values.mean(axis=1, keepdims=True)
        return values
