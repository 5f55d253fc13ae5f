"""Continuous actions: PPO on a task of MuJoCo's, with observations and rewards scaled by running statistics.

python examples/train_mujoco.py [steps]    (pip install 'pipeflow[mujoco]')
"""

from __future__ import annotations

import sys

from pipeflow import group_of
from pipeflow.algorithms.ppo import PPOConfig, policy_of, ppo
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.learners.ppo import PPOLearner


def main(steps: int) -> None:
    config = PPOConfig(
        env=EnvSpec("InvertedDoublePendulum-v5"), workers=2, num_envs=4, fragment_length=256, lr=1e-3,
        anneal_steps=steps, epochs=10, normalise_observations=True, normalise_rewards=True, seed=1,
    )  # fmt: skip
    plan = ppo(config)
    learner = group_of(plan, PPOLearner)
    with plan.until(lambda report: report.lifetime_steps >= steps).run() as run:
        for report in run:
            print(f"{report.lifetime_steps:>7} steps  mean return {report.episodes.mean_return:7.1f}")
        weights = run.ask(learner, PPOLearner.weights)[0]
    # The weights bring the statistics along that observations are normalised by.
    played = evaluate(config.env, policy_of(config), weights, episodes=10, seed=1)
    print(f"greedy: {played.mean_return:.1f} over {played.count} episodes")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
