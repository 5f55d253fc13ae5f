"""Advantage actor-critic, synchronous: each worker differentiates its own steps, and one step follows the mean.

Reads top to bottom: the configuration, then the plan. The actors are described by functions of their own,
since A3C (`pipeflow.algorithms.a3c`) has the same ones and differs in the plan alone. The loss is
`pipeflow.rl.learners.actor_critic`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeflow.algorithms.settings import Count, Fraction, NotNegative, Positive, Settings, WholeNumber
from pipeflow.dsl import Actors, Stream, actors, gather_rounds, sync_weights
from pipeflow.rl.batches import Report
from pipeflow.rl.devices import on_device
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.gradients import Gradients
from pipeflow.rl.learners.actor_critic import ActorCriticLoss, GradientWorker
from pipeflow.rl.learners.gradient_learner import GradientLearner
from pipeflow.rl.policies import Activation, PolicySpec
from pipeflow.rl.recurrent import MemoryKind
from pipeflow.rl.returns import gae
from pipeflow.rl.schedules import annealed


@dataclass(frozen=True)
class A2CConfig(Settings):
    """Every number that A2C depends on."""

    env: EnvSpec = field(default_factory=lambda: EnvSpec("CartPole-v1"))
    """The environment."""
    workers: Count = 2
    """Rollout workers, each an actor of its own."""
    num_envs: Count = 8
    """Environments that a worker steps as one."""
    fragment_length: Count = 16
    """Vector steps that a worker takes for each gradient."""
    gamma: Fraction = 0.99
    """Discount of a reward one step later."""
    lam: Fraction = 0.95
    """Lambda of GAE: 0 trusts the value function, 1 the sampled returns, as in the paper."""
    lr: Positive = 2e-3
    """Adam's learning rate."""
    anneal_steps: Count | None = 300_000
    """Environment steps over which the learning rate falls to 0; None keeps it."""
    value_coef: NotNegative = 0.5
    """Weight of the value loss."""
    entropy_coef: NotNegative = 0.0
    """Weight of the entropy bonus."""
    normalise_advantages: bool = True
    """Scale the advantages of every worker's steps to mean 0 and deviation 1."""
    max_grad_norm: Positive | None = 0.5
    """Norm to which gradients are clipped; None leaves them."""
    hidden: tuple[Count, ...] = (64, 64)
    """Widths of the policy's hidden layers, and of the value's."""
    activation: Activation = "tanh"
    """Nonlinearity between them."""
    shared_trunk: bool = False
    """Whether policy and value share their hidden layers."""
    memory: MemoryKind = "none"
    """Recurrent layer behind the hidden layers, for environments that show a part of their state."""
    memory_size: Count = 64
    """Units of it."""
    normalise_observations: bool = False
    """Scale observations by running statistics, which travel with the weights."""
    normalise_rewards: bool = True
    """Scale rewards by the running deviation of the discounted return."""
    seed: WholeNumber = 0
    """From which every worker, environment and network gets a stream of its own."""
    device: str = "cpu"
    """Where the learner keeps its parameters, such as "cuda"; workers differentiate on the CPU."""
    threads: Count = 1
    """Threads that torch computes with in every actor."""


def a2c(config: A2CConfig) -> Stream[Report]:
    """A2C's plan: every round gives one gradient, the mean over all steps of all workers."""
    workers, learner = workers_of(config), learner_of(config)
    return (
        workers.produce(GradientWorker.sample)
        | gae(config.gamma, config.lam)
        | workers.stage(GradientWorker.gradients)
        | gather_rounds()
        | Gradients.mean
        | learner.stage(GradientLearner.apply)
        | sync_weights(learner, workers)
    )


def workers_of(config: A2CConfig) -> Actors[GradientWorker]:
    """The workers, which sample and differentiate."""
    return actors(
        GradientWorker, config.workers, config.env, policy_of(config), loss=_loss(config),
        num_envs=config.num_envs, fragment_length=config.fragment_length, seed=config.seed,
        gamma=config.gamma, normalise_observations=config.normalise_observations,
        normalise_rewards=config.normalise_rewards, threads=config.threads,
    )  # fmt: skip


def learner_of(config: A2CConfig) -> Actors[GradientLearner]:
    """The learner, which applies their gradients."""
    return on_device(config.device, actors(
        GradientLearner, 1, policy_of(config), lr=annealed(config.lr, config.anneal_steps),
        max_grad_norm=config.max_grad_norm, seed=config.seed, device=config.device, threads=config.threads,
    ))  # fmt: skip


def policy_of(config: A2CConfig) -> PolicySpec:
    """The policy that the plan trains; an evaluation of its weights needs the same."""
    return PolicySpec.for_env(
        config.env, hidden=config.hidden, activation=config.activation, shared_trunk=config.shared_trunk,
        memory=config.memory, memory_size=config.memory_size,
    )  # fmt: skip


def _loss(config: A2CConfig) -> ActorCriticLoss:
    return ActorCriticLoss(config.value_coef, config.entropy_coef, config.normalise_advantages)
