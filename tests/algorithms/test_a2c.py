"""A2C and A3C: one mean gradient a round, and one gradient with an answer to its sender alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pipeflow import group_of, take
from pipeflow.algorithms.a2c import A2CConfig, a2c
from pipeflow.algorithms.a3c import A3CConfig, a3c
from pipeflow.lowering.engines.sim import Sim
from pipeflow.rl.learners.actor_critic import GradientWorker
from pipeflow.rl.learners.gradient_learner import GradientLearner
from pipeflow.rl.learners.learner import Learner
from pipeflow.semantics.events import Called

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


@pytest.mark.parametrize("field", ["workers", "num_envs", "fragment_length", "threads"])
def test_a_configuration_that_cannot_work_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must be at least 1, got 0"):
        replace(SMALL, **{field: 0})  # type: ignore[arg-type]  # a field of A2CConfig, by name
