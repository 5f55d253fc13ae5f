"""Ape-X DQN (Horgan et al. 2018): many explorers, several replay actors, and a learner, all at the same time.

Double, dueling, n-step and prioritised, as in the paper. Reads top to bottom: the configuration, then the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from typing_extensions import override

from pipeflow.algorithms.settings import Count, Fraction, NotNegative, Positive, Settings, WholeNumber
from pipeflow.dsl import Stream, actors, drain, gather_async, sync_weights, update_target
from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.devices import on_device
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.exploration import EpsilonGreedyWorker, EpsilonLadder
from pipeflow.rl.learners.dqn import DQNLearner
from pipeflow.rl.n_step import n_step
from pipeflow.rl.networks import Activation
from pipeflow.rl.prioritised import Prioritisation
from pipeflow.rl.replay import ReplayBuffer
from pipeflow.rl.replay_batches import TDReport


@dataclass(frozen=True)
class ApexConfig(Settings):
    """Every number that Ape-X depends on."""

    env: EnvSpec = field(default_factory=lambda: EnvSpec("CartPole-v1"))
    """The environment; its actions are one choice among several."""
    workers: Count = 2
    """Rollout workers, each an actor of its own."""
    num_envs: Count = 8
    """Environments that a worker steps as one, each with a share of random actions of its own."""
    fragment_length: Count = 16
    """Vector steps that a worker takes for each item."""
    sync_every: Count = 1
    """Stored items from one sending of weights to the workers to the next."""
    intensity: Positive = 32.0
    """Rows trained on for every environment step that is stored."""
    replays: Count = 2
    """Replay actors, which are filled evenly and sampled alike."""
    capacity: Count = 100_000
    """Transitions that all of them hold together."""
    learning_starts: Count = 1000
    """Environment steps stored in all of them together before the first update."""
    batch_size: Count = 64
    """Rows of an update."""
    gamma: Fraction = 0.99
    """Discount of a reward one step later."""
    n_step: Count = 2
    """Rewards that are summed before a value is trusted."""
    epsilon_base: Fraction = 0.4
    """Share of random actions of the environment that explores most."""
    epsilon_alpha: NotNegative = 7.0
    """How far the shares are spread: the environment that explores least has base ** (1 + alpha)."""
    priority_alpha: NotNegative = 0.6
    """How strongly rows with a large error are preferred."""
    priority_beta: Fraction = 0.4
    """How much of the bias importance weights take back."""
    lr: Positive = 1e-3
    """Adam's learning rate."""
    target_every: Count = 128
    """Updates from one target network to the next."""
    max_grad_norm: Positive | None = 10.0
    """Norm to which gradients are clipped; None leaves them."""
    hidden: tuple[Count, ...] = (128, 128)
    """Widths of the network's hidden layers."""
    dueling: bool = False
    """Let the network tell a state's value from its actions' advantages."""
    activation: Activation = "relu"
    """Nonlinearity between them."""
    seed: WholeNumber = 0
    """From which every worker, environment, buffer and network gets a stream of its own."""
    device: str = "cpu"
    """Where the learner computes, such as "cuda"."""
    threads: Count = 1
    """Threads that torch computes with in every actor."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("capacity", "learning_starts"):
            if getattr(self, name) < self.replays:
                message = (
                    f"{name} {getattr(self, name)} is too small to be shared by {self.replays} replay actors"
                )
                raise ValueError(message)


def apex(config: ApexConfig) -> Stream[TDReport]:
    """Ape-X's plan: rollouts, replay and learner run at the same time, storing and training in proportion."""
    policy = policy_of(config)
    workers = actors(
        EpsilonGreedyWorker, config.workers, config.env, policy, num_envs=config.num_envs,
        epsilon=EpsilonLadder(config.workers, config.epsilon_base, config.epsilon_alpha),
        fragment_length=config.fragment_length, seed=config.seed, threads=config.threads,
    )  # fmt: skip
    replay = actors(
        ReplayBuffer, config.replays, config.capacity // config.replays, batch_size=config.batch_size,
        learning_starts=config.learning_starts // config.replays, seed=config.seed,
        prioritisation=Prioritisation(config.priority_alpha, config.priority_beta),
    )  # fmt: skip
    learner = on_device(config.device, actors(
        DQNLearner, 1, policy, lr=config.lr, target_every=None, max_grad_norm=config.max_grad_norm,
        seed=config.seed, device=config.device, threads=config.threads,
    ))  # fmt: skip
    store = (
        workers.produce(EpsilonGreedyWorker.sample)
        | n_step(config.n_step, config.gamma)
        | gather_async(2)
        | replay.stage(ReplayBuffer.add).max_in_flight(config.replays)
        | sync_weights(learner, workers, every=config.sync_every)
        | drain
    )
    train = (
        replay.produce(ReplayBuffer.sample)
        | gather_async(2).with_source()
        | learner.stage(DQNLearner.update).max_in_flight(2)
    ).reply(ReplayBuffer.update_priorities, lambda report: report.priorities)
    return (store & (train | update_target(learner, every=config.target_every))).by_steps(1, config.intensity)


def policy_of(config: ApexConfig) -> ActionValueSpec:
    """The network that the plan trains; an evaluation of its weights needs the same."""
    return ActionValueSpec.for_env(
        config.env, hidden=config.hidden, dueling=config.dueling, activation=config.activation
    )
