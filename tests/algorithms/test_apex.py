"""Ape-X: the plan is what it says, its flows overlap, and priorities go home."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from pipeflow import group_of, take
from pipeflow.algorithms.apex import ApexConfig, apex
from pipeflow.rl.exploration import EpsilonGreedyWorker
from pipeflow.rl.replay import ReplayBuffer
from pipeflow.rl.replay_batches import TDReport
from pipeflow.testing import check_laws

SMALL = ApexConfig(
    workers=2,
    num_envs=2,
    fragment_length=4,
    sync_every=2,
    intensity=4.0,
    replays=3,
    capacity=96,
    learning_starts=48,
    batch_size=8,
    hidden=(8,),
    target_every=5,
    seed=3,
)


def reports(config: ApexConfig, engine: Literal["inline", "ray"], count: int) -> list[TDReport]:
    return list((apex(config) | take(count)).run(engine))


def test_the_plan_reads_as_in_the_paper() -> None:
    names = [line.lstrip("├─└│ ").split("  ")[0] for line in apex(SMALL).explain().splitlines()]
    assert names == [
        "by_steps",
        "drain",
        "sync_weights(DQNLearner, EpsilonGreedyWorker, every=2)",
        "ReplayBuffer.stage(ReplayBuffer.add)",
        "gather_async(2)",
        "n_step",
        "EpsilonGreedyWorker.produce(EpsilonGreedyWorker.sample)",
        "update_target(DQNLearner, every=5)",
        "reply(ReplayBuffer.update_priorities)",
        "DQNLearner.stage(DQNLearner.update)",
        "gather_async(2).with_source()",
        "ReplayBuffer.produce(ReplayBuffer.sample)",
    ]


def test_the_laws_hold_under_many_schedules() -> None:
    check_laws(apex(SMALL), 8, items=20)


@pytest.mark.parametrize("engine", ["inline", pytest.param("ray", marks=pytest.mark.ray)])
def test_every_replay_actor_stores_is_sampled_and_gets_its_own_priorities(
    engine: Literal["inline", "ray"], request: pytest.FixtureRequest
) -> None:
    if engine == "ray":
        request.getfixturevalue("ray_runtime")
    # Nothing is overwritten, so a priority that is ignored has come to the wrong actor.
    plan = apex(replace(SMALL, capacity=30_000)) | take(40)
    replay = group_of(plan, ReplayBuffer)
    with plan.run(engine) as run:
        for _ in range(39):
            next(run)
        states = run.ask(replay, ReplayBuffer.state)
    sizes = [int(state["added"]) for state in states]
    assert max(sizes) - min(sizes) <= 16  # filled evenly, a fragment at a time
    for state in states:
        assert state["ignored_priorities"] == 0
        assert int(state["samples"]) > 0
        assert len(np.unique(np.asarray(state["masses"]))) > 2


def test_the_target_network_follows_every_fifth_update() -> None:
    updates = [int(report.metrics["target_updates"]) for report in reports(SMALL, "inline", 20)]
    # Up to two updates may have begun before the message of the fifth was sent.
    assert all(count in ((i // 5), max(0, (i - 2) // 5)) for i, count in enumerate(updates))
    assert updates[-1] >= 3


def test_every_environment_explores_at_a_rate_of_its_own() -> None:
    plan = apex(replace(SMALL, epsilon_base=0.4, epsilon_alpha=7.0)) | take(1)
    with plan.run() as run:
        next(run)
        rates = run.ask(group_of(plan, EpsilonGreedyWorker), _rates)
    found = [rate for of_worker in rates for rate in of_worker]
    assert found == pytest.approx([0.4 ** (1.0 + 7.0 * i / 3) for i in range(4)])


def _rates(worker: EpsilonGreedyWorker) -> list[float]:
    rates: list[float] = np.asarray(worker.epsilon).tolist()
    return rates


def test_rows_trained_on_keep_their_proportion_to_steps_stored() -> None:
    made = reports(SMALL, "inline", 60)
    # What was trained on, for what was stored; a buffer tells of what it stored when it is next sampled.
    trained = sum(report.steps for report in made[20:])
    stored = made[-1].lifetime_steps - made[20].lifetime_steps
    assert trained / stored == pytest.approx(SMALL.intensity, rel=0.3)


def test_the_same_seed_gives_the_same_run_bit_for_bit() -> None:
    first, second = reports(SMALL, "inline", 15), reports(SMALL, "inline", 15)
    assert [dict(report.metrics) for report in first] == [dict(report.metrics) for report in second]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("workers", 0, "workers must be at least 1, got 0"),
        ("sync_every", 0, "sync_every must be at least 1"),
        ("replays", 0, "replays must be at least 1"),
        ("target_every", 0, "target_every must be at least 1"),
        ("intensity", -1.0, "intensity must be more than 0"),
        ("capacity", 2, "capacity 2 is too small to be shared by 3 replay actors"),
        ("learning_starts", 2, "learning_starts 2 is too small to be shared by 3 replay actors"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(field: str, value: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(SMALL, **{field: value})  # type: ignore[arg-type]  # a field of ApexConfig, by name
