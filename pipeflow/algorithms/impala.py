"""IMPALA (Espeholt et al. 2018): workers never wait, and the learner corrects for the age of their weights.

Reads top to bottom: the configuration, then the plan. The loss is `pipeflow.rl.learners.impala`'s. The
workers, and how their fragments become batches, are functions of their own, since APPO
(`pipeflow.algorithms.appo`) has the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeflow.algorithms.settings import Count, Fraction, NotNegative, Positive, Settings, WholeNumber
from pipeflow.dsl import Actors, Stream, actors, batch, gather_async, sync_weights
from pipeflow.rl.batches import Report, Trajectories
from pipeflow.rl.devices import on_device
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.fragments import Aggregator, mix_in_replay
from pipeflow.rl.learners.impala import IMPALALearner, VTraceSettings
from pipeflow.rl.policies import Activation, PolicySpec
from pipeflow.rl.recurrent import MemoryKind
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.schedules import annealed


@dataclass(frozen=True)
class IMPALAConfig(Settings):
    """Every number that IMPALA depends on."""

    env: EnvSpec = field(default_factory=lambda: EnvSpec("CartPole-v1"))
    """The environment."""
    workers: Count = 2
    """Rollout workers, each an actor of its own."""
    num_envs: Count = 8
    """Environments that a worker steps as one."""
    fragment_length: Count = 16
    """Vector steps of a fragment."""
    in_flight: Count = 2
    """Fragments that a worker may have started and not yet delivered."""
    fragments: Count = 1
    """Fragments in a batch of the learner."""
    queue: Count = 2
    """Batches that may be at the learner at once."""
    broadcast_every: Count = 1
    """Updates after which all workers get the newest weights."""
    aggregators: WholeNumber = 0
    """Actors that join fragments before the learner; with 0 it joins them itself."""
    replay_share: NotNegative = 0.0
    """Replayed fragments for each new one; their steps count as trained on again."""
    replay_capacity: Count = 16
    """How many of the latest fragments are kept to be replayed."""
    gamma: Fraction = 0.99
    """Discount of a reward one step later."""
    lam: Fraction = 0.95
    """Lambda of V-trace: less trusts the value function more; the paper has 1."""
    rho_clip: Positive = 1.0
    """V-trace's rho-bar: importance ratios are cut off there."""
    c_clip: Positive = 1.0
    """V-trace's c-bar: how far corrections reach back."""
    lr: Positive = 6e-4
    """Adam's learning rate."""
    anneal_steps: Count | None = 300_000
    """Environment steps over which the learning rate falls to 0; None keeps it."""
    value_coef: NotNegative = 0.5
    """Weight of the value loss."""
    entropy_coef: NotNegative = 0.01
    """Weight of the entropy bonus."""
    normalise_advantages: bool = True
    """Scale the advantages of every optimiser step to mean 0 and deviation 1."""
    max_grad_norm: Positive | None = 0.5
    """Norm to which gradients are clipped; None leaves them."""
    hidden: tuple[Count, ...] = (64, 64)
    """Widths of the policy's hidden layers, and of the value's."""
    activation: Activation = "tanh"
    """Nonlinearity between them."""
    shared_trunk: bool = False
    """Whether policy and value share their hidden layers."""
    memory: MemoryKind = "none"
    """Recurrent layer between the hidden layers and the outputs."""
    memory_size: Count = 64
    """Units of the recurrent layer."""
    normalise_observations: bool = False
    """Scale observations by running statistics, which travel with the weights."""
    normalise_rewards: bool = True
    """Scale rewards by the running deviation of the discounted return."""
    seed: WholeNumber = 0
    """From which every worker, environment and network gets a stream of its own."""
    device: str = "cpu"
    """Where the learner computes, such as "cuda"."""
    threads: Count = 1
    """Threads that torch computes with in every actor."""


def impala(config: IMPALAConfig) -> Stream[Report]:
    """IMPALA's plan: fragments as they come, one update a batch, new weights to all workers every few updates."""
    workers = workers_of(config)
    learner = on_device(config.device, actors(
        IMPALALearner, 1, policy_of(config), targets=targets_of(config), value_coef=config.value_coef,
        lr=annealed(config.lr, config.anneal_steps), entropy_coef=config.entropy_coef,
        normalise=config.normalise_advantages, max_grad_norm=config.max_grad_norm, seed=config.seed,
        device=config.device, threads=config.threads,
    ))  # fmt: skip
    return (
        batches_of(workers.produce(RolloutWorker.sample) | gather_async(config.in_flight), config)
        | learner.stage(IMPALALearner.update).max_in_flight(config.queue)
        | sync_weights(learner, workers, every=config.broadcast_every)
    )


def workers_of(config: IMPALAConfig) -> Actors[RolloutWorker]:
    """The workers."""
    return actors(
        RolloutWorker, config.workers, config.env, policy_of(config), num_envs=config.num_envs,
        fragment_length=config.fragment_length, seed=config.seed, gamma=config.gamma,
        normalise_observations=config.normalise_observations, normalise_rewards=config.normalise_rewards,
        threads=config.threads,
    )  # fmt: skip


def batches_of(fragments: Stream[Trajectories], config: IMPALAConfig) -> Stream[Trajectories]:
    """Fragments, old ones mixed in where that is wanted, joined in the learner or in aggregators before it."""
    groups = (
        fragments
        | mix_in_replay(config.replay_share, capacity=config.replay_capacity, seed=config.seed)
        | batch(config.fragments)
    )
    if config.aggregators == 0:
        return groups | Trajectories.concatenate
    aggregators = actors(Aggregator, config.aggregators)
    return groups | aggregators.stage(Aggregator.concatenate).max_in_flight(2 * config.aggregators)


def policy_of(config: IMPALAConfig) -> PolicySpec:
    """The policy that the plan trains; an evaluation of its weights needs the same."""
    return PolicySpec.for_env(
        config.env,
        hidden=config.hidden,
        activation=config.activation,
        shared_trunk=config.shared_trunk,
        memory=config.memory,
        memory_size=config.memory_size,
    )


def targets_of(config: IMPALAConfig) -> VTraceSettings:
    """How the learner corrects for the age of the weights that acted."""
    return VTraceSettings(config.gamma, config.lam, config.rho_clip, config.c_clip)
