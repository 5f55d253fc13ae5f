"""The learner of MAML: what one update reports, changes, and needs to be resumed."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeflow.rl.batches import Report
from pipeflow.rl.meta.adaptation import Rollout, adapted, log_ratio
from pipeflow.rl.meta.learner import MAMLLearner
from pipeflow.rl.meta.rollouts import TaskRollouts
from tests.rl.meta.families import POLICY, STEP_SIZE, worker
from tests.rl.read_only import read_only


def learner(*, first_order: bool = False, epochs: int = 2, lr: float = 1e-2) -> MAMLLearner:
    return MAMLLearner(POLICY, step_size=STEP_SIZE, first_order=first_order, epochs=epochs, lr=lr, seed=0)


def found(count: int = 3, steps: int = 1) -> list[TaskRollouts]:
    """Tasks of the weights of `learner`, as they arrive from another process."""
    one = worker()
    items: list[TaskRollouts] = []
    for _ in range(count):
        item = one.sample_task()
        for _ in range(steps):
            item = one.adapt(item)
        items.append(replace(item, rollouts=tuple(map(read_only, item.rollouts))))
    return items


def assert_identical(first: MAMLLearner, second: MAMLLearner) -> None:
    one, other = first.state(), second.state()
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


def test_an_update_reports_the_returns_before_and_after_and_the_episodes_after() -> None:
    items = found()
    report = learner().meta_update(items)
    before, after = (
        np.concatenate([item.rollouts[stage].episodes.returns for item in items]) for stage in (0, -1)
    )
    assert type(report) is Report
    assert report.metrics["return_before"] == pytest.approx(before.mean())
    assert report.metrics["return_after"] == pytest.approx(after.mean())
    assert report.episodes.returns.tolist() == after.tolist()
    assert report.steps == report.lifetime_steps == 3 * 2 * 40
    assert (report.version, report.metrics["policy_lag"], report.metrics["skipped_updates"]) == (1, 0, 0)
    assert all(np.isfinite(value) for value in report.metrics.values())


def test_the_learner_computes_the_policy_that_the_worker_acted_with() -> None:
    (item,) = found(count=1, steps=2)
    mine = learner()
    *explored, last = [Rollout.of(batch, torch.device("cpu")) for batch in item.rollouts]
    parameters = adapted(
        mine.policy, dict(mine.policy.named_parameters()), explored, STEP_SIZE, differentiable=True
    )
    torch.testing.assert_close(log_ratio(mine.policy, parameters, last), torch.zeros(40), rtol=0, atol=1e-5)


def test_the_first_epoch_is_on_policy() -> None:
    report = learner(epochs=1).meta_update(found())
    assert report.metrics["approx_kl"] == pytest.approx(0.0, abs=1e-6)
    assert report.metrics["clip_fraction"] == 0.0
    assert learner(epochs=5).meta_update(found()).metrics["approx_kl"] > 1e-4


def test_an_update_changes_what_the_actions_depend_on_and_nothing_else() -> None:
    mine = learner()
    before = mine.weights()
    mine.meta_update(found())
    after = mine.weights()
    changed = {
        name for name, array in after.parameters.items() if not np.array_equal(array, before.parameters[name])
    }
    assert changed == {name for name in after.parameters if not name.startswith("value_head")}
    assert (before.version, after.version) == (0, 1)


def test_a_later_update_of_old_tasks_has_a_lag() -> None:
    mine, items = learner(), found()
    mine.meta_update(items)
    report = mine.meta_update(items)
    assert (report.metrics["policy_lag"], report.version, report.lifetime_steps) == (1, 2, 480)


def test_the_order_of_the_tasks_does_not_matter_and_each_weighs_the_same() -> None:
    items = found()
    one, other = learner(epochs=1), learner(epochs=1)
    first, second = one.meta_update(items), other.meta_update(items[::-1])
    assert first.metrics["grad_norm"] == pytest.approx(second.metrics["grad_norm"], rel=1e-4)
    doubled = learner(epochs=1).meta_update([*items, *items])
    assert doubled.metrics["grad_norm"] == pytest.approx(first.metrics["grad_norm"], rel=1e-4)


def test_first_order_has_another_gradient_through_adaptation_and_the_same_without() -> None:
    for steps, same in ((1, False), (0, True)):
        items = found(steps=steps)
        norms = [
            learner(first_order=first_order, epochs=1).meta_update(items).metrics["grad_norm"]
            for first_order in (False, True)
        ]
        assert (norms[0] == pytest.approx(norms[1], rel=1e-6)) is same


def test_a_resumed_learner_makes_the_same_update_bit_for_bit() -> None:
    mine, items = learner(), found()
    mine.meta_update(items)
    resumed, twin = learner(), copy.deepcopy(mine)
    resumed.load_state(mine.state())
    for each in (mine, resumed, twin):
        each.meta_update(items)
    assert_identical(mine, resumed)
    assert_identical(mine, twin)


def test_a_gradient_that_is_not_finite_skips_the_step() -> None:
    items = found(count=1)
    broken = replace(items[0].rollouts[1], log_probs=np.full(40, np.nan, np.float32))
    mine = learner()
    before = mine.weights()
    report = mine.meta_update([replace(items[0], rollouts=(items[0].rollouts[0], broken))])
    assert report.metrics["skipped_updates"] == 2
    for name, array in mine.weights().parameters.items():
        np.testing.assert_array_equal(array, before.parameters[name])


def test_no_task_and_no_epoch_are_refused() -> None:
    with pytest.raises(ValueError, match="meta_update was given no task"):
        learner().meta_update([])
    with pytest.raises(ValueError, match="epochs must be at least 1, got 0"):
        learner(epochs=0)
