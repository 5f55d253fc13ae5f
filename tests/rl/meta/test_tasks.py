"""Task distributions: a task is a function of its seed, within the ranges."""

from __future__ import annotations

import pytest

from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.meta.tasks import TaskDistribution

ENV = EnvSpec("Pendulum-v1", {"render_mode": None})
TASKS = TaskDistribution(ENV, {"g": (5.0, 15.0)})


def test_a_task_is_the_environment_with_arguments_within_the_ranges() -> None:
    drawn = [TASKS.sample(seed) for seed in range(100)]
    gravities = [task.kwargs["g"] for task in drawn]
    assert all(isinstance(g, float) and 5.0 <= g <= 15.0 for g in gravities)
    assert len(set(gravities)) == 100
    assert all((task.env, task.kwargs["render_mode"]) == ("Pendulum-v1", None) for task in drawn)
    assert "g" not in ENV.kwargs


def test_a_seed_is_a_task() -> None:
    assert TASKS.sample(3) == TASKS.sample(3) != TASKS.sample(4)


def test_the_order_of_the_ranges_does_not_matter() -> None:
    one, other = ({"a": (0.0, 1.0), "b": (2.0, 3.0)}, {"b": (2.0, 3.0), "a": (0.0, 1.0)})
    assert TaskDistribution(ENV, one).sample(0) == TaskDistribution(ENV, other).sample(0)


def test_a_task_can_be_stepped() -> None:
    assert TASKS.sample(0).make(2, seed=0).reset().shape == (2, 3)


def test_a_range_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"the range of g goes from 2\.0 to 1\.0; give the smaller one first"
    ):
        TaskDistribution(ENV, {"g": (2.0, 1.0)})
