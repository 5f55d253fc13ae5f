"""The worker of MAML: tasks and rollouts follow from seeds and weights alone, and each step adds one rollout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from pipeflow.rl.batches import Weights
from pipeflow.rl.meta.rollouts import TaskRollouts
from pipeflow.rl.meta.worker import MAMLWorker, check_adaptable
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.spaces import action_codec, observation_codec
from tests.rl.meta.families import ENV, POLICY, TASKS, worker
from tests.rl.saved_states import identical, over_disk


def assert_identical(first: TaskRollouts, second: TaskRollouts) -> None:
    assert (first.task, first.seed, first.version) == (second.task, second.seed, second.version)
    for one, other in zip(first.rollouts, second.rollouts, strict=True):
        np.testing.assert_array_equal(one.observations, other.observations)
        np.testing.assert_array_equal(one.actions, other.actions)
        np.testing.assert_array_equal(one.advantages, other.advantages)


def test_each_call_is_a_new_task_of_the_distribution() -> None:
    one = worker()
    first, second = one.sample_task(), one.sample_task()
    assert first.task == TASKS.sample(first.seed) != second.task == TASKS.sample(second.seed)
    assert len(first.rollouts) == 1
    assert first.steps == 4 * 10
    assert first.rollouts[0].episodes.count == 4 * 2


def test_workers_have_tasks_of_their_own_that_repeat_with_the_seed() -> None:
    assert worker(0).sample_task().task != worker(1).sample_task().task
    assert_identical(worker(1).sample_task(), worker(1).sample_task())


def test_adapting_adds_rollouts_of_the_same_task_and_leaves_the_others() -> None:
    one = worker()
    first = one.sample_task()
    twice = one.adapt(one.adapt(first))
    assert len(first.rollouts) == 1
    assert len(twice.rollouts) == 3
    assert twice.rollouts[0] is first.rollouts[0]
    assert (twice.task, twice.seed) == (first.task, first.seed)
    assert twice.steps == 3 * 40
    assert not np.array_equal(twice.rollouts[0].actions, twice.rollouts[1].actions)


def test_what_is_adapted_depends_on_the_rollouts_alone_and_not_on_what_was_done_between() -> None:
    one, other = worker(), worker()
    first = one.sample_task()
    one.adapt(one.sample_task())
    assert_identical(one.adapt(first), other.adapt(other.sample_task()))


def test_rollouts_after_adapting_are_of_the_adapted_policy() -> None:
    one = worker()
    first = one.sample_task()
    policy = POLICY.build(seed=0)
    policy.load_numpy(one.adapted(first).parameters)
    rows = one.adapt(first).rollouts[1]
    means = policy.greedy(rows.observations, np.zeros((len(rows.observations), 0), np.float32))[0]
    z = (rows.actions - means) / np.exp(one.adapted(first).parameters["log_std"])
    density = -0.5 * (z**2).sum(axis=1) - np.log(2 * np.pi) - one.adapted(first).parameters["log_std"].sum()
    np.testing.assert_allclose(rows.log_probs, density, rtol=1e-4)


def test_weights_are_what_the_next_task_begins_with() -> None:
    one = worker()
    given = Weights(5, POLICY.build(seed=9).parameters_numpy())
    one.set_weights(given)
    found = one.sample_task()
    assert found.version == found.rollouts[0].version == 5
    unadapted = one.adapted(TaskRollouts(found.task, found.seed, 5))
    for name, array in unadapted.parameters.items():
        np.testing.assert_array_equal(array, given.parameters[name])


def test_a_task_that_was_chosen_is_explored_as_a_drawn_one() -> None:
    drawn = worker().sample_task()
    assert_identical(worker().explore(drawn.task, drawn.seed), drawn)


def test_weights_that_arrive_within_a_task_are_refused() -> None:
    one = worker()
    found = one.sample_task()
    one.set_weights(Weights(1, POLICY.build(seed=9).parameters_numpy()))
    with pytest.raises(ValueError, match="rollouts of weights 0 cannot be adapted on with weights 1"):
        one.adapt(found)


def test_policies_that_cannot_be_adapted_are_refused() -> None:
    image = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    actions = action_codec(spaces.Discrete(2))
    for space in (image, spaces.Dict(position=spaces.Box(-1.0, 1.0, (2,)), view=image)):
        with pytest.raises(ValueError, match="these observations hold images"):
            check_adaptable(PolicySpec(observation_codec(space), actions))
    with pytest.raises(ValueError, match="a policy with memory cannot be adapted"):
        MAMLWorker(TASKS, replace(POLICY, memory="lstm", shared_trunk=True), index=0)
    check_adaptable(PolicySpec.for_env(ENV))


def test_a_loaded_worker_draws_the_tasks_that_the_saved_one_draws(tmp_path: Path) -> None:
    one, other = worker(), worker()
    one.set_weights(Weights(3, POLICY.build(seed=99).parameters_numpy()))
    found = one.sample_task()
    other.load_state(over_disk(one.state(), tmp_path))
    assert identical(one.adapt(found), other.adapt(found))
    assert identical([one.sample_task() for _ in range(2)], [other.sample_task() for _ in range(2)])


@pytest.mark.parametrize("group", ["version", "tasks_sampled", "parameters/"])
def test_no_part_of_a_state_can_be_left_out(group: str) -> None:
    one, other = worker(), worker()
    fresh = {name: value for name, value in other.state().items() if name.startswith(group)}
    one.set_weights(Weights(3, POLICY.build(seed=99).parameters_numpy()))
    one.sample_task()
    other.load_state({**one.state(), **fresh})
    assert not identical(one.sample_task(), other.sample_task())
