"""Proximal policy optimisation (Schulman et al. 2017): synchronous rounds, clipped minibatch epochs.

Reads top to bottom: the configuration, then the plan. The loss is `pipeflow.rl.learners.ppo`'s, since other
algorithms share it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from typing_extensions import override

from pipeflow.algorithms.settings import Count, Fraction, NotNegative, Positive, Settings, WholeNumber
from pipeflow.dsl import Stream, actors, gather_rounds, sync_weights
from pipeflow.rl.batches import Advantages, Report
from pipeflow.rl.devices import on_device
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import Activation, PolicySpec
from pipeflow.rl.recurrent import MemoryKind
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.schedules import annealed


@dataclass(frozen=True)
class PPOConfig(Settings):
    """Every number that PPO depends on."""

    env: EnvSpec = field(default_factory=lambda: EnvSpec("CartPole-v1"))
    """The environment."""
    workers: Count = 2
    """Rollout workers, each an actor of its own."""
    num_envs: Count = 8
    """Environments that a worker steps as one."""
    fragment_length: Count = 128
    """Vector steps that a worker takes for each update."""
    gamma: Fraction = 0.99
    """Discount of a reward one step later."""
    lam: Fraction = 0.95
    """Lambda of GAE: 0 trusts the value function, 1 the sampled returns."""
    lr: Positive = 1e-3
    """Adam's learning rate."""
    anneal_steps: Count | None = None
    """Environment steps over which the learning rate falls to 0; None keeps it."""
    epochs: Count = 8
    """Passes over the steps of a round."""
    minibatch_size: Count = 256
    """Environment steps in an optimiser step."""
    clip: Positive = 0.2
    """How far the probability ratio may move before its gradient is cut off."""
    value_clip: Positive | None = None
    """How far a value may move in one update; None for no limit."""
    value_coef: NotNegative = 0.5
    """Weight of the value loss."""
    entropy_coef: NotNegative = 0.0
    """Weight of the entropy bonus."""
    max_grad_norm: Positive | None = 0.5
    """Norm to which gradients are clipped; None leaves them."""
    target_kl: Positive | None = None
    """Approximate KL at which an update's epochs stop early; None never stops them."""
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
    normalise_rewards: bool = False
    """Scale rewards by the running deviation of the discounted return."""
    seed: WholeNumber = 0
    """From which every worker, environment and network gets a stream of its own."""
    device: str = "cpu"
    """Where the learner computes, such as "cuda"."""
    threads: Count = 1
    """Threads that torch computes with in every actor."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minibatch_size > self.steps_per_update:
            message = (
                f"minibatch_size {self.minibatch_size} is more than the {self.steps_per_update} steps of an "
                f"update ({self.workers} workers x {self.num_envs} num_envs x {self.fragment_length} "
                "fragment_length); make it smaller, or collect more"
            )
            raise ValueError(message)

    @property
    def steps_per_update(self) -> int:
        """Environment steps of a round of all workers."""
        return self.workers * self.num_envs * self.fragment_length


def ppo(config: PPOConfig) -> Stream[Report]:
    """PPO's plan: every round is sampled with the newest weights, and gives one report."""
    policy = policy_of(config)
    workers = actors(
        RolloutWorker, config.workers, config.env, policy, num_envs=config.num_envs,
        fragment_length=config.fragment_length, seed=config.seed, gamma=config.gamma,
        normalise_observations=config.normalise_observations, normalise_rewards=config.normalise_rewards,
        threads=config.threads,
    )  # fmt: skip
    learner = on_device(config.device, actors(
        PPOLearner, 1, policy, lr=annealed(config.lr, config.anneal_steps), epochs=config.epochs,
        minibatch_size=config.minibatch_size, clip=config.clip, value_clip=config.value_clip,
        value_coef=config.value_coef, entropy_coef=config.entropy_coef, max_grad_norm=config.max_grad_norm,
        target_kl=config.target_kl, seed=config.seed, device=config.device, threads=config.threads,
    ))  # fmt: skip
    return (
        workers.produce(RolloutWorker.sample)
        | gae(config.gamma, config.lam)
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
    )


def policy_of(config: PPOConfig) -> PolicySpec:
    """The policy that the plan trains; an evaluation of its weights needs the same."""
    return PolicySpec.for_env(
        config.env, hidden=config.hidden, activation=config.activation, shared_trunk=config.shared_trunk,
        memory=config.memory, memory_size=config.memory_size,
    )  # fmt: skip
