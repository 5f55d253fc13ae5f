"""PPO and DQN in one environment: some agents are trained by the one, some by the other, in turns.

The case that RLlib Flow (Liang et al. 2021) gives for composition. Reads top to bottom: the configuration, then
the plan: PPO's and DQN's own, behind a fork of what all agents experience.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from pipeflow.algorithms.settings import Count, Fraction, Positive, Settings, WholeNumber
from pipeflow.dsl import Stream, actors, drain, gather_rounds, gather_sync
from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.batches import Report, Weights
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.learners.dqn import DQNLearner
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.multi_agent.batches import MultiAgentTrajectories
from pipeflow.rl.multi_agent.cartpole import MULTI_AGENT_CARTPOLE
from pipeflow.rl.multi_agent.environments import AgentSpaces, MultiAgentEnvSpec
from pipeflow.rl.multi_agent.evaluation import evaluate_multi_agent
from pipeflow.rl.multi_agent.operators import select, sync_policy_weights
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker
from pipeflow.rl.n_step import n_step
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.replay import ReplayBuffer
from pipeflow.rl.replay_batches import TDReport
from pipeflow.rl.returns import gae
from pipeflow.rl.schedules import Linear
from pipeflow.rl.seeding import derive_seed


@dataclass(frozen=True)
class TwoTrainersConfig(Settings):
    """Every number that the two trainers depend on."""

    env: MultiAgentEnvSpec = field(
        default_factory=lambda: MultiAgentEnvSpec(MULTI_AGENT_CARTPOLE, {"agents": 4, "returning": True})
    )
    """The environment; in this one agents come back after their end, so no trainer waits for the other."""
    dqn_agents: tuple[str, ...] = ("1", "3")
    """The agents that share the policy which DQN trains; all others share PPO's."""
    workers: Count = 2
    """Rollout workers, each an actor of its own."""
    num_envs: Count = 4
    """Copies of the environment that a worker steps."""
    fragment_length: Count = 32
    """Steps of each copy that a worker takes for each round."""
    gamma: Fraction = 0.99
    """Discount of a reward one step later."""
    lam: Fraction = 0.95
    """PPO: lambda of GAE."""
    ppo_lr: Positive = 5e-4
    """PPO: Adam's learning rate."""
    epochs: Count = 8
    """PPO: passes over the steps of a round."""
    minibatch_size: Count = 128
    """PPO: agents' actions in an optimiser step."""
    n_step: Count = 1
    """DQN: rewards that are summed before a value is trusted."""
    dqn_lr: Positive = 5e-4
    """DQN: Adam's learning rate."""
    updates_per_round: Count = 128
    """DQN: updates that follow on a round."""
    batch_size: Count = 64
    """DQN: transitions of an update."""
    capacity: Count = 100_000
    """DQN: transitions that replay holds."""
    learning_starts: Count = 1000
    """DQN: its agents' actions that are stored before the first update."""
    target_every: Count = 500
    """DQN: its agents' actions from one target network to the next."""
    epsilon_start: Fraction = 1.0
    """DQN: share of random actions at first."""
    epsilon_final: Fraction = 0.04
    """DQN: share of random actions in the end."""
    epsilon_steps: Count = 10_000
    """DQN: environment steps, of all workers, over which it falls."""
    hidden: tuple[Count, ...] = (64, 64)
    """Widths of both policies' hidden layers."""
    seed: WholeNumber = 0
    """From which every worker, environment, buffer and network gets a stream of its own."""
    threads: Count = 1
    """Threads that torch computes with in every actor."""


def two_trainers(config: TwoTrainersConfig) -> Stream[Report | TDReport]:
    """The plan: every round trains PPO's policy once, is stored for DQN, and is followed by DQN's updates."""
    policies = policies_of(config)
    workers = actors(
        MultiAgentWorker, config.workers, config.env, policies, num_envs=config.num_envs,
        fragment_length=config.fragment_length, seed=config.seed, epsilon={"dqn": _exploration(config)},
        threads=config.threads,
    )  # fmt: skip
    ppo_learner = actors(
        PPOLearner, 1, ppo_policy_of(config), lr=config.ppo_lr, epochs=config.epochs,
        minibatch_size=config.minibatch_size, seed=derive_seed(config.seed, "ppo"), threads=config.threads,
    )  # fmt: skip
    dqn_learner = actors(
        DQNLearner, 1, dqn_policy_of(config), lr=config.dqn_lr, target_every=config.target_every,
        seed=derive_seed(config.seed, "dqn"), threads=config.threads,
    )  # fmt: skip
    replay = actors(
        ReplayBuffer, 1, config.capacity, batch_size=config.batch_size, seed=config.seed,
        learning_starts=config.learning_starts,
    )  # fmt: skip
    left, right = (
        workers.produce(MultiAgentWorker.sample) | gather_rounds() | MultiAgentTrajectories.concatenate
    ).fork(2, buffer=1)
    ppo = (
        left
        | select("ppo")
        | gae(config.gamma, config.lam)
        | ppo_learner.stage(PPOLearner.update)
        | sync_policy_weights("ppo", ppo_learner, workers)
    )
    store = (
        right | select("dqn") | n_step(config.n_step, config.gamma) | replay.stage(ReplayBuffer.add) | drain
    )
    dqn = (
        replay.produce(ReplayBuffer.sample)
        | gather_sync()
        | dqn_learner.stage(DQNLearner.update)
        | sync_policy_weights("dqn", dqn_learner, workers, every=config.updates_per_round)
    )
    return (ppo & store & dqn).round_robin(1, 1, config.updates_per_round)


def ppo_policy_of(config: TwoTrainersConfig) -> PolicySpec:
    """The policy that PPO trains. Raises ValueError if no agent is left for it."""
    spaces = _spaces(config, "ppo")
    return PolicySpec(spaces.observations, spaces.actions, hidden=config.hidden)


def dqn_policy_of(config: TwoTrainersConfig) -> ActionValueSpec:
    """The network that DQN trains. Raises ValueError if `dqn_agents` names none of the agents."""
    spaces = _spaces(config, "dqn")
    return ActionValueSpec(spaces.observations, spaces.actions, hidden=config.hidden)


def policies_of(config: TwoTrainersConfig) -> PolicyMap:
    """Both policies, and which acts for whom; an evaluation of their weights needs the same."""
    return PolicyMap(
        {"ppo": ppo_policy_of(config), "dqn": dqn_policy_of(config)},
        partial(_trained_by, frozenset(config.dqn_agents)),
    )


def play(config: TwoTrainersConfig, weights: Sequence[Weights], episodes: int, seed: int) -> EpisodeStats:
    """Greedy episodes of the agents of the policy that is worse. weights: PPO's and DQN's, in this order.

    Raises ValueError if no episode is asked for.
    """
    by_policy: dict[str, Weights] = dict(zip(("ppo", "dqn"), weights, strict=True))
    played = evaluate_multi_agent(config.env, policies_of(config), by_policy, episodes, seed).by_policy
    return min(played.values(), key=lambda stats: stats.mean_return)


def _spaces(config: TwoTrainersConfig, policy: str) -> AgentSpaces:
    """The spaces of the agents of one of the policies, all of which share them."""
    agents, dqn_agents = config.env.spaces(), frozenset(config.dqn_agents)
    found = [spaces for agent, spaces in agents.items() if _trained_by(dqn_agents, agent) == policy]
    if not found:
        message = (
            f"no agent is left for {policy}: dqn_agents is {config.dqn_agents}, and all are {tuple(agents)}"
        )
        raise ValueError(message)
    return found[0]


def _trained_by(dqn_agents: frozenset[str], agent: str) -> str:
    return "dqn" if agent in dqn_agents else "ppo"


def _exploration(config: TwoTrainersConfig) -> Linear:
    # A worker counts its own steps.
    return Linear(config.epsilon_start, config.epsilon_final, config.epsilon_steps / config.workers)
