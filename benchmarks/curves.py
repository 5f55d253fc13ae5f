"""Learning curves, of runs and of models of Stable-Baselines3: the mean return of the latest 100 episodes.

Apart from the benchmarks, several of which show curves of the same work for both libraries.
"""

from __future__ import annotations

from collections import deque

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from typing_extensions import override

from benchmarks.harness import Json
from pipeflow import Stream
from pipeflow.rl.batches import Report

EPISODES = 100  # as many as Stable-Baselines3 keeps


def curve_of(plan: Stream[Report], steps: int) -> list[Json]:
    """Pairs of environment steps and the mean return, after every update of so many steps in this process."""
    latest: deque[float] = deque(maxlen=EPISODES)
    curve: list[Json] = []
    with plan.until(lambda report: report.lifetime_steps >= steps).run() as run:
        for report in run:
            latest.extend(report.episodes.returns.tolist())
            if latest:
                curve.append([report.lifetime_steps, round(sum(latest) / len(latest), 1)])
    return curve


def sb3_curve_of(model: BaseAlgorithm, steps: int) -> list[Json]:
    """What `curve_of` is, of a model that learns for so many steps."""
    curve = _Curve()
    model.learn(steps, callback=curve)
    return curve.points


class _Curve(BaseCallback):
    def __init__(self) -> None:
        super().__init__()
        self.points: list[Json] = []

    @override
    def _on_step(self) -> bool:
        return True

    @override
    def _on_rollout_end(self) -> None:
        episodes = self.model.ep_info_buffer
        if episodes:
            mean = sum(float(episode["r"]) for episode in episodes) / len(episodes)
            self.points.append([self.num_timesteps, round(mean, 1)])
