"""Decentralised distributed PPO (Wijmans et al. 2020): no learner; the workers average their gradients themselves.

Reads top to bottom: the configuration, then the plan. ``gather_rounds() | workers.broadcast() | Gradients.mean``
is an all-reduce: each worker reads the gradients of the others, and the driver, which hands references around,
none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeflow.algorithms.settings import Count, Fraction, NotNegative, Positive, Settings, WholeNumber
from pipeflow.dsl import Stream, actors, batch, gather_rounds
from pipeflow.rl.batches import Report
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.gradients import Gradients
from pipeflow.rl.learners.decentralised_ppo import DecentralisedPPOWorker
from pipeflow.rl.minibatches import minibatch_epochs
from pipeflow.rl.policies import Activation, PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.schedules import annealed


@dataclass(frozen=True)
class DDPPOConfig(Settings):
    """Every number that decentralised PPO depends on."""

    env: EnvSpec = field(default_factory=lambda: EnvSpec("CartPole-v1"))
    """The environment."""
    workers: Count = 2
    """Workers, each an actor of its own, which samples and learns."""
    num_envs: Count = 8
    """Environments that a worker steps as one."""
    fragment_length: Count = 128
    """Vector steps that a worker takes between its epochs."""
    gamma: Fraction = 0.99
    """Discount of a reward one step later."""
    lam: Fraction = 0.95
    """Lambda of GAE: 0 trusts the value function, 1 the sampled returns."""
    lr: Positive = 1e-3
    """Adam's learning rate."""
    anneal_steps: Count | None = None
    """Environment steps over which the learning rate falls to 0; None keeps it."""
    epochs: Count = 8
    """Passes over the steps of a fragment."""
    minibatches: Count = 8
    """Parts that a worker splits its fragment into; one of each worker makes an optimiser step."""
    clip: Positive = 0.2
    """How far the probability ratio may move before its gradient is cut off."""
    value_clip: Positive | None = None
    """How far a value may move in one update; None for no limit."""
    value_coef: NotNegative = 0.5
    """Weight of the value loss."""
    entropy_coef: NotNegative = 0.0
    """Weight of the entropy bonus."""
    max_grad_norm: Positive | None = 0.5
    """Norm to which the mean gradient is clipped; None leaves it."""
    hidden: tuple[Count, ...] = (64, 64)
    """Widths of the policy's hidden layers, and of the value's."""
    activation: Activation = "tanh"
    """Nonlinearity between them."""
    shared_trunk: bool = False
    """Whether policy and value share their hidden layers."""
    seed: WholeNumber = 0
    """From which every worker, environment and network gets a stream of its own."""
    threads: Count = 1
    """Threads that torch computes with in every actor."""


def ddppo(config: DDPPOConfig) -> Stream[Report]:
    """Decentralised PPO's plan: every round of fragments gives one report, of all its optimiser steps."""
    workers = actors(
        DecentralisedPPOWorker, config.workers, config.env, policy_of(config), num_envs=config.num_envs,
        fragment_length=config.fragment_length, lr=annealed(config.lr, config.anneal_steps), clip=config.clip,
        value_clip=config.value_clip, value_coef=config.value_coef, entropy_coef=config.entropy_coef,
        max_grad_norm=config.max_grad_norm, seed=config.seed, threads=config.threads,
    )  # fmt: skip
    return (
        workers.produce(DecentralisedPPOWorker.sample)
        | gae(config.gamma, config.lam)
        | minibatch_epochs(config.epochs, config.minibatches, config.seed)
        | workers.stage(DecentralisedPPOWorker.gradients)
        | gather_rounds()
        | workers.broadcast()
        | Gradients.mean
        | workers.stage(DecentralisedPPOWorker.apply)
        | gather_rounds()
        | Report.shared
        | batch(config.epochs * config.minibatches)
        | Report.joined
    )


def policy_of(config: DDPPOConfig) -> PolicySpec:
    """The policy that the plan trains; an evaluation of its weights needs the same."""
    return PolicySpec.for_env(
        config.env, hidden=config.hidden, activation=config.activation, shared_trunk=config.shared_trunk
    )
