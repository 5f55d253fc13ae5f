"""IMPALA and APPO: asynchronous fragments, a queue at the learner, weights every few updates, a tree of joins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeflow import take
from pipeflow.algorithms.appo import APPOConfig, appo
from pipeflow.algorithms.impala import IMPALAConfig, impala
from pipeflow.lowering.engines.sim import Sim
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.image_tasks import GRID_BREAKOUT
from pipeflow.testing import check_laws
from tests.rl.partial_environments import Recall

SMALL = IMPALAConfig(num_envs=2, fragment_length=8, fragments=2, hidden=(8,), seed=3)
SMALL_APPO = APPOConfig(num_envs=2, fragment_length=8, minibatch_size=16, epochs=2, hidden=(8,), seed=3)
TREE = replace(SMALL, workers=4, aggregators=2)


def names(text: str) -> list[str]:
    return [line.split("  ")[0] for line in text.splitlines()]


def test_impalas_plan_reads_as_in_the_paper() -> None:
    assert names(impala(SMALL).explain()) == [
        "sync_weights(IMPALALearner, RolloutWorker)",
        "IMPALALearner.stage(IMPALALearner.update)",
        "Trajectories.concatenate",
        "batch(2)",
        "mix_in_replay(0)",
        "gather_async(2)",
        "RolloutWorker.produce(RolloutWorker.sample)",
    ]


def test_appos_plan_is_impalas_with_another_learner() -> None:
    others = names(appo(replace(SMALL_APPO, fragments=2)).explain())
    assert others == [name.replace("IMPALA", "APPO") for name in names(impala(SMALL).explain())]


def test_aggregators_stand_between_the_fragments_and_the_learner() -> None:
    assert names(impala(TREE).explain())[1:4] == [
        "IMPALALearner.stage(IMPALALearner.update)",
        "Aggregator.stage(Aggregator.concatenate)",
        "batch(2)",
    ]


@pytest.mark.parametrize(
    "config", [SMALL, TREE, replace(SMALL, replay_share=1.0)], ids=["plain", "tree", "replay"]
)
def test_a_batch_is_so_many_fragments(config: IMPALAConfig) -> None:
    reports = list((impala(config) | take(5)).run())
    assert [report.version for report in reports] == [1, 2, 3, 4, 5]
    # Two fragments of 8 steps of 2 environments, less the steps that only reset.
    assert all(24 <= report.steps <= 32 for report in reports)


@pytest.mark.parametrize("config", [TREE, replace(SMALL, replay_share=0.5)], ids=["tree", "replay"])
def test_its_variants_keep_every_law_under_simulated_schedules(config: IMPALAConfig) -> None:
    check_laws(impala(config), schedules=4, items=4)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_trained_on_is_a_few_versions_old_and_no_more(seed: int) -> None:
    # Two fragments under way in a worker and two batches at the learner: so much may be older than an update.
    reports = list((impala(replace(SMALL, fragments=1)) | take(40)).run(Sim(seed=seed)))
    lags = [report.metrics["policy_lag"] for report in reports]
    assert 0 < max(lags) <= 12
    assert lags[0] == 0


def test_weights_that_are_sent_less_often_are_older() -> None:
    newest, seldom = (
        [
            report.metrics["policy_lag"]
            for report in (impala(replace(SMALL, broadcast_every=every)) | take(30)).run()
        ]
        for every in (1, 8)
    )
    assert sum(seldom) > sum(newest) + 30


def test_replay_trains_on_more_steps_and_counts_no_episode_twice() -> None:
    plain, replayed = (
        list((impala(replace(SMALL, replay_share=share)) | take(40)).run()) for share in (0.0, 1.0)
    )
    finished = [sum(report.episodes.count for report in reports) for reports in (plain, replayed)]
    # Half of what is trained on is old, so about half as many episodes have finished.
    assert 0.3 * finished[0] < finished[1] < 0.8 * finished[0]


def test_a_policy_with_memory_learns_what_needs_it() -> None:
    config = IMPALAConfig(
        env=EnvSpec(Recall, {"delay": 2}), num_envs=16, fragment_length=16, memory="gru", memory_size=16,
        hidden=(16,), lr=5e-3, anneal_steps=None, normalise_rewards=False, seed=1,
    )  # fmt: skip
    late = list((impala(config) | take(150)).run())[-20:]
    returns = [float(value) for report in late for value in report.episodes.returns]
    assert sum(returns) / len(returns) > 0.9


def test_an_image_is_learnt_from() -> None:
    config = IMPALAConfig(env=EnvSpec(GRID_BREAKOUT), num_envs=4, fragment_length=8, seed=1)
    reports = list((impala(config) | take(2)).run())
    assert [report.steps for report in reports] == [32, 32]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("workers", 0, "workers must be at least 1, got 0"),
        ("in_flight", 0, "in_flight must be at least 1, got 0"),
        ("fragments", 0, "fragments must be at least 1, got 0"),
        ("queue", 0, "queue must be at least 1, got 0"),
        ("broadcast_every", 0, "broadcast_every must be at least 1, got 0"),
        ("aggregators", -1, "aggregators must be at least 0, got -1"),
        ("minibatch_size", 0, "minibatch_size must be at least 1, got 0"),
        ("memory", "lstm", "APPO shuffles rows, which a policy with memory 'lstm' cannot be given"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(field: str, value: int | str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(SMALL_APPO, **{field: value})  # type: ignore[arg-type]  # a field of APPOConfig, by name
