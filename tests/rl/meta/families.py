"""Small task families and workers on them, for the tests of meta-learning."""

from __future__ import annotations

from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.meta.point_navigation import POINT_NAVIGATION
from pipeflow.rl.meta.tasks import TaskDistribution
from pipeflow.rl.meta.worker import MAMLWorker
from pipeflow.rl.policies import PolicySpec

ENV = EnvSpec(POINT_NAVIGATION, {"horizon": 5})
TASKS = TaskDistribution(ENV, {"goal_x": (-0.5, 0.5), "goal_y": (-0.5, 0.5)})
POLICY = PolicySpec.for_env(ENV, hidden=(8,), shared_trunk=True)
STEP_SIZE = 0.5


def worker(index: int = 0) -> MAMLWorker:
    """Five steps of four environments, twice."""
    return MAMLWorker(TASKS, POLICY, num_envs=4, fragment_length=10, step_size=STEP_SIZE, seed=0, index=index)
