"""A run: its items have the type of the plan's; names and pictures change no type."""

from __future__ import annotations

from typing import assert_type

from pipeflow import ParallelStream, Stream, current_shard, from_items, gather_sync
from pipeflow.lowering.run import Run
from pipeflow.lowering.stepping import Step
from tests.typing.domain import RolloutWorker, Trajectories, count, workers

rollouts = workers.produce(RolloutWorker.sample)


def a_run_delivers_items_of_the_plans_type() -> None:
    def half(x: int) -> float:
        return x / 2

    with (from_items([1, 2]) | half).run() as run:
        assert_type(run, Run[float])
        for item in run:
            assert_type(item, float)


def a_step_has_an_item_of_the_plans_type() -> None:
    step = from_items([1, 2]).run().step()
    assert_type(step, Step[int] | None)
    if step:
        assert_type(step.item, int)


def a_run_takes_the_name_of_an_engine() -> None:
    assert_type(list((rollouts | gather_sync() | count).until(bool).run("inline")), list[int])


def a_stream_keeps_its_type_under_another_name() -> Stream[int]:
    return assert_type(from_items([1]).named("ones"), Stream[int])


def a_parallel_stream_keeps_its_type_under_another_name() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(rollouts.named("sampled"), ParallelStream[Trajectories, RolloutWorker])


def a_plan_can_be_shown() -> None:
    plan = rollouts | gather_sync()
    assert_type(plan.explain(), str)
    assert_type(plan.to_mermaid(), str)


def a_shard_knows_its_number() -> ParallelStream[int, RolloutWorker]:
    def shard(_: Trajectories) -> int:
        return current_shard()

    return assert_type(rollouts | shard, ParallelStream[int, RolloutWorker])
