"""DQN: the plan is what it says, keeps its proportions, and means the same on every engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from pipeflow import group_of, take
from pipeflow.algorithms.dqn import DQNConfig, dqn
from pipeflow.rl.replay import ReplayBuffer
from pipeflow.rl.replay_batches import TDReport
from pipeflow.testing import check_laws
from tests.algorithms.compared import assert_identical

SMALL = DQNConfig(
    workers=2,
    num_envs=2,
    fragment_length=4,
    intensity=4.0,
    capacity=64,
    learning_starts=32,
    batch_size=8,
    hidden=(8,),
    target_every=20,
    epsilon_steps=100,
    seed=3,
)
FULL = replace(SMALL, double=True, dueling=True, n_step=3, prioritised=True)


def reports(config: DQNConfig, engine: Literal["inline", "ray"], count: int) -> list[TDReport]:
    return list((dqn(config) | take(count)).run(engine))


def test_the_plan_reads_as_in_the_paper() -> None:
    names = [line.lstrip("├─└│ ").split("  ")[0] for line in dqn(SMALL).explain().splitlines()]
    assert names == [
        "by_steps",
        "drain",
        "sync_weights(DQNLearner, EpsilonGreedyWorker)",
        "ReplayBuffer.stage(ReplayBuffer.add)",
        "Transitions.concatenate",
        "gather_rounds()",
        "n_step",
        "EpsilonGreedyWorker.produce(EpsilonGreedyWorker.sample)",
        "DQNLearner.stage(DQNLearner.update)",
        "gather_sync()",
        "ReplayBuffer.produce(ReplayBuffer.sample)",
    ]


def test_priorities_are_sent_back_where_there_are_any() -> None:
    lines = [line.lstrip("├─└│ ").split("  ")[0] for line in dqn(FULL).explain().splitlines()]
    assert lines[-4:] == [
        "reply(ReplayBuffer.update_priorities)",
        "DQNLearner.stage(DQNLearner.update)",
        "gather_sync().with_source()",
        "ReplayBuffer.produce(ReplayBuffer.sample)",
    ]


@pytest.mark.parametrize("config", [SMALL, FULL], ids=["plain", "all options"])
def test_the_laws_hold_under_many_schedules(config: DQNConfig) -> None:
    check_laws(dqn(config), 5, items=12)


def test_rows_trained_on_keep_their_proportion_to_steps_stored() -> None:
    made = reports(SMALL, "inline", 32)
    # A round stores 16 steps, on which 64 rows in 8 updates follow; the first updates wait for two rounds.
    assert [report.lifetime_steps for report in made] == [32] * 16 + [48] * 8 + [64] * 8
    assert [report.steps for report in made] == [8] * 32


def test_every_option_trains() -> None:
    for option in (
        {"double": False},
        {"dueling": True},
        {"n_step": 3},
        {"minibatches": 2},
        {"prioritised": True},
        {"tau": 0.5},
        {"anneal_steps": 1000},
        {"max_grad_norm": None},
    ):
        made = reports(replace(SMALL, **option), "inline", 3)
        assert [report.version for report in made] == [1, 2, 3]
        assert all(np.isfinite(report.metrics["loss"]) for report in made)


def test_priorities_reach_the_buffer() -> None:
    plan = dqn(FULL) | take(3)
    with plan.run() as run:
        next(run)
        before = run.ask(group_of(plan, ReplayBuffer), ReplayBuffer.state)[0]["masses"]
        next(run)
        after = run.ask(group_of(plan, ReplayBuffer), ReplayBuffer.state)[0]["masses"]
    assert not np.array_equal(np.asarray(before), np.asarray(after))


def test_the_same_seed_gives_the_same_run_bit_for_bit_and_another_another() -> None:
    first = reports(FULL, "inline", 10)
    assert_identical(first, reports(FULL, "inline", 10))
    other = reports(replace(FULL, seed=4), "inline", 10)
    assert [report.metrics["loss"] for report in first] != [report.metrics["loss"] for report in other]


@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
@pytest.mark.parametrize("config", [SMALL, FULL], ids=["plain", "all options"])
def test_law_23_both_engines_give_identical_reports(config: DQNConfig) -> None:
    assert_identical(reports(config, "inline", 12), reports(config, "ray", 12))


def test_law_22_a_resumed_run_gives_the_reports_of_the_unbroken_one() -> None:
    plan = dqn(FULL) | take(20)
    with plan.run() as run:
        for _ in range(5):
            next(run)
        checkpoint = run.checkpoint()
        rest = list(run)
    assert_identical(list(plan.run(resume=checkpoint)), rest)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("workers", 0, "workers must be at least 1, got 0"),
        ("num_envs", 0, "num_envs must be at least 1"),
        ("fragment_length", 0, "fragment_length must be at least 1"),
        ("n_step", 0, "n_step must be at least 1"),
        ("epsilon_steps", 0, "epsilon_steps must be at least 1"),
        ("intensity", 0.0, "intensity must be more than 0"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(field: str, value: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(SMALL, **{field: value})  # type: ignore[arg-type]  # a field of DQNConfig, by name
