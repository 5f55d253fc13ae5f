"""Two agents of PettingZoo's simple_spread that share one policy, trained by PPO on what all of them see.

python examples/multi_agent.py [steps]
"""

from __future__ import annotations

import sys

from pipeflow import Stream, actors, gather_rounds
from pipeflow.rl.batches import Advantages, Report
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.operators import select, sync_policy_weights
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae

SPREAD = MultiAgentEnvSpec("mpe2.simple_spread_v3", {"N": 2, "max_cycles": 25})


def team(agent: str) -> str:
    """Which policy acts for an agent: here the same one for all."""
    return "team"


def spread(seed: int) -> Stream[Report]:
    spaces = SPREAD.spaces()["agent_0"]
    policy = PolicySpec(spaces.observations, spaces.actions)
    workers = actors(
        MultiAgentWorker, 2, SPREAD, PolicyMap({"team": policy}, team), fragment_length=25, seed=seed
    )
    learner = actors(PPOLearner, 1, policy, lr=3e-3, epochs=8, entropy_coef=0.01, seed=seed)
    return (
        workers.produce(MultiAgentWorker.sample)  # ParallelStream[MultiAgentTrajectories]
        | select("team")  # ParallelStream[Trajectories]: a policy's own
        | gae(gamma=0.95)
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
        | sync_policy_weights("team", learner, workers)
    )


def main(steps: int) -> None:
    for report in spread(seed=1).until(lambda report: report.lifetime_steps >= steps).run():
        print(f"{report.lifetime_steps:>7} actions  mean return {report.episodes.mean_return:6.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000)
