"""A loss of your own: PPO that is also taught that CartPole looks the same in a mirror.

python examples/custom_loss.py [updates] [weight]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from pipeflow import actors, gather_rounds, sync_weights, take
from pipeflow.rl.batches import Advantages
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.learners.ppo_loss import PPOLoss
from pipeflow.rl.learners.ppo_rows import Rows
from pipeflow.rl.policies import ActorCritic, PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker


@dataclass(frozen=True)
class SymmetricPPOLoss(PPOLoss):
    """PPO's loss, and `weight` times how differently the policy acts in the mirror (Yu et al. 2018)."""

    metrics = (*PPOLoss.metrics, "asymmetry")
    weight: float = 10.0

    @override
    def __call__(self, policy: ActorCritic, rows: Rows) -> tuple[Tensor, Tensor]:
        loss, record = super().__call__(policy, rows)
        log_probs, _, _ = policy.evaluate(rows.observations, rows.actions)
        mirrored, _, _ = policy.evaluate(-rows.observations, 1 - rows.actions)
        asymmetry = (log_probs.exp() - mirrored.exp()).square().mean()
        return loss + self.weight * asymmetry, torch.cat([record, asymmetry.detach()[None]])


def main(updates: int, weight: float) -> None:
    env = EnvSpec("CartPole-v1")
    policy = PolicySpec.for_env(env)
    workers = actors(RolloutWorker, 2, env, policy, seed=1)
    learner = actors(PPOLearner, 1, policy, lr=1e-3, loss=SymmetricPPOLoss(weight=weight), seed=1)
    plan = (
        workers.produce(RolloutWorker.sample) | gae() | gather_rounds() | Advantages.concatenate
        | learner.stage(PPOLearner.update) | sync_weights(learner, workers) | take(updates)
    )  # fmt: skip
    for report in plan.run():
        print(f"mean return {report.episodes.mean_return:6.1f}  asymmetry {report.metrics['asymmetry']:.5f}")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, 20)), float(given.get(2, 10.0)))
