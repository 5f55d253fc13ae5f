"""EnvPool's environments, Atari among them, as vectors that gymnasium knows by name.

Importing this registers each of EnvPool's names, such as `Pong-v5`, as `EnvPool/Pong-v5`, so that an environment
is `EnvSpec("pipeflow.rl.envpool:EnvPool/Pong-v5")`, and an option of EnvPool a keyword of it, as in
`{"num_threads": 2}`. (A `/` within a name is written as a dot: `EnvPool/phys2d.CartPole-v1`.) Apart from
`environments`, which works without EnvPool: the extra `envpool` brings it.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from typing_extensions import override

try:
    import envpool
except ImportError as error:
    raise ImportError("EnvPool is not there; pip install 'pipeflow[envpool]'") from error


# What a batch of observations or actions is, the task's spaces say, and gymnasium leaves it to Any.
class EnvPoolVector(VectorEnv[Any, Any, NDArray[Any]]):
    """`num_envs` environments of a task, stepped by EnvPool's threads.

    EnvPool has gymnasium's interface for vectors, and spends a step on each reset. But it takes a seed only where
    it is made, so that is done in `reset`.

    task: EnvPool's name for it. options: EnvPool's own. An episode that reaches a terminal state at the last step
    that it may have is truncated: EnvPool does not tell the two apart.
    Raises ValueError for an option that the task does not have.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  # as gymnasium declares it

    def __init__(self, task: str, num_envs: int, **options: object) -> None:
        try:
            spec = envpool.make_spec(task, num_envs=num_envs, **options)
        except TypeError as error:
            known = sorted(envpool.make_spec(task).config._fields)
            raise ValueError(f"EnvPool's {task}: {error}; its options are {', '.join(known)}") from error
        self.num_envs = num_envs
        with _quiet_spaces():
            self.single_observation_space = spec.gymnasium_observation_space
            self.single_action_space = spec.gymnasium_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._task, self._options = task, options
        self._pool: Any = None  # its class is of the task, and made when EnvPool is imported

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in each. seed: from which each gets a stream of its own; None goes on with theirs."""
        if self._pool is None or seed is not None:
            seeded = self._options if seed is None else {**self._options, "seed": seed}
            self._pool = envpool.make_gymnasium(self._task, num_envs=self.num_envs, **seeded)
        with _quiet_spaces():
            observations, _ = self._pool.reset(options=options)
        return observations, {}

    @override
    def step(self, actions: Any) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take an action in each, or reset it if its episode ended in the step before. Infos are dropped."""
        observations, rewards, terminated, truncated, _ = self._pool.step(np.asarray(actions))
        return observations, rewards, terminated, truncated, {}

    @override
    def close_extras(self, **kwargs: Any) -> None:
        self._pool = None  # which ends its threads


@contextmanager
def _quiet_spaces() -> Generator[None]:
    """EnvPool gives bounds as float64, and gymnasium warns that a space of float32 rounds them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*precision lowered by casting")
        yield


for _task in envpool.list_all_envs():
    gymnasium.register(
        f"EnvPool/{_task.replace('/', '.')}",
        vector_entry_point=f"{__name__}:{EnvPoolVector.__name__}",
        kwargs={"task": _task},
    )
