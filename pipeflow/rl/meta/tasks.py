"""A distribution over tasks: one environment, some of whose arguments differ from task to task.

Apart from the environments, which know nothing of tasks: a task is an `EnvSpec` like any other, so whatever
steps, evaluates or describes an environment does so with a task. Nobody has to reach into a running
environment to change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pipeflow.rl.environments import EnvSpec


@dataclass(frozen=True)
class TaskDistribution:
    """Tasks that differ in arguments of the environment, each drawn uniformly from its range.

    env: what all tasks share; ranges stand over its own arguments. ranges: (low, high) by the argument's name.
    Raises ValueError for a range whose low is above its high.
    """

    env: EnvSpec
    ranges: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        for name, (low, high) in self.ranges.items():
            if not low <= high:
                raise ValueError(f"the range of {name} goes from {low} to {high}; give the smaller one first")

    def sample(self, seed: int) -> EnvSpec:
        """The task of a seed: the same one in every process."""
        generator = np.random.default_rng(seed)
        # In the order of the names, so that how a mapping was written does not matter.
        drawn = {name: float(generator.uniform(*self.ranges[name])) for name in sorted(self.ranges)}
        return replace(self.env, kwargs={**self.env.kwargs, **drawn})
