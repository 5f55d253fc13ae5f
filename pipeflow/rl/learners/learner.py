"""What every learner has: parameters, a guarded optimiser, statistics, counters, and a state to save.

Apart from the algorithms, which add only what they optimise. A learner is an actor's class: it is made inside
its process, and what goes in and out of its methods is plain numpy data. It holds no random generator:
whatever is random in an update is drawn from the seed and the number of the update, so the counters alone say
where a run stands.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import TypeVar

from pipeflow.rl.batches import Report, Weights, merged_moments
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.learners.adam import Adam
from pipeflow.rl.modules import ModuleDescription, PortableModule
from pipeflow.rl.policies import ActorCritic
from pipeflow.rl.replay_batches import Samples
from pipeflow.rl.running_moments import Moments
from pipeflow.rl.schedules import Schedule, as_schedule
from pipeflow.rl.seeding import derive_seed
from pipeflow.state.values import StateValue, arrays_under

Module = TypeVar("Module", bound=PortableModule, default=ActorCritic)


class TrainedOn(Protocol):
    """What an update needs to know of its batch when it ends, if the batch was acted out for it."""

    @property
    def version(self) -> int:
        """Of the weights that it was made with."""
        ...

    @property
    def episodes(self) -> EpisodeStats:
        """Those that finished in it."""
        ...

    @property
    def steps(self) -> int:
        """Environment steps in it."""
        ...

    @property
    def observation_moments(self) -> Moments | None:
        """Statistics of its observations alone; None if none were taken."""
        ...

    @property
    def return_moments(self) -> Moments | None:
        """Statistics of its running returns alone; None if none were taken."""
        ...


@dataclass(frozen=True)
class StepOutcome:
    """What one optimiser step did. gradient_norm: before clipping. applied: False if it was skipped."""

    gradient_norm: float
    applied: bool


class Optimizer(Protocol):
    """What steps down the gradient of what it was made for."""

    def step(self) -> object:
        """One step."""
        ...


def clipped_step(optimizer: Optimizer, parameter: nn.Parameter, max_norm: float | None) -> StepOutcome:
    """Scale the gradient down to a norm of `max_norm`, then step; a norm that is not finite skips the step.

    Clipping cannot mend a nan: it would spread to every parameter, and nothing would bring them back.
    parameter: what `optimizer` optimises, with its gradient. max_norm: None clips nothing.
    """
    gradient = _gradient(parameter)
    norm = float(torch.linalg.vector_norm(gradient))
    if not math.isfinite(norm):
        return StepOutcome(norm, applied=False)
    if max_norm is not None and norm > max_norm:
        gradient.mul_(max_norm / norm)
    optimizer.step()
    return StepOutcome(norm, applied=True)


def flatten_parameters(module: nn.Module) -> nn.Parameter:
    """One parameter that shares its memory, and its gradient's, with all parameters of the module.

    An optimiser of this one parameter does in one operator what it would do in one for each of many; with
    small networks that is a tenth of an update's time. Only moving the module to another device undoes the
    sharing.
    Raises ValueError if the parameters differ in dtype or device.
    """
    parameters = list(module.parameters())
    kinds = {(parameter.dtype, parameter.device) for parameter in parameters}
    if len(kinds) != 1:
        raise ValueError(f"parameters of several dtypes or devices cannot share one tensor: {kinds}")
    flat = nn.Parameter(torch.cat([parameter.detach().reshape(-1) for parameter in parameters]))
    flat.grad = torch.zeros_like(flat)
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = flat.data[start:end].view_as(parameter)
        # Given a gradient, autograd adds to it in place; given none, it would make one of its own memory.
        parameter.grad = flat.grad[start:end].view_as(parameter)
        start = end
    return flat


class Learner(Generic[Module]):
    """A network's parameters, Adam, and what must be saved with them.

    `Module` is the class of the network, an `ActorCritic` where nothing is said. policy: built from the seed,
    as a `RolloutWorker` of the same seed builds it, so both start from equal weights. lr: learning rate, a
    number or a schedule over environment steps trained on. max_grad_norm: global norm that gradients are
    clipped to, None for no clipping. seed: of the parameters and of whatever an update draws. device: torch's
    name for where the network is. threads: that torch computes with on the CPU.
    """

    def __init__(
        self,
        policy: ModuleDescription[Module],
        *,
        lr: float | Schedule = 3e-4,
        max_grad_norm: float | None = 0.5,
        seed: int = 0,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        self._device = _usable_device(device)
        self.policy: Module = policy.build(derive_seed(seed, "policy"), device)
        self._parameters = flatten_parameters(self.policy)
        self._lr = as_schedule(lr)
        self._max_grad_norm = max_grad_norm
        self._seed = seed
        self._threads = threads
        self._optimizer = Adam(self._parameters, self._lr(0))
        self._version = 0
        self._lifetime_steps = 0
        self._skipped_updates = 0
        self._observation_moments: Moments | None = None
        self._return_moments: Moments | None = None

    @property
    def version(self) -> int:
        """Number of updates so far: the version of the weights."""
        return self._version

    @property
    def lifetime_steps(self) -> int:
        """Environment steps trained on, over all runs that this state went through."""
        return self._lifetime_steps

    def weights(self) -> Weights:
        """A copy of the parameters and of the statistics; later updates do not change it."""
        parameters = self.policy.parameters_numpy()
        for array in parameters.values():
            array.setflags(write=False)
        return Weights(self._version, parameters, self._observation_moments, self._return_moments)

    def state(self) -> dict[str, StateValue]:
        """All that the next update depends on, under flat names: parameters, optimiser, statistics, counters."""
        state: dict[str, StateValue] = {
            "version": self._version,
            "lifetime_steps": self._lifetime_steps,
            "skipped_updates": self._skipped_updates,
        }
        for name, array in self.policy.parameters_numpy().items():
            state[f"parameters/{name}"] = array
        for name, array in self._optimizer.state().items():
            state[f"optimizer/{name}"] = array
        for quantity, moments in (
            ("observation", self._observation_moments),
            ("return", self._return_moments),
        ):
            if moments is not None:
                state[f"moments/{quantity}/count"] = moments.count
                state[f"moments/{quantity}/mean"] = moments.mean
                state[f"moments/{quantity}/variance"] = moments.variance
        return state

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on where the learner that gave this state stood.

        The next update is bit for bit the one that it would have made.
        Raises ValueError if the state is of another policy.
        """
        self.policy.load_numpy(arrays_under("parameters/", state))
        self._optimizer.load_state(arrays_under("optimizer/", state))
        self._observation_moments = _moments("observation", state)
        self._return_moments = _moments("return", state)
        self._version = _integer("version", state)
        self._lifetime_steps = _integer("lifetime_steps", state)
        self._skipped_updates = _integer("skipped_updates", state)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        # The network's parameters are views of one tensor and the optimiser's state hangs on that tensor: copied
        # one by one they would come apart.
        twin = copy.copy(self)
        for name in vars(self).keys() - {"policy", "_parameters", "_optimizer"}:
            setattr(twin, name, copy.deepcopy(getattr(self, name), memo))
        twin.policy = copy.deepcopy(self.policy, memo)
        twin._parameters = flatten_parameters(twin.policy)
        twin._optimizer = Adam(twin._parameters, self._lr(0))
        twin.load_state(self.state())
        return twin

    def begin_update(self) -> float:
        """Set the learning rate in force at this point of the run, and return it."""
        self._optimizer.lr = self._lr(self._lifetime_steps)
        return self._optimizer.lr

    def descend(self, loss: Tensor) -> StepOutcome:
        """One guarded optimiser step down the gradient of `loss`."""
        self.differentiate(loss)
        return self.step()

    def differentiate(self, loss: Tensor) -> None:
        """Set the parameters' gradient to that of `loss`."""
        _gradient(self._parameters).zero_()
        torch.autograd.backward(loss)

    def gradient(self) -> NDArray[np.float32]:
        """A copy of the gradient, [P], of all parameters in the order of the module's `parameters()`."""
        return _gradient(self._parameters).detach().cpu().numpy().copy()

    def descend_along(self, gradient: Tensor) -> StepOutcome:
        """One guarded optimiser step down a gradient [P] that was computed elsewhere.

        gradient: of all parameters, flattened and joined in the order of the module's `parameters()`.
        """
        _gradient(self._parameters).copy_(gradient)
        return self.step()

    def step(self) -> StepOutcome:
        """One guarded optimiser step down the parameters' gradient."""
        outcome = clipped_step(self._optimizer, self._parameters, self._max_grad_norm)
        if not outcome.applied:
            self._skipped_updates += 1
        return outcome

    def report(self, batch: TrainedOn | Samples, metrics: Mapping[str, float]) -> Report:
        """End the update on a batch, or on a sample of replay, and say what it did.

        Of a sample, `steps` in the report are its rows, and `lifetime_steps` grow by its `new_env_steps`.
        metrics: what was measured, to which this adds `skipped_updates`, optimiser steps skipped so far, and
        `policy_lag`, how many versions the weights of the batch were behind. A sample has no such lag: its rows
        are of many versions.
        """
        lag = {} if isinstance(batch, Samples) else {"policy_lag": self.version - batch.version}
        self.end_update(batch)
        return Report(
            version=self.version,
            steps=batch.steps,
            lifetime_steps=self.lifetime_steps,
            episodes=batch.episodes,
            metrics={**metrics, "skipped_updates": self._skipped_updates, **lag},
        )

    def end_update(self, batch: TrainedOn | Samples) -> None:
        """Count the update, and take in the statistics that came with its batch; a sample brings none."""
        if isinstance(batch, Samples):
            self.count_update(batch.new_env_steps)
            return
        self.count_update(batch.steps)
        self._observation_moments = merged_moments([self._observation_moments, batch.observation_moments])
        self._return_moments = merged_moments([self._return_moments, batch.return_moments])

    def count_update(self, steps: int) -> None:
        """Count an update of `steps` environment steps that brought no statistics."""
        self._version += 1
        self._lifetime_steps += steps


def _usable_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f'device {name!r} cannot be used here: {reason}; "cpu" always can') from error
    return device


def _gradient(parameter: nn.Parameter) -> Tensor:
    gradient = parameter.grad
    assert gradient is not None  # flatten_parameters gave it one, and nothing takes it away
    return gradient


def _moments(quantity: str, state: Mapping[str, StateValue]) -> Moments | None:
    count = state.get(f"moments/{quantity}/count")
    if count is None:
        return None
    mean, variance = state[f"moments/{quantity}/mean"], state[f"moments/{quantity}/variance"]
    return Moments(float(count), np.array(mean, np.float64), np.array(variance, np.float64))


def _integer(name: str, state: Mapping[str, StateValue]) -> int:
    if name not in state:
        raise ValueError(f"the learner's state has no {name!r}; give load_state what state() returned")
    return int(state[name])
