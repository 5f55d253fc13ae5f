"""Policies with a value function, as torch modules, with or without memory and action masks.

Apart from the networks that they are made of, from the distributions, which know nothing of networks, and from
the learners, which know nothing of architectures. A `PolicySpec` is a description that travels to every actor;
`PolicySpec.build` makes the module there, with the same parameters everywhere for the same seed. Acting takes
and returns numpy arrays, and goes through `acting` where the network is a perceptron on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import override

from pipeflow.rl import acting
from pipeflow.rl.batches import ActionArray, ObservationArray, Sequences
from pipeflow.rl.distributions import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Distribution,
    MultiCategorical,
    masked,
)
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.modules import PortableModule, to_tensor
from pipeflow.rl.networks import Activation as Activation
from pipeflow.rl.networks import image_network, initialise_orthogonally, numpy_layer, perceptron
from pipeflow.rl.policy import Acted, FragmentActing, StateArray
from pipeflow.rl.recurrent import Memory, MemoryKind, Padding, state_width
from pipeflow.rl.spaces import (
    ActionCodec,
    ObservationCodec,
    UnsupportedSpace,
    action_codec,
    observation_codec,
)
from pipeflow.rl.threads import torch_threads

# Beyond so many rows numpy's products are divided among threads, whose number is not `torch_threads`'s to say, and
# torch's dispatch is no longer what takes the time.
_FEW_ROWS = 64


@dataclass(frozen=True)
class PolicySpec:
    """What a policy is, before it is built.

    observations, actions: how the environment's spaces are encoded. hidden: width of each hidden layer; a
    single image goes from the convolutional network straight to what follows, as in the papers, so there
    `hidden` is not used. shared_trunk: one set of hidden layers for policy and value, rather than one each;
    the convolutional network is always shared. memory: a recurrent layer of memory_size units between the
    hidden layers and the outputs; policy and value then share their hidden layers whatever shared_trunk says.
    Raises UnsupportedSpace if the observations have an action mask that does not fit the actions.
    """

    observations: ObservationCodec
    actions: ActionCodec
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "tanh"
    shared_trunk: bool = False
    memory: MemoryKind = "none"
    memory_size: int = 64

    def __post_init__(self) -> None:
        if self.memory_size < 1:
            raise ValueError(f"memory_size must be at least 1, got {self.memory_size}")
        mask = self.observations.mask
        if mask is None:
            return
        if self.actions.kind not in ("categorical", "multi_categorical"):
            raise UnsupportedSpace(
                f"the observations have an action mask, and the actions of {self.actions.space} are no "
                "categories that it could exclude; leave the mask out"
            )
        if mask.stop - mask.start != sum(self.actions.sizes):
            raise UnsupportedSpace(
                f"an action mask of {mask.stop - mask.start} does not fit {self.actions.space}, which needs "
                f"{sum(self.actions.sizes)}: one for each category, component after component"
            )

    @property
    def state_width(self) -> int:
        """Width of the recurrent state: 0 without memory."""
        return state_width(self.memory, self.memory_size)

    @classmethod
    def for_env(
        cls,
        env: EnvSpec,
        *,
        hidden: tuple[int, ...] = (64, 64),
        activation: Activation = "tanh",
        shared_trunk: bool = False,
        memory: MemoryKind = "none",
        memory_size: int = 64,
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
            memory=memory,
            memory_size=memory_size,
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


class ActorCritic(PortableModule):
    """A stochastic policy and a value function over the same observations.

    Initialisation is orthogonal, with gain sqrt(2) in hidden layers, 1 in the memory, 0.01 at the policy's
    output (so that the first policy is close to uniform) and 1 at the value's; biases are zero. The standard
    deviation of Gaussian policies does not depend on the observation. Source: Andrychowicz et al., "What
    Matters in On-Policy Reinforcement Learning?" (2021), sections 3.2 and 3.3; Huang et al., "The 37
    Implementation Details of PPO" (2022).
    """

    def __init__(self, spec: PolicySpec, generator: torch.Generator) -> None:
        super().__init__()
        self.spec = spec
        self.features, width = image_network(spec.observations)
        hidden = () if spec.observations.is_image else spec.hidden
        self.policy_trunk = perceptron(width, hidden, spec.activation)
        shared = spec.shared_trunk or spec.memory != "none"
        self.value_trunk = None if shared else perceptron(width, hidden, spec.activation)
        last = hidden[-1] if hidden else width
        self.memory: Memory | None = None
        if spec.memory != "none":
            self.memory, last = Memory(spec.memory, last, spec.memory_size), spec.memory_size
        self.policy_head = nn.Linear(last, sum(spec.actions.sizes))
        self.value_head = nn.Linear(last, 1)
        if spec.actions.kind == "gaussian":
            self.log_std = nn.Parameter(torch.zeros(sum(spec.actions.sizes)))
        initialise_orthogonally(self, generator, {self.policy_head: 0.01, self.value_head: 1.0})
        self._perceptron: acting.Perceptron | None = None
        self._perceptron_address = 0

    @override
    def forward(self, observations: Tensor) -> tuple[Distribution, Tensor]:
        """Distributions over actions, and values [B], of encoded observations [B, *obs]; differentiable.

        Raises ValueError if the policy has a memory, since an observation alone then says too little.
        """
        if self.memory is not None:
            raise ValueError(
                "a policy with memory needs to know what came before; evaluate it over sequences"
            )
        return self._heads(*self._hidden(observations), observations)

    def evaluate(
        self, observations: Tensor, actions: Tensor, sequences: Sequences | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(log-probabilities of `actions` [B, *act], entropies, values), each [B] and differentiable.

        sequences: which of the rows follow each other; read, and needed, by a policy with memory alone.
        Raises ValueError if a policy with memory is not given them, NoValidAction if the mask of a row allows no
        action.
        """
        if self.memory is None or sequences is None:
            distribution, values = self(observations)
        else:
            device = observations.device
            padding = Padding(to_tensor(sequences.lengths, device))
            features = padding.pad(self._hidden(observations)[0])
            remembered = padding.unpad(self.memory(features, to_tensor(sequences.states, device))[0])
            distribution, values = self._heads(remembered, remembered, observations)
        return distribution.log_prob(actions), distribution.entropy(), values

    def act(self, observations: ObservationArray, state: StateArray, generator: np.random.Generator) -> Acted:
        """Sample an action for each of N observations: see `Policy.act`.

        Raises NoValidAction if an observation's mask allows no action.
        """
        outputs, values, state = self._acting_outputs(observations, state)
        actions, log_probs = self._sampled(outputs, generator)
        return Acted(actions, log_probs, values, state)

    def act_out(self, steps: int, num_envs: int, generator: np.random.Generator) -> FragmentActing | None:
        """See `ActsByFragment`: for perceptrons over categories, without memory."""
        fast = self._fast(num_envs)
        if fast is None or fast.memory is not None or self.spec.actions.kind != "categorical":
            return None
        drawn = acting.CategoricalFragment(fast, steps, num_envs, generator)
        return _ActingFragment(drawn, self.spec.observations)

    def greedy(self, observations: ObservationArray, state: StateArray) -> tuple[ActionArray, StateArray]:
        """The most probable action, [N, *act], for each of N observations, and the next state.

        Raises NoValidAction if an observation's mask allows no action.
        """
        outputs, _, state = self._acting_outputs(observations, state)
        return self._most_probable(outputs), state

    def value(self, observations: ObservationArray, state: StateArray) -> NDArray[np.float32]:
        """Values [N] of N observations; action masks are not looked at."""
        fast = self._fast(len(observations))
        if fast is not None:
            return fast.values(_numpy_features(observations, self.spec.observations), state)
        if self.value_trunk is None:
            return self._inferred(observations, state)[1]
        with torch.inference_mode():
            features = self._features(to_tensor(observations, self.value_head.weight.device))
            values: NDArray[np.float32] = (
                self.value_head(self.value_trunk(features)).squeeze(-1).cpu().numpy()
            )
            return values

    def _features(self, observations: Tensor) -> Tensor:
        """What the hidden layers read of observations [B, *obs]."""
        if self.features is not None:
            features: Tensor = self.features(observations)
            return features
        if self.spec.observations.mask is not None:
            return observations[:, : self.spec.observations.feature_count]
        return observations

    def _hidden(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """What the hidden layers of policy and of value make of observations [B, *obs]."""
        features = self._features(observations)
        policy_features = self.policy_trunk(features)
        return policy_features, policy_features if self.value_trunk is None else self.value_trunk(features)

    def _heads(
        self, features: Tensor, value_features: Tensor, observations: Tensor
    ) -> tuple[Distribution, Tensor]:
        outputs = self.policy_head(features)
        mask = self.spec.observations.mask
        if mask is not None:
            outputs = masked(outputs, observations[:, mask] != 0, self.spec.actions.sizes)
        return self._distribution(outputs), self.value_head(value_features).squeeze(-1)

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
        self, observations: ObservationArray, state: StateArray
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], StateArray]:
        """What the heads give for N observations, masked: (policy outputs [N, P], values [N], next state)."""
        fast = self._fast(len(observations))
        if fast is None:
            outputs, values, state = self._inferred(observations, state)
        else:
            features = _numpy_features(observations, self.spec.observations)
            outputs, values, state = fast.outputs(features, state)
        mask = self.spec.observations.mask
        if mask is not None:
            outputs = acting.masked(outputs, observations[:, mask] != 0, self.spec.actions.sizes)
        return outputs, values, state

    def _inferred(
        self, observations: ObservationArray, state: StateArray
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], StateArray]:
        device = self.value_head.weight.device
        with torch.inference_mode():
            features, value_features = self._hidden(to_tensor(observations, device))
            if self.memory is not None:
                remembered, following = self.memory(features.unsqueeze(0), to_tensor(state, device))
                features = value_features = remembered.squeeze(0)
                state = following.cpu().numpy()
            values = self.value_head(value_features).squeeze(-1)
            return self.policy_head(features).cpu().numpy(), values.cpu().numpy(), state

    def _fast(self, rows: int) -> acting.Perceptron | None:
        """The numpy form, whose arrays are views of the parameters, so that it never lags behind them.

        None where it is not faster: for many rows, and for other networks than perceptrons.
        """
        weight = self.value_head.weight
        if rows > _FEW_ROWS or self.features is not None or weight.device.type != "cpu":
            return None
        # Moving or copying the module gives its parameters new memory: then the views are of the old.
        if self._perceptron is None or self._perceptron_address != weight.data_ptr():
            self._perceptron_address = weight.data_ptr()
            self._perceptron = acting.Perceptron(
                policy_layers=_layers(self.policy_trunk),
                value_layers=None if self.value_trunk is None else _layers(self.value_trunk),
                policy_head=numpy_layer(self.policy_head.weight, self.policy_head.bias),
                value_head=numpy_layer(self.value_head.weight, self.value_head.bias),
                activation=acting.tanh_in_place if self.spec.activation == "tanh" else acting.relu_in_place,
                memory=None if self.memory is None else self.memory.cell(),
            )
        return self._perceptron

    @override
    def __getstate__(self) -> dict[str, Any]:
        # In another process the same address says nothing.
        return self.__dict__ | {"_perceptron": None}


@dataclass(frozen=True, eq=False)
class _ActingFragment:
    """`CategoricalFragment` on encoded observations, which may have a mask."""

    drawn: acting.CategoricalFragment
    codec: ObservationCodec

    def act(self, observations: ObservationArray) -> ActionArray:
        mask = self.codec.mask
        allowed = None if mask is None else observations[:, mask] != 0
        return self.drawn.act(_numpy_features(observations, self.codec), allowed)

    def log_probs(self, actions: ActionArray) -> NDArray[np.float32]:
        return self.drawn.log_probs(actions.astype(np.int64, copy=False))


def _numpy_features(observations: ObservationArray, codec: ObservationCodec) -> NDArray[np.float32]:
    rows = observations.astype(np.float32, copy=False)
    return rows if codec.mask is None else rows[:, : codec.feature_count]


def _layers(trunk: nn.Sequential) -> list[acting.Layer]:
    return [numpy_layer(layer.weight, layer.bias) for layer in trunk if isinstance(layer, nn.Linear)]
