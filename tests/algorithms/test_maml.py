"""MAML: the inner loop is part of the plan, learns to adapt, and means the same on every engine."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from pipeflow import Stream, actors, batch, gather_sync, group_of, sync_weights, take
from pipeflow.algorithms.maml import MAMLConfig, adaptation_returns, held_out_tasks, maml, play, policy_of
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.sim import Sim
from pipeflow.rl.batches import Report, Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.meta.learner import MAMLLearner
from pipeflow.rl.meta.point_navigation import POINT_NAVIGATION
from pipeflow.rl.meta.worker import MAMLWorker
from pipeflow.testing import check_laws, policy_lag_at_most
from scripts.count_plan_lines import RLLIB_FLOW, count_lines
from tests.algorithms.compared import assert_identical

TINY = MAMLConfig(
    env=EnvSpec(POINT_NAVIGATION, {"horizon": 5}),
    tasks_per_update=4,
    inner_steps=2,
    num_envs=2,
    fragment_length=5,
    epochs=1,
    hidden=(8,),
    seed=3,
)


def joint_training(config: MAMLConfig) -> Stream[Report]:
    """MAML's plan without its inner loop: one policy for all tasks, which is what MAML is compared with."""
    policy = policy_of(config)
    workers = actors(
        MAMLWorker, config.workers, config.tasks, policy, num_envs=config.num_envs,
        fragment_length=config.fragment_length, gamma=config.gamma, seed=config.seed,
    )  # fmt: skip
    learner = actors(
        MAMLLearner, 1, policy, lr=config.lr, epochs=config.epochs, clip=config.clip, seed=config.seed
    )
    return (
        workers.produce(MAMLWorker.sample_task)
        | gather_sync()
        | batch(config.tasks_per_update)
        | learner.stage(MAMLLearner.meta_update)
        | sync_weights(learner, workers)
    )


def reports(config: MAMLConfig, engine: Literal["inline", "ray"] | Engine, count: int) -> list[Report]:
    return list((maml(config) | take(count)).run(engine))


def trained(plan: Stream[Report], steps: int) -> Weights:
    """The weights after so many environment steps."""
    with plan.until(lambda report: report.lifetime_steps >= steps).run() as run:
        for _ in run:
            pass
        return run.ask(group_of(plan, MAMLLearner), MAMLLearner.weights)[0]


def test_the_plan_reads_as_in_the_paper_with_the_inner_loop_in_it() -> None:
    names = [line.split("  ")[0] for line in maml(TINY).explain().splitlines()]
    assert names == [
        "sync_weights(MAMLLearner, MAMLWorker)",
        "MAMLLearner.stage(MAMLLearner.meta_update)",
        "batch(4)",
        "gather_sync()",
        "MAMLWorker.stage(MAMLWorker.adapt) 2/2",
        "MAMLWorker.stage(MAMLWorker.adapt) 1/2",
        "MAMLWorker.produce(MAMLWorker.sample_task)",
    ]


def test_the_plan_has_no_more_lines_than_rllib_flow_s() -> None:
    assert count_lines(inspect.getsource(sys.modules[maml.__module__]), "maml") <= RLLIB_FLOW["MAML"]


def test_fault_25_the_laws_hold_in_nested_loops() -> None:
    check_laws(maml(TINY), schedules=3, items=2, invariants=[policy_lag_at_most(0)])


def test_every_task_of_an_update_began_with_the_newest_weights() -> None:
    made = reports(TINY, "inline", 3)
    assert [report.metrics["policy_lag"] for report in made] == [0.0] * 3
    # Four tasks, each with rollouts before adapting and after each of two steps, of two environments.
    assert [report.lifetime_steps for report in made] == [4 * 3 * 10 * n for n in (1, 2, 3)]
    assert [report.episodes.count for report in made] == [4 * 2] * 3


def test_law_23_a_simulated_schedule_gives_identical_reports() -> None:
    assert_identical(reports(TINY, "inline", 3), reports(TINY, Sim(5), 3))


@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
def test_law_23_ray_gives_identical_reports() -> None:
    assert_identical(reports(TINY, "inline", 3), reports(TINY, "ray", 3))


def test_law_22_a_resumed_run_gives_the_reports_of_the_unbroken_one() -> None:
    plan = maml(TINY) | take(4)
    with plan.run() as run:
        next(run)
        checkpoint = run.checkpoint()
        rest = list(run)
    assert_identical(list(plan.run(resume=checkpoint)), rest)


def test_another_seed_gives_another_run() -> None:
    first, second = (reports(replace(TINY, seed=seed), "inline", 1)[0] for seed in (3, 4))
    assert first.metrics["policy_loss"] != second.metrics["policy_loss"]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("workers", 0, "workers must be at least 1, got 0"),
        ("inner_steps", 0, "inner_steps must be at least 1, got 0"),
        ("epochs", 0, "epochs must be at least 1, got 0"),
        ("tasks_per_update", 5, "tasks_per_update 5 is no multiple of the 2 workers"),
        ("task_ranges", {"goal_x": (1.0, 0.0)}, "the range of goal_x goes from 1.0 to 0.0"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(field: str, value: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(TINY, **{field: value})  # type: ignore[arg-type]  # a field of MAMLConfig, by name


def test_held_out_tasks_follow_from_their_seed_alone() -> None:
    tasks = held_out_tasks(TINY, 3, seed=0)
    assert tasks == held_out_tasks(replace(TINY, seed=9), 3, seed=0)
    assert tasks[:2] == held_out_tasks(TINY, 2, seed=0)
    assert tasks != held_out_tasks(TINY, 3, seed=1)
    assert all(-0.5 <= float(str(task.kwargs["goal_x"])) <= 0.5 for task in tasks)


def test_a_policy_that_has_not_learnt_adapts_little_and_its_returns_follow_from_the_seed() -> None:
    config = replace(TINY, step_size=1e-6)
    weights = Weights(0, policy_of(config).build(seed=0).parameters_numpy())
    tasks = held_out_tasks(config, 2, seed=0)
    found = adaptation_returns(config, weights, tasks, seed=0, episodes=1)
    np.testing.assert_allclose(found.before, found.after, rtol=1e-3)
    # It stays near the origin for five steps.
    squares = [sum(float(str(task.kwargs[name])) ** 2 for name in ("goal_x", "goal_y")) for task in tasks]
    np.testing.assert_allclose(found.before, -5 * np.array(squares), rtol=0.1)
    again = adaptation_returns(config, weights, tasks, seed=0, episodes=1)
    assert found.after.tolist() == again.after.tolist()


def test_an_evaluation_plays_one_adapted_episode_in_each_of_as_many_held_out_tasks() -> None:
    weights = Weights(0, policy_of(TINY).build(seed=0).parameters_numpy())
    stats = play(TINY, [weights], episodes=3, seed=4)
    found = adaptation_returns(TINY, weights, held_out_tasks(TINY, 3, seed=4), seed=4, episodes=1)
    assert stats.returns.tolist() == found.after.tolist()
    assert stats.lengths.tolist() == [5, 5, 5]
    with pytest.raises(ValueError, match="at least 1 episode, got 0"):
        play(TINY, [weights], episodes=0, seed=4)


def test_adaptation_pays_after_a_short_training() -> None:
    config = MAMLConfig(
        env=EnvSpec(POINT_NAVIGATION, {"horizon": 20}), fragment_length=20, step_size=0.5, seed=1
    )
    found = adaptation_returns(
        config, trained(maml(config), steps=240_000), held_out_tasks(config, 10, seed=0), seed=0, episodes=1
    )
    # Standing still costs a sixth a step, 3.3 in all.
    assert found.before.mean() < -2.5
    assert found.after.mean() > -1.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_adapts_better_than_a_policy_that_was_trained_on_all_tasks(seed: int) -> None:
    config, steps = MAMLConfig(seed=seed), 1_200_000
    tasks = held_out_tasks(config, 20, seed=100)
    learnt = adaptation_returns(config, trained(maml(config), steps), tasks, seed=seed)
    assert learnt.after.mean() > -1.2
    assert learnt.after.mean() > learnt.before.mean() + 5.0
    pretrained = trained(joint_training(config), steps)
    tuned = {
        step_size: adaptation_returns(
            replace(config, step_size=step_size), pretrained, tasks, seed=seed
        ).after.mean()
        for step_size in (config.step_size, 0.3, 0.5)
    }
    assert learnt.after.mean() > tuned[config.step_size] + 3.0
    # Steps of the size that suits the baseline best leave it behind as well.
    assert learnt.after.mean() > max(tuned.values())
