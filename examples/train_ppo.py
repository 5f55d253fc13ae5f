"""Train PPO from Python, look at every report, and evaluate the policy.

python examples/train_ppo.py [steps]
"""

from __future__ import annotations

import sys

from pipeflow import group_of
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec


def main(steps: int) -> None:
    config = PPOConfig(env=EnvSpec("CartPole-v1"), workers=2, seed=1)
    plan = ppo(config)
    learner = group_of(plan, PPOLearner)
    with plan.until(lambda report: report.lifetime_steps >= steps).run() as run:
        for report in run:
            print(f"{report.lifetime_steps:>7} steps  mean return {report.episodes.mean_return:6.1f}")
        weights = run.ask(learner, PPOLearner.weights)[0]
    played = evaluate(config.env, PolicySpec.for_env(config.env), weights, episodes=20, seed=1)
    print(f"greedy: {played.mean_return:.1f} over {played.count} episodes")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000)
