"""What a plan with several policies is written with: one policy's experience out of all, and its weights back.

Apart from the items, which do nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pipeflow.dsl import Actors, HasWeights, Stage, stage
from pipeflow.dsl.messages import SyncWeights, sync_groups
from pipeflow.rl.batches import Trajectories, Weights
from pipeflow.rl.multi_agent.batches import MultiAgentTrajectories, PolicyWeights
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker


def select(policy: str) -> Stage[MultiAgentTrajectories, Trajectories]:
    """The stage that takes one policy's experience out of what all collected, whether it has rows or not.

    It raises ValueError if there is no such policy.
    """

    def select(trajectories: MultiAgentTrajectories) -> Trajectories:
        if policy not in trajectories.by_policy:
            raise ValueError(
                f"there is no policy {policy!r}; the policies are {list(trajectories.by_policy)}"
            )
        return trajectories.by_policy[policy]

    return stage(select).named(f"select({policy!r})")


def sync_policy_weights(
    policy: str, learner: Actors[HasWeights[Weights]], workers: Actors[MultiAgentWorker], *, every: int = 1
) -> SyncWeights:
    """As `sync_weights`, for the learner of one of the policies that the workers act with.

    policy: its id. learner: a group of one learner of single policies. every: after how many items.
    Raises PlanError if there are several learners, ValueError if `every` is below 1.
    """
    suffix = f", every={every}" if every > 1 else ""
    name = f"sync_policy_weights({policy!r}, {learner.group.name}, {workers.group.name}{suffix})"
    sync = sync_groups(learner.group, workers.group, every)
    return replace(sync, name=name, get=partial(_weights_of, policy))


def _weights_of(policy: str, learner: HasWeights[Weights], /) -> PolicyWeights:
    return PolicyWeights(policy, learner.weights())
