"""Advantage actor-critic, asynchronous (Mnih et al. 2016): gradients are applied as they come, and answered.

Reads top to bottom: the configuration, then the plan. Its actors are A2C's (`pipeflow.algorithms.a2c`); what
differs is the plan: nobody waits for the slowest worker, and new weights go to just the worker whose gradient
made them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeflow.algorithms.a2c import A2CConfig, learner_of, policy_of, workers_of
from pipeflow.algorithms.settings import Positive
from pipeflow.dsl import Stream, gather_async, reply_weights
from pipeflow.rl.batches import Report
from pipeflow.rl.learners.actor_critic import GradientWorker
from pipeflow.rl.learners.gradient_learner import GradientLearner
from pipeflow.rl.returns import gae

__all__ = ["A3CConfig", "a3c", "policy_of"]


@dataclass(frozen=True)
class A3CConfig(A2CConfig):
    """Every number that A3C depends on: those of A2C."""

    lr: Positive = 1e-3
    """Adam's learning rate; every worker's gradient takes a step of its own."""


def a3c(config: A3CConfig) -> Stream[Report]:
    """A3C's plan: every worker's gradient is one update, and its sender alone gets the new weights."""
    workers, learner = workers_of(config), learner_of(config)
    rollouts = workers.produce(GradientWorker.sample) | gae(config.gamma, config.lam)
    gradients = rollouts | workers.stage(GradientWorker.gradients) | gather_async().with_source()
    return gradients | learner.stage(GradientLearner.apply) | reply_weights(learner)
