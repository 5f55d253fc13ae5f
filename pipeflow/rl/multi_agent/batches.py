"""The typed items of a plan with several policies: what their workers collect, and the weights of one of them.

Apart from `pipeflow.rl.batches`, whose items know of one policy. What a learner is given is still `Trajectories`,
taken out by `select`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pipeflow.rl.batches import Trajectories, Weights
from pipeflow.rl.episodes import StepCounts


@dataclass(frozen=True, eq=False)
class MultiAgentTrajectories:
    """What all policies experienced in some steps of an environment with several agents.

    by_policy: of each policy, also of one without an agent in these steps, all of whose rows are then not valid. A
    column is one agent of one copy, and its rows are the agent's own actions one after the other, from the first
    row on: steps in which it was absent take no row, and the rows that are left over at the end are not valid. A
    reward that came while the agent was skipped is added to its last action's. A row is there once it is known
    what the action led to; one whose agent was skipped when the steps ended comes first in the next trajectories,
    and with it their `version` may be older. The episodes of a policy are its agents', their lengths in actions.
    counts: environment steps, each counted once, and actions of all agents.
    """

    by_policy: Mapping[str, Trajectories]
    counts: StepCounts

    @property
    def steps(self) -> int:
        """Number of environment steps, however many agents took part."""
        return self.counts.env_steps

    @classmethod
    def concatenate(cls, items: Sequence[Self]) -> Self:
        """The trajectories of each policy side by side; the steps of all.

        Raises ValueError if there is no item, or if the items differ in their number of rows or in their policies.
        """
        if not items:
            raise ValueError("MultiAgentTrajectories.concatenate was given no item; give it at least one")
        policies = items[0].by_policy.keys()
        for item in items:
            if item.by_policy.keys() != policies:
                raise ValueError(
                    f"trajectories of the policies {sorted(policies)} and {sorted(item.by_policy)} cannot stand "
                    "side by side; collect all with one PolicyMap"
                )
        return cls(
            {
                policy: Trajectories.concatenate([item.by_policy[policy] for item in items])
                for policy in items[0].by_policy
            },
            StepCounts(
                sum(item.counts.env_steps for item in items), sum(item.counts.agent_steps for item in items)
            ),
        )


@dataclass(frozen=True, eq=False)
class PolicyWeights:
    """The weights of one policy among several: policy is its id."""

    policy: str
    weights: Weights
