"""Actors are described, named and found; nothing of them starts here."""

from __future__ import annotations

import functools
import math
import re

import pytest

from pipeflow.dsl import Actors, actors, current_shard, from_items, gather_sync, group_of
from pipeflow.dsl.nodes import Place
from pipeflow.dsl.signals import enter_shard, leave_shard
from pipeflow.dsl.trees import groups_of


class Worker:
    def __init__(self, speed: int, *, name: str = "w") -> None:
        self.speed = speed
        self.name = name

    def work(self, number: int) -> int:
        return number * self.speed

    def number(self) -> int:
        return self.speed


class FastWorker(Worker):
    pass


class Other:
    def note(self, number: int) -> int:
        return number


def test_a_group_keeps_what_its_actors_are_made_of() -> None:
    group = actors(Worker, 3, 7, name="x").group
    assert (group.factory, group.count, group.args, dict(group.kwargs)) == (Worker, 3, (7,), {"name": "x"})
    assert group.name == "Worker"
    assert group.resources == {}


def test_all_actors_get_the_same_arguments_and_an_index_of_their_own() -> None:
    class Indexed:
        def __init__(self, start: int) -> None:
            self._made = start + current_shard()

        def number(self) -> int:
            return self._made

    run = (actors(Indexed, 3, 10).produce(Indexed.number) | gather_sync()).run()
    assert [next(run), next(run), next(run)] == [10, 11, 12]
    run.close()


def test_the_index_is_zero_outside_a_run() -> None:
    assert current_shard() == 0
    token = enter_shard(4)
    assert current_shard() == 4
    leave_shard(token)
    assert current_shard() == 0


def test_actors_may_be_made_by_a_function() -> None:
    make = functools.partial(Worker, 5)
    workers = actors(make, 1)
    assert workers.group.name == "Worker"
    assert list((from_items([2]) | workers.stage(Worker.work)).run()) == [10]


def test_names_and_resources_are_the_user_s() -> None:
    workers = actors(Worker, 1, 2).named("left").resources(cpus=0.5, gpus=1, accelerator_memory=3)
    assert workers.group.name == "left"
    assert workers.group.resources == {"CPU": 0.5, "GPU": 1, "accelerator_memory": 3}
    assert workers.stage(Worker.work).name == "left.stage(Worker.work)"


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({"cpus": -1}, "resources(cpus=...) must be at least 0 and finite, got -1"),
        ({"gpus": math.inf}, "resources(gpus=...) must be at least 0 and finite, got inf"),
        ({"learner": math.nan}, "resources(learner=...) must be at least 0 and finite, got nan"),
        ({"gpus": 1.5}, "resources(gpus=...) must be below 1 or a whole number, got 1.5"),
        ({"GPU": 1}, "resources(GPU=...) is written resources(gpus=...)"),
        ({"memory": 1}, "resources(memory=...) cannot be reserved; reserve what the nodes declare by name"),
    ],
)
def test_what_nobody_can_reserve_is_refused(amounts: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        actors(Worker, 1, 2).resources(**amounts)


def test_a_placement_is_of_the_group_and_one_of_two() -> None:
    workers = actors(Worker, 2, 1)
    assert workers.group.placement is None
    assert workers.placement("spread").placement("pack").group.placement == "pack"
    with pytest.raises(ValueError, match=r"^placement\(strategy\) must be one of spread, pack, got 'wide'$"):
        workers.placement("wide")  # type: ignore[arg-type]  # as a program without types may


def test_in_one_process_a_placement_means_nothing() -> None:
    workers = actors(Worker, 2, 7).placement("spread").resources(gpus=8)
    with (workers.produce(Worker.number) | gather_sync()).run() as run:
        assert [next(run), next(run)] == [7, 7]


def test_the_default_is_one_item_in_flight_and_the_order_of_the_input() -> None:
    workers = actors(Worker, 2, 1)
    plain = (from_items([1]) | workers.stage(Worker.work)).node
    wide = (from_items([1]) | workers.stage(Worker.work).max_in_flight(4).unordered()).node
    assert isinstance(plain, Place)
    assert isinstance(wide, Place)
    assert (plain.max_in_flight, plain.ordered) == (1, True)
    assert (wide.max_in_flight, wide.ordered) == (4, False)


def test_the_one_group_of_a_class_is_found_in_a_plan() -> None:
    fast, other = actors(FastWorker, 1, 2), actors(Other, 1)
    plan = fast.produce(Worker.number) | gather_sync() | other.stage(Other.note)
    found: Actors[Worker] = group_of(plan, Worker)  # of a parent class too
    assert found == fast
    assert group_of(plan, Other) == other
    with plan.run() as run:
        assert next(run) == 2
        assert run.ask(found, Worker.number) == [2]


def test_a_group_that_is_not_there_or_not_the_only_one_is_refused_with_those_there_are() -> None:
    plan = (
        from_items([1])
        | actors(Worker, 1, 1).stage(Worker.work)
        | actors(FastWorker, 1, 1).stage(Worker.work)
    )
    with pytest.raises(
        LookupError, match=r"^the plan has 2 groups of Worker; its groups are: Worker, FastWorker$"
    ):
        group_of(plan, Worker)
    with pytest.raises(LookupError, match=r"^the plan has 0 groups of Other; its groups are: none$"):
        group_of(from_items([1]), Other)


def test_groups_are_listed_once_in_the_order_of_the_data() -> None:
    first, second = actors(Worker, 1, 1), actors(Other, 1)
    plan = (
        first.produce(Worker.number)
        | first.stage(Worker.work)
        | gather_sync()
        | second.stage(Other.note)
        | first.stage(Worker.work)
    )
    assert groups_of(plan.node) == (first.group, second.group)
