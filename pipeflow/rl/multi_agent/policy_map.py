"""Which policy acts for which agent, checked against the agents' spaces.

Apart from the policies, each of which knows only its own spaces, and from the environments, which know of no
policy. A policy may act for one agent or be shared by many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.policy import PolicyDescription
from pipeflow.rl.spaces import ActionCodec


@dataclass(frozen=True)
class Seats:
    """The agents that one policy acts for in one environment, in the environment's order, and their actions."""

    agents: tuple[str, ...]
    actions: ActionCodec


@dataclass(frozen=True)
class PolicyMap:
    """The policies of a run by their ids, and the one that acts for each agent.

    policies: descriptions by id. policy_of: from an agent's name to a policy's id; the same for the whole run, and
    a function of a module, since it travels to the workers.
    """

    policies: Mapping[str, PolicyDescription]
    policy_of: Callable[[str], str]

    def seats(self, env: MultiAgentEnvSpec) -> Mapping[str, Seats]:
        """The agents of each policy.

        Raises ValueError if an agent's policy is unknown, a policy has no agent, or an agent's spaces are not
        those that its policy was described for.
        """
        spaces = env.spaces()
        agents: dict[str, list[str]] = {policy: [] for policy in self.policies}
        for agent, its in spaces.items():
            policy = self.policy_of(agent)
            if policy not in agents:
                raise ValueError(
                    f"policy_of({agent!r}) is {policy!r}, which is none of the policies {list(self.policies)}"
                )
            first = spaces[agents[policy][0]] if agents[policy] else its
            if its.observations != self.policies[policy].observations or its.action != first.action:
                raise ValueError(
                    f"policy {policy!r} cannot act for agent {agent!r}, which observes {its.observation} "
                    f"and chooses from {its.action}; give agents with other spaces another policy, and describe "
                    "each policy for the spaces of its agents"
                )
            agents[policy].append(agent)
        for policy, its_agents in agents.items():
            if not its_agents:
                raise ValueError(
                    f"policy_of gives policy {policy!r} to none of the agents {list(spaces)} of {env.name}"
                )
        return {
            policy: Seats(tuple(its_agents), spaces[its_agents[0]].actions)
            for policy, its_agents in agents.items()
        }
