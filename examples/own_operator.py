"""An operator of your own: a bonus for rarely seen states, without which PPO seldom finds the end of a corridor.

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

LENGTH = 60


class CountBonus:
    """Adds scale / sqrt(visits) to each reward, by the state that it led to (Bellemare et al. 2016)."""

    def __init__(self, scale: float) -> None:
        self._visits, self._scale = np.zeros(LENGTH, np.float32), scale

    def push(self, item: Trajectories) -> list[Trajectories]:
        states = item.next_observations().argmax(axis=-1)  # they are one-hot
        np.add.at(self._visits, states, 1)
        return [replace(item, rewards=item.rewards + self._scale / np.sqrt(self._visits[states]))]

    def finish(self) -> list[Trajectories]:
        return []


def count_bonus(scale: float) -> Expand[Trajectories, Trajectories]:
    return expand(partial(CountBonus, scale)).named(f"count_bonus({scale})")


def main(steps: int, scale: float) -> None:
    env = EnvSpec("FrozenLake-v1", {"desc": ["S" + "F" * (LENGTH - 2) + "G"], "is_slippery": False})
    policy = PolicySpec.for_env(env)
    workers = actors(RolloutWorker, 2, env, policy, seed=1)
    learner = actors(PPOLearner, 1, policy, lr=1e-3, entropy_coef=0.01, seed=1)
    plan = (
        workers.produce(RolloutWorker.sample) | count_bonus(scale) | gae() | gather_rounds()
        | Advantages.concatenate | learner.stage(PPOLearner.update) | sync_weights(learner, workers)
    )  # fmt: skip
    for report in plan.until(lambda report: report.lifetime_steps >= steps).run():
        print(f"{report.lifetime_steps:>7} steps  reached the end: {report.episodes.mean_return:4.0%}")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, 80_000)), float(given.get(2, 0.1)))
