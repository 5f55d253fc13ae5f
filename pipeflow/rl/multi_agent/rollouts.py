"""The rollout worker of environments with several agents: each policy acts for all of its agents at once.

Apart from `columns`, which decides what becomes a row, and from `pipeflow.rl.rollouts`, where every
sub-environment acts at every step. Nothing is normalised here: an environment's wrapper may do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from pipeflow.dsl import current_shard
from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.batches import ObservationArray
from pipeflow.rl.episodes import StepCounts
from pipeflow.rl.exploration import epsilon_greedy
from pipeflow.rl.multi_agent.batches import MultiAgentTrajectories, PolicyWeights
from pipeflow.rl.multi_agent.columns import AgentColumns
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.multi_agent.seating import Turn
from pipeflow.rl.multi_agent.vector import Chosen, MultiAgentVector
from pipeflow.rl.policy import Acted
from pipeflow.rl.schedules import Schedule, as_schedule
from pipeflow.rl.seeding import derive_seed, generator_state, restore_generator
from pipeflow.rl.threads import torch_threads
from pipeflow.state.values import (
    StateValue,
    arrays_under,
    prefixed,
    saved_array,
    saved_number,
    under,
)


class MultiAgentWorker:
    """Steps `num_envs` copies of an environment, `fragment_length` steps of each at a time.

    env, policies: descriptions; a policy starts with the weights of a learner that was given the seed
    `derive_seed(seed, policy_id)`. seed: of the run; every copy, and the sampling of every policy's actions,
    gets a stream of its own from it and the worker's index. index: of this worker among its group; None asks
    the shard that it runs in. epsilon: by policy, for policies of action values, how often an agent acts at
    random: a rate, or a schedule over the environment steps that this worker has taken, in force for a fragment at
    a time; without it they are greedy. threads: that torch computes with.
    Raises ValueError if the policies do not fit the environment's agents, or epsilon is given for a policy that
    draws its actions itself.
    """

    def __init__(
        self,
        env: MultiAgentEnvSpec,
        policies: PolicyMap,
        *,
        num_envs: int = 8,
        fragment_length: int = 128,
        seed: int = 0,
        index: int | None = None,
        epsilon: Mapping[str, float | Schedule] | None = None,
        threads: int = 1,
    ) -> None:
        if num_envs < 1 or fragment_length < 1:
            raise ValueError(
                f"num_envs and fragment_length must be at least 1, got {num_envs} and {fragment_length}"
            )
        self._explorers = {
            policy: _Explorer.of(policy, policies, rate) for policy, rate in (epsilon or {}).items()
        }
        index = current_shard() if index is None else index
        self._env = MultiAgentVector(env, policies, num_envs, derive_seed(seed, "worker", index))
        self._policies = {
            policy: description.build(derive_seed(derive_seed(seed, policy), "policy"))
            for policy, description in policies.policies.items()
        }
        self._generators = {
            policy: np.random.default_rng(derive_seed(seed, "worker", index, "actions", policy))
            for policy in policies.policies
        }
        self._columns = {
            policy: AgentColumns(
                policies.policies[policy],
                built,
                self._env.actions[policy],
                self._env.num_seats[policy],
                fragment_length,
            )
            for policy, built in self._policies.items()
        }
        self._versions = dict.fromkeys(self._policies, 0)
        self._num_envs = num_envs
        self._fragment_length = fragment_length
        self._threads = threads
        self._started = False
        self._lifetime_steps = 0

    def set_weights(self, weights: PolicyWeights, /) -> None:
        """Act with these weights of one policy from the next `sample` on.

        Raises ValueError if there is no such policy, or the weights are not of it.
        """
        policy = self._policies.get(weights.policy)
        if policy is None:
            raise ValueError(f"weights came for {weights.policy!r}, the policies are {list(self._policies)}")
        policy.load_numpy(weights.weights.parameters)
        self._versions[weights.policy] = weights.weights.version

    def sample(self) -> MultiAgentTrajectories:
        """The next `fragment_length` steps of all copies; episodes go on over the ends of fragments."""
        with torch_threads(self._threads):
            return self._sampled()

    def state(self) -> dict[str, StateValue]:
        """All that the next `sample` depends on, under flat names.

        "environments_saved" is 0 if an environment cannot be saved: see `environment_state`.
        """
        state: dict[str, StateValue] = {
            "started": int(self._started),
            "lifetime_steps": self._lifetime_steps,
            **self._env.state(),
        }
        for policy, built in self._policies.items():
            its: dict[str, StateValue] = {
                "version": self._versions[policy],
                "generator": generator_state(self._generators[policy]),
                **prefixed("parameters/", {**built.parameters_numpy()}),
                **prefixed("agents/", self._columns[policy].state()),
            }
            state.update(prefixed(f"policies/{policy}/", its))
        return state

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        """Go on where the worker that gave this state stood: the next samples are, bit for bit, its next ones.

        If an environment was not saved, new episodes begin in all of them, and those that were running are
        forgotten. Only a new worker of the same configuration may be given a state.
        Raises ValueError if the state is of a worker of another configuration.
        """
        saved = self._env.load_state(state)
        self._started = saved and bool(saved_number("started", state))
        self._lifetime_steps = int(saved_number("lifetime_steps", state))
        for policy, built in self._policies.items():
            its = under(f"policies/{policy}/", state)
            built.load_numpy(arrays_under("parameters/", its))
            self._versions[policy] = int(saved_number("version", its))
            generator = self._generators[policy]
            restore_generator(generator, saved_array("generator", its, generator_state(generator)))
            agents = under("agents/", its)
            if saved:
                self._columns[policy].load_state(agents)
            else:
                self._columns[policy].load_finished(agents)

    def close(self) -> None:
        """Close the environments; the worker cannot sample after it."""
        self._env.close()

    def _sampled(self) -> MultiAgentTrajectories:
        if not self._started:
            self._started = True
            for policy, observed in self._env.reset().items():
                self._columns[policy].begin(observed)
        acted = 0
        for _ in range(self._fragment_length):
            chosen = self._chosen()
            acted += sum(len(actions.indices) for actions in chosen.values())
            for policy, step in self._env.step(chosen).items():
                self._columns[policy].step(step)
        steps = self._num_envs * self._fragment_length
        self._lifetime_steps += steps
        return MultiAgentTrajectories(
            {
                policy: columns.trajectories(self._versions[policy])
                for policy, columns in self._columns.items()
            },
            StepCounts(env_steps=steps, agent_steps=acted),
        )

    def _chosen(self) -> dict[str, Chosen]:
        """The actions of all policies, each chosen in one forward pass."""
        chosen: dict[str, Chosen] = {}
        for policy, columns in self._columns.items():
            turn = columns.turn()
            if len(turn.indices):
                chosen[policy] = columns.act(turn, self._act(policy, turn), self._versions[policy])
        return chosen

    def _act(self, policy: str, turn: Turn) -> Acted:
        """One action for each agent whose turn it is."""
        generator = self._generators[policy]
        acted = self._policies[policy].act(turn.observations, turn.state, generator)
        explorer = self._explorers.get(policy)
        if explorer is None:
            return acted
        return explorer.explored(acted, turn.observations, self._lifetime_steps, generator)


@dataclass(frozen=True)
class _Explorer:
    """Epsilon-greedy choice for one policy of action values."""

    spec: ActionValueSpec
    epsilon: Schedule

    @classmethod
    def of(cls, policy: str, policies: PolicyMap, rate: float | Schedule) -> Self:
        description = policies.policies.get(policy)
        if not isinstance(description, ActionValueSpec):
            raise ValueError(
                f"epsilon is given for {policy!r}, which is no policy of action values; a policy that draws its "
                "actions explores by itself"
            )
        return cls(description, as_schedule(rate))

    def explored(
        self, acted: Acted, observations: ObservationArray, step: int, generator: np.random.Generator
    ) -> Acted:
        actions, log_probs = epsilon_greedy(
            acted.actions.astype(np.int64, copy=False),
            self.spec.allowed(observations),
            self.epsilon(step),
            generator,
        )
        return acted._replace(actions=actions, log_probs=log_probs)
