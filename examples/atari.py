"""Atari: IMPALA on Pong, which EnvPool plays, with its frames shrunk and stacked, in threads of its own.

python examples/atari.py [steps] [inline|ray] [cpu|cuda]    (pip install 'pipeflow[envpool]')
"""

from __future__ import annotations

import sys

from pipeflow.algorithms.impala import IMPALAConfig, impala
from pipeflow.rl.environments import EnvSpec

# Whatever EnvPool has for a game is a keyword, such as "episodic_life" and "reward_clip".
PONG = EnvSpec("pipeflow.rl.envpool:EnvPool/Pong-v5", {"num_threads": 2, "repeat_action_probability": 0.25})


def main(steps: int, engine: str, device: str) -> None:
    config = IMPALAConfig(
        env=PONG, workers=2, num_envs=8, fragment_length=32, shared_trunk=True, normalise_rewards=False,
        lr=6e-4, anneal_steps=steps, entropy_coef=0.01, max_grad_norm=40.0, device=device, seed=1,
    )  # fmt: skip
    plan = impala(config).until(lambda report: report.lifetime_steps >= steps)
    for report in plan.run("ray" if engine == "ray" else "inline"):
        played = report.episodes
        print(
            f"{report.lifetime_steps:>9} steps  {played.count} games  mean return {played.mean_return:5.1f}"
        )


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, 5_000_000)), given.get(2, "ray"), given.get(3, "cpu"))
