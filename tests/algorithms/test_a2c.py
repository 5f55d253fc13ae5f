"""A2C and A3C: one mean gradient a round, one gradient with an answer to its sender alone, and memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pipeflow import group_of, take
from pipeflow.algorithms.a2c import A2CConfig, a2c, policy_of
from pipeflow.algorithms.a3c import A3CConfig, a3c
from pipeflow.lowering.engines.sim import Sim
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.actor_critic import GradientWorker
from pipeflow.rl.learners.gradient_learner import GradientLearner
from pipeflow.rl.learners.learner import Learner
from pipeflow.rl.recurrent import MemoryKind, state_width
from pipeflow.semantics.events import Called
from pipeflow.testing import check_laws
from tests.algorithms.compared import assert_identical
from tests.rl.partial_environments import Recall

SMALL = A2CConfig(workers=3, num_envs=2, fragment_length=8, hidden=(8,), seed=3)
SMALL_ASYNC = A3CConfig(workers=3, num_envs=2, fragment_length=8, hidden=(8,), seed=3)


def names(text: str) -> list[str]:
    return [line.split("  ")[0] for line in text.splitlines()]


def test_a2cs_plan_reads_as_in_the_paper() -> None:
    assert names(a2c(SMALL).explain()) == [
        "sync_weights(GradientLearner, GradientWorker)",
        "GradientLearner.stage(GradientLearner.apply)",
        "Gradients.mean",
        "gather_rounds()",
        "GradientWorker.stage(GradientWorker.gradients)",
        "gae",
        "GradientWorker.produce(RolloutWorker.sample)",
    ]


def test_a3cs_plan_reads_as_in_the_paper() -> None:
    assert names(a3c(SMALL_ASYNC).explain()) == [
        "reply_weights(GradientLearner)",
        "GradientLearner.stage(GradientLearner.apply)",
        "gather_async(1).with_source()",
        "GradientWorker.stage(GradientWorker.gradients)",
        "gae",
        "GradientWorker.produce(RolloutWorker.sample)",
    ]


def test_a_round_of_a2c_is_one_update_with_the_newest_weights() -> None:
    reports = list((a2c(SMALL) | take(4)).run())
    assert [report.version for report in reports] == [1, 2, 3, 4]
    assert [report.metrics["policy_lag"] for report in reports] == [0.0] * 4
    # Three workers with 2 environments and 8 steps, less the steps that only reset.
    assert all(40 <= report.steps <= 48 for report in reports)


def test_every_gradient_of_a3c_is_one_update() -> None:
    reports = list((a3c(SMALL_ASYNC) | take(9)).run())
    assert [report.version for report in reports] == list(range(1, 10))
    assert all(12 <= report.steps <= 16 for report in reports)


@pytest.mark.parametrize("seed", range(5))
def test_a3cs_gradients_are_older_by_what_the_others_applied_meanwhile(seed: int) -> None:
    # No worker has two fragments under way, so what it sends was sampled with the answer to its last gradient.
    run = (a3c(SMALL_ASYNC) | take(30)).run(Sim(seed=seed), record=True)
    reports = list(run)
    lags = [report.metrics["policy_lag"] for report in reports]
    assert max(lags) > 0
    assert np.mean(lags) <= 3.0


def test_a3c_answers_the_sender_alone() -> None:
    run = (a3c(SMALL_ASYNC) | take(30)).run(Sim(seed=1), record=True)
    list(run)
    answered = Counter(
        event.actor
        for event in run.trace
        if isinstance(event, Called)
        and event.purpose == "weights"
        and event.actor.startswith("GradientWorker")
    )
    # All three once at the start, then one of them for each of the 30 gradients.
    assert sum(answered.values()) == 33


@pytest.mark.parametrize("memory", ["lstm", "gru"])
def test_with_memory_the_plans_are_the_same_and_keep_every_law(memory: MemoryKind) -> None:
    config = replace(SMALL, memory=memory, memory_size=4)
    assert policy_of(config).state_width == state_width(memory, 4)
    synchronous = a2c(config)
    asynchronous = a3c(replace(SMALL_ASYNC, memory=memory, memory_size=4))
    assert names(synchronous.explain()) == names(a2c(SMALL).explain())
    assert names(asynchronous.explain()) == names(a3c(SMALL_ASYNC).explain())
    check_laws(synchronous, schedules=2, items=3)
    check_laws(asynchronous, schedules=2, items=3)
    plan = synchronous | take(3)
    assert_identical(list(plan.run()), list(plan.run(Sim(seed=7))))


def test_a_policy_with_memory_learns_what_needs_it() -> None:
    config = A2CConfig(
        env=EnvSpec(Recall, {"delay": 2}), memory="gru", memory_size=16, hidden=(16,), lr=5e-3,
        anneal_steps=None, normalise_rewards=False, seed=1,
    )  # fmt: skip
    late = list((a2c(config) | take(150)).run())[-20:]
    returns = [float(value) for report in late for value in report.episodes.returns]
    assert sum(returns) / len(returns) > 0.9


def test_after_a_round_the_workers_act_with_the_learners_weights() -> None:
    plan = a2c(SMALL) | take(1)
    with plan.run() as run:
        worker_parameters = run.ask(group_of(plan, GradientWorker), weights_of_worker)
        learner_parameters = run.ask(group_of(plan, GradientLearner), Learner.weights)[0].parameters
    for parameters in worker_parameters:
        for name, array in learner_parameters.items():
            np.testing.assert_array_equal(parameters[name], array)


def weights_of_worker(worker: GradientWorker) -> dict[str, object]:
    return dict(worker._policy.parameters_numpy())


@pytest.mark.parametrize("field", ["workers", "num_envs", "fragment_length", "memory_size", "threads"])
def test_a_configuration_that_cannot_work_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must be at least 1, got 0"):
        replace(SMALL, **{field: 0})  # type: ignore[arg-type]  # a field of A2CConfig, by name
