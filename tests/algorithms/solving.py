"""How well CartPole is played when a value-based algorithm has trained for a while."""

from __future__ import annotations

from typing import Literal

from pipeflow import Stream, group_of
from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.learners.dqn import DQNLearner
from pipeflow.rl.replay_batches import TDReport

_LOOK_EVERY = 5000


def best_return(
    plan: Stream[TDReport],
    env: EnvSpec,
    policy: ActionValueSpec,
    engine: Literal["inline", "ray"],
    steps: int,
) -> float:
    """Mean return of 20 greedy episodes after `steps` environment steps at most, or as soon as it is 475."""
    learner = group_of(plan, DQNLearner)
    best, looked = 0.0, 0
    with plan.until(lambda report: report.lifetime_steps >= steps).run(engine) as run:
        for report in run:
            if report.lifetime_steps >= looked + _LOOK_EVERY:
                looked = report.lifetime_steps
                weights = run.ask(learner, DQNLearner.weights)[0]
                best = evaluate(env, policy, weights, 20, seed=100).mean_return
                if best >= 475:
                    break
    return best
