"""Two algorithms in one run, by changing one line: a plan is a value, and & joins plans like any streams.

python examples/interleaved.py [steps]
"""

from __future__ import annotations

import sys

from pipeflow import Stream
from pipeflow.algorithms.dqn import DQNConfig, dqn
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.rl.batches import Report
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.replay_batches import TDReport

CARTPOLE = EnvSpec("CartPole-v1")


def alone() -> Stream[Report]:
    """PPO, as it comes."""
    return ppo(PPOConfig(env=CARTPOLE, seed=1))


def interleaved() -> Stream[Report]:
    """The same with DQN beside it, which for every step of PPO trains on as many rows as for one of its own."""
    deep_q = DQNConfig(env=CARTPOLE, seed=1)
    return (ppo(PPOConfig(env=CARTPOLE, seed=1)) & dqn(deep_q)).by_steps(1, deep_q.intensity)


def main(steps: int) -> None:
    latest: dict[str, Report] = {}
    for report in interleaved().until(lambda report: report.lifetime_steps >= steps).run():
        name = "dqn" if isinstance(report, TDReport) else "ppo"
        if report.episodes.count:
            latest[name] = report
        if name == "ppo" and len(latest) == 2:
            for trainer, last in sorted(latest.items()):
                print(f"{trainer}: {last.lifetime_steps:>6} steps, return {last.episodes.mean_return:6.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40_000)
