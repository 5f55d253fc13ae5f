"""An operator of your own: a bonus for states that were seldom seen, added to the rewards in the workers.

python examples/own_operator.py [steps] [scale]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import numpy as np

from pipeflow import Expand, actors, expand, gather_rounds, sync_weights
from pipeflow.rl.batches import Advantages, Trajectories
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker


class CountBonus:
    """Adds scale / sqrt(visits) to each reward, by cells of the normalised state (Bellemare et al. 2016)."""

    def __init__(self, scale: float) -> None:
        self._visits, self._scale = np.zeros((24, 24), np.float32), scale

    def push(self, item: Trajectories) -> list[Trajectories]:
        cells = tuple(np.moveaxis(np.clip(6 * item.next_observations() + 12, 0, 23).astype(int), -1, 0))
        np.add.at(self._visits, cells, 1)
        return [replace(item, rewards=item.rewards + self._scale / np.sqrt(self._visits[cells]))]

    def finish(self) -> list[Trajectories]:
        return []


def count_bonus(scale: float) -> Expand[Trajectories, Trajectories]:
    """The operator: before a gather, every worker counts for itself."""
    return expand(partial(CountBonus, scale)).named(f"count_bonus({scale})")


def main(steps: int, scale: float) -> None:
    env = EnvSpec("MountainCar-v0")
    policy = PolicySpec.for_env(env)
    workers = actors(RolloutWorker, 2, env, policy, normalise_observations=True, seed=1)
    learner = actors(PPOLearner, 1, policy, lr=2e-3, epochs=8, entropy_coef=0.01, seed=1)
    plan = (
        workers.produce(RolloutWorker.sample) | count_bonus(scale) | gae() | gather_rounds()
        | Advantages.concatenate | learner.stage(PPOLearner.update) | sync_weights(learner, workers)
    )  # fmt: skip
    for report in plan.until(lambda report: report.lifetime_steps >= steps).run():
        print(f"{report.lifetime_steps:>7} steps  mean return {report.episodes.mean_return:6.1f}")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, 120_000)), float(given.get(2, 1.0)))
