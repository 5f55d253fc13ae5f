"""An algorithm of your own: REINFORCE with a baseline, as a plan over a learner that you write.

python examples/own_algorithm.py [updates]
"""

from __future__ import annotations

import sys

from torch import tensor

from pipeflow import Stream, actors, gather_rounds, sync_weights, take
from pipeflow.rl.batches import Advantages, Report
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.learner import Learner
from pipeflow.rl.losses import normalise_advantages, value_loss
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker


class ReinforceLearner(Learner):
    """One step up the policy gradient for every batch."""

    def update(self, batch: Advantages) -> Report:
        self.begin_update()
        log_probs, _, values = self.policy.evaluate(tensor(batch.observations), tensor(batch.actions))
        gain = (log_probs * normalise_advantages(tensor(batch.advantages))).mean()
        self.descend(0.5 * value_loss(values, tensor(batch.value_targets)) - gain)
        return self.report(batch, {"gain": gain.item()})


def reinforce(env: EnvSpec, seed: int) -> Stream[Report]:
    """Lambda 1 makes GAE the sampled return minus the baseline: REINFORCE (Williams 1992)."""
    policy = PolicySpec.for_env(env)
    workers = actors(RolloutWorker, 2, env, policy, num_envs=8, fragment_length=64, seed=seed)
    learner = actors(ReinforceLearner, 1, policy, lr=3e-3, seed=seed)
    return (
        workers.produce(RolloutWorker.sample)
        | gae(0.99, 1.0)
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(ReinforceLearner.update)
        | sync_weights(learner, workers)
    )


def cartpole() -> Stream[Report]:
    """Exactly on-policy: pipeflow simulate examples.own_algorithm:cartpole --items 3 --max-lag 0"""
    return reinforce(EnvSpec("CartPole-v1"), seed=1)


def main(updates: int) -> None:
    for report in (cartpole() | take(updates)).run():
        print(f"{report.lifetime_steps:>7} steps  mean return {report.episodes.mean_return:6.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
