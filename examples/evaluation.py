"""Evaluation during training: a branch of the plan plays greedily with every fifth weights; training never waits.

python examples/evaluation.py [steps] [inline|ray]
"""

from __future__ import annotations

import sys

from pipeflow import Stream, actors, gather_async, gather_rounds, sync_weights
from pipeflow.rl.batches import Advantages, Report
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.evaluation import Evaluation, Evaluator
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker


def evaluated_ppo(env: EnvSpec, seed: int) -> Stream[Report | Evaluation]:
    policy = PolicySpec.for_env(env)
    workers = actors(RolloutWorker, 2, env, policy, seed=seed)
    learner = actors(PPOLearner, 1, policy, lr=1e-3, epochs=8, seed=seed)
    evaluators = actors(Evaluator, 1, env, policy, episodes=10, seed=seed)
    training = (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
        | sync_weights(learner, evaluators, every=5)
    )
    evaluations = evaluators.produce(Evaluator.evaluate) | gather_async()  # ready when weights have come
    return training & evaluations


def main(steps: int, engine: str) -> None:
    plan = evaluated_ppo(EnvSpec("CartPole-v1"), seed=1)
    done = plan.until(lambda item: isinstance(item, Report) and item.lifetime_steps >= steps)
    for item in done.run("ray" if engine == "ray" else "inline"):
        if isinstance(item, Evaluation):
            print(f"after {item.version:>3} updates: greedy return {item.episodes.mean_return:5.1f}")
        else:
            print(f"{item.lifetime_steps:>7} steps: mean return {item.episodes.mean_return:5.1f}")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, 60_000)), given.get(2, "inline"))
