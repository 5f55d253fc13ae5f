"""Evaluation of several policies in one environment: what each agent earns when all take their best actions.

Apart from `pipeflow.rl.evaluation`, which plays episodes of one agent. As there, nothing leaks into the training:
the environments are made for this call and their seeds are of a stream of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from pipeflow.rl.batches import Weights
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.multi_agent.seating import Seating
from pipeflow.rl.multi_agent.vector import Chosen, MultiAgentVector, SeatsStep
from pipeflow.rl.policy import PolicyDescription
from pipeflow.rl.seeding import derive_seed
from pipeflow.rl.threads import torch_threads


@dataclass(frozen=True, eq=False)
class MultiAgentEvaluation:
    """The episodes that agents played to the end.

    by_agent: of each agent. by_policy: of all agents of each policy, one after the other.
    """

    by_agent: Mapping[str, EpisodeStats]
    by_policy: Mapping[str, EpisodeStats]


@torch_threads(1)
def evaluate_multi_agent(
    env: MultiAgentEnvSpec, policies: PolicyMap, weights: Mapping[str, Weights], episodes: int, seed: int
) -> MultiAgentEvaluation:
    """Play `episodes` episodes of the environment, greedily, or of every agent, if those are done first.

    Of each agent the first `episodes` count, fewer if it comes seldom: so many are fixed beforehand, since taking
    whichever end first would favour the short ones. In an environment whose agents come back after their end, and
    whose episodes hence have none, every agent has exactly so many.

    weights: of every policy, by id. episodes: at least 1. seed: of the evaluation; the same seed plays the same.
    Returns undiscounted returns, and lengths in actions of the agent.
    Raises ValueError if no episode is asked for, or a policy's weights are missing.
    """
    if episodes < 1:
        raise ValueError(f"an evaluation needs at least 1 episode, got {episodes}")
    missing = policies.policies.keys() - weights.keys()
    if missing:
        raise ValueError(f"the weights of policy {min(missing)!r} are missing")
    environment = MultiAgentVector(env, policies, 1, derive_seed(seed, "evaluation"))
    try:
        players = {
            policy: _Players(description, weights[policy], environment.num_seats[policy], episodes)
            for policy, description in policies.policies.items()
        }
        for policy, observed in environment.reset().items():
            players[policy].seating.begin(observed)
        left = episodes
        while left > 0 and not all(its.done for its in players.values()):
            steps = environment.step({policy: its.act() for policy, its in players.items()})
            for policy, step in steps.items():
                players[policy].step(step)
            left -= any(len(step.fresh.indices) > 0 for step in steps.values())
    finally:
        environment.close()
    by_policy = {policy: its.episodes() for policy, its in players.items()}
    return MultiAgentEvaluation(
        {
            environment.agent(policy, seat): stats
            for policy, seats in by_policy.items()
            for seat, stats in enumerate(seats)
        },
        {policy: reduce(EpisodeStats.merged, seats) for policy, seats in by_policy.items()},
    )


class _Players:
    """The agents of one policy in one copy of the environment; the first `episodes` episodes of each count."""

    def __init__(self, policy: PolicyDescription, weights: Weights, num_seats: int, episodes: int) -> None:
        self.seating = Seating(policy, num_seats)
        self._policy = policy.build(seed=0)  # the weights replace what it draws
        self._policy.load_numpy(weights.parameters)
        self._moments = weights.observation_moments
        self._most = episodes
        self._returns = np.zeros(num_seats)
        self._lengths = np.zeros(num_seats, np.int64)
        self._finished: list[list[tuple[float, int]]] = [[] for _ in range(num_seats)]

    @property
    def done(self) -> bool:
        """Whether every agent has played as many episodes as count."""
        return all(len(finished) == self._most for finished in self._finished)

    def act(self) -> Chosen:
        """The best actions of all whose turn it is."""
        turn = self.seating.turn()
        if len(turn.indices) == 0:
            return Chosen(turn.indices, np.zeros(0, np.int64))
        seen = turn.observations if self._moments is None else self._moments.normalise(turn.observations)
        actions, state = self._policy.greedy(seen, turn.state)
        self.seating.acted(turn, state)
        self._lengths[turn.indices] += 1
        return Chosen(turn.indices, actions)

    def step(self, step: SeatsStep) -> None:
        """Take in what a step gave. As in training, a reward before an agent's first action is nobody's."""
        playing = self._lengths > 0
        self._returns[playing] += step.rewards[playing]
        for seat in np.flatnonzero(playing & (step.terminated | step.truncated)).tolist():
            if len(self._finished[seat]) < self._most:
                self._finished[seat].append((float(self._returns[seat]), int(self._lengths[seat])))
            self._returns[seat], self._lengths[seat] = 0.0, 0
        self.seating.step(step)

    def episodes(self) -> list[EpisodeStats]:
        """What each seat's agent has played to the end."""
        return [
            EpisodeStats(
                np.array([earned for earned, _ in finished], np.float64),
                np.array([length for _, length in finished], np.int64),
            )
            for finished in self._finished
        ]
