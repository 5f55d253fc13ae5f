"""Deep Q-learning (Mnih et al. 2015): rollouts are stored, samples of what was stored are trained on.

Double, dueling, n-step and prioritised are options. Reads top to bottom: the configuration, then the plan. The
loss is `pipeflow.rl.learners.dqn`'s, since Ape-X shares it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeflow.algorithms.settings import Count, Fraction, NotNegative, Positive, Settings, WholeNumber
from pipeflow.dsl import Stream, actors, drain, gather_rounds, gather_sync, sync_weights
from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.devices import on_device
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.exploration import EpsilonGreedyWorker
from pipeflow.rl.learners.dqn import DQNLearner
from pipeflow.rl.n_step import n_step
from pipeflow.rl.networks import Activation
from pipeflow.rl.prioritised import Prioritisation
from pipeflow.rl.replay import ReplayBuffer
from pipeflow.rl.replay_batches import TDReport, Transitions
from pipeflow.rl.schedules import Linear, annealed


@dataclass(frozen=True)
class DQNConfig(Settings):
    """Every number that DQN depends on."""

    env: EnvSpec = field(default_factory=lambda: EnvSpec("CartPole-v1"))
    """The environment; its actions are one choice among several."""
    workers: Count = 1
    """Rollout workers, each an actor of its own."""
    num_envs: Count = 8
    """Environments that a worker steps as one."""
    fragment_length: Count = 32
    """Vector steps that a worker takes between updates."""
    intensity: Positive = 32.0
    """Rows trained on for every environment step that is stored."""
    capacity: Count = 100_000
    """Transitions that replay holds."""
    learning_starts: Count = 1000
    """Environment steps stored before the first update."""
    batch_size: Count = 64
    """Rows of an update."""
    minibatches: Count = 1
    """Updates that a sample holds rows for, all drawn by the priorities of before the first."""
    gamma: Fraction = 0.99
    """Discount of a reward one step later."""
    n_step: Count = 5
    """Rewards that are summed before a value is trusted."""
    double: bool = True
    """Let the online network choose the action whose value the target network gives."""
    dueling: bool = False
    """Let the network tell a state's value from its actions' advantages."""
    prioritised: bool = False
    """Draw rows by their error rather than uniformly."""
    priority_alpha: NotNegative = 0.6
    """How strongly, where prioritised."""
    priority_beta: Fraction = 0.4
    """How much of the bias importance weights take back at first, where prioritised."""
    priority_steps: Count = 100_000
    """Environment steps over which that grows to all of it."""
    epsilon_start: Fraction = 1.0
    """Share of random actions at first."""
    epsilon_final: Fraction = 0.04
    """Share of random actions in the end."""
    epsilon_steps: Count = 8_000
    """Environment steps, of all workers, over which it falls."""
    lr: Positive = 1e-3
    """Adam's learning rate."""
    anneal_steps: Count | None = None
    """Environment steps over which the learning rate falls to 0; None keeps it."""
    target_every: Count = 256
    """Environment steps from one target network to the next."""
    tau: Positive = 1.0
    """How far the target network moves then; 1 copies."""
    max_grad_norm: Positive | None = 10.0
    """Norm to which gradients are clipped; None leaves them."""
    hidden: tuple[Count, ...] = (128, 128)
    """Widths of the network's hidden layers."""
    activation: Activation = "relu"
    """Nonlinearity between them."""
    seed: WholeNumber = 0
    """From which every worker, environment, buffer and network gets a stream of its own."""
    device: str = "cpu"
    """Where the learner computes, such as "cuda"."""
    threads: Count = 1
    """Threads that torch computes with in every actor."""


def dqn(config: DQNConfig) -> Stream[TDReport]:
    """DQN's plan: rollouts are stored and samples trained on in turns, in proportion to their steps."""
    policy = policy_of(config)
    workers = actors(
        EpsilonGreedyWorker, config.workers, config.env, policy, epsilon=_exploration(config),
        num_envs=config.num_envs, fragment_length=config.fragment_length, seed=config.seed,
        threads=config.threads,
    )  # fmt: skip
    replay = actors(
        ReplayBuffer, 1, config.capacity, batch_size=config.batch_size, minibatches=config.minibatches,
        learning_starts=config.learning_starts, prioritisation=_prioritisation(config), seed=config.seed,
    )  # fmt: skip
    learner = on_device(config.device, actors(
        DQNLearner, 1, policy, lr=annealed(config.lr, config.anneal_steps), double=config.double,
        target_every=config.target_every, tau=config.tau, max_grad_norm=config.max_grad_norm,
        minibatches=config.minibatches, seed=config.seed, device=config.device, threads=config.threads,
    ))  # fmt: skip
    store = (
        workers.produce(EpsilonGreedyWorker.sample)
        | n_step(config.n_step, config.gamma)
        | gather_rounds()
        | Transitions.concatenate
        | replay.stage(ReplayBuffer.add)
        | sync_weights(learner, workers)
        | drain
    )
    samples = replay.produce(ReplayBuffer.sample)
    if config.prioritised:
        train = (samples | gather_sync().with_source() | learner.stage(DQNLearner.update)).reply(
            ReplayBuffer.update_priorities, lambda report: report.priorities
        )
    else:
        train = samples | gather_sync() | learner.stage(DQNLearner.update)
    return (store & train).by_steps(1, config.intensity)


def policy_of(config: DQNConfig) -> ActionValueSpec:
    """The network that the plan trains; an evaluation of its weights needs the same."""
    return ActionValueSpec.for_env(
        config.env, hidden=config.hidden, dueling=config.dueling, activation=config.activation
    )


def _exploration(config: DQNConfig) -> Linear:
    # A worker counts its own steps.
    return Linear(config.epsilon_start, config.epsilon_final, config.epsilon_steps / config.workers)


def _prioritisation(config: DQNConfig) -> Prioritisation | None:
    if not config.prioritised:
        return None
    beta = Linear(config.priority_beta, 1.0, config.priority_steps)
    return Prioritisation(alpha=config.priority_alpha, beta=beta)
