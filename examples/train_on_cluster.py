"""The plan of PPO on a cluster: who gets which resources, how workers share the nodes, and what a lost node costs.

python examples/train_on_cluster.py [steps] [address]    (no address: a Ray of this machine, for the run alone)
"""

from __future__ import annotations

import sys

from pipeflow import Stream, actors, gather_rounds, sync_weights
from pipeflow.lowering.engines.ray import Ray
from pipeflow.rl.batches import Advantages, Report
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker


def placed_ppo(env: EnvSpec, workers: int, seed: int) -> Stream[Report]:
    policy = PolicySpec.for_env(env)
    rollouts = (
        actors(RolloutWorker, workers, env, policy, seed=seed)
        .resources(cpus=1)  # a core each
        .placement("spread")  # on as many nodes as there are
        .restarts(20)  # wherever there is room, when a node is gone
    )
    learner = actors(PPOLearner, 1, policy, lr=1e-3, epochs=8, seed=seed).resources(cpus=1)  # or gpus=1
    return (
        rollouts.produce(RolloutWorker.sample)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, rollouts)
    )


def main(steps: int, address: str | None) -> None:
    plan = placed_ppo(EnvSpec("CartPole-v1"), workers=2, seed=1)
    with plan.until(lambda report: report.lifetime_steps >= steps).run(Ray(address)) as run:
        for report in run:
            print(f"{report.lifetime_steps:>7} steps  mean return {report.episodes.mean_return:6.1f}")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, 100_000)), given.get(2))
