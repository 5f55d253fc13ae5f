"""Decentralised PPO: all workers hold the same parameters, and it is PPO on the rows of all."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from pipeflow import group_of, take
from pipeflow.algorithms.ddppo import DDPPOConfig, ddppo
from pipeflow.lowering.engines.sim import Sim
from pipeflow.rl.batches import Report
from pipeflow.rl.learners.decentralised_ppo import DecentralisedPPOWorker
from pipeflow.testing import check_laws

SMALL = DDPPOConfig(num_envs=2, fragment_length=16, epochs=2, minibatches=2, hidden=(8,), seed=3)


def reports(config: DDPPOConfig, engine: Literal["inline", "ray"] | Sim, count: int) -> list[Report]:
    return list((ddppo(config) | take(count)).run(engine))


def test_all_workers_hold_the_same_parameters_though_they_saw_other_steps() -> None:
    plan = ddppo(replace(SMALL, workers=3))
    group = group_of(plan, DecentralisedPPOWorker)
    with plan.run() as run:
        next(run)
        first, *others = run.ask(group, DecentralisedPPOWorker.weights)
    assert first.version == 4
    for other in others:
        for name, array in first.parameters.items():
            np.testing.assert_array_equal(array, other.parameters[name])


def test_steps_and_episodes_are_counted_once_over_the_epochs_and_over_all_workers() -> None:
    found = reports(SMALL, "inline", 6)
    assert [report.version for report in found] == [4, 8, 12, 16, 20, 24]
    assert all(0 < report.steps <= 2 * 2 * 16 for report in found)
    assert np.cumsum([report.steps for report in found]).tolist() == [r.lifetime_steps for r in found]
    lengths = sum(int(report.episodes.lengths.sum()) for report in found)
    assert 0 < lengths <= found[-1].lifetime_steps


def test_gradients_are_of_the_parameters_that_they_are_applied_to() -> None:
    assert {report.metrics["policy_lag"] for report in reports(SMALL, "inline", 3)} == {0.0}


def test_the_plan_keeps_the_laws() -> None:
    check_laws(ddppo(SMALL), schedules=4, items=2)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
def test_law_23_all_engines_give_identical_reports() -> None:
    found = [reports(SMALL, engine, 3) for engine in ("inline", Sim(1), "ray")]
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            assert dict(one.metrics) == pytest.approx(dict(same.metrics), rel=0, abs=0, nan_ok=True)
            assert one.lifetime_steps == same.lifetime_steps
