"""Operators that keep the item's type: `take`, `every`, `tap`, `until`, `filter`, and those that pace a stream."""

from __future__ import annotations

from typing import assert_type

from pipeflow import (
    Gate,
    HasSteps,
    ParallelStream,
    Sourced,
    Stream,
    buffer,
    every,
    every_seconds,
    from_items,
    gather_async,
    gather_sync,
    once_per_steps,
    take,
    tap,
    throttle,
    until,
)
from tests.typing.domain import (
    Report,
    RolloutWorker,
    TDReport,
    Trajectories,
    Weights,
    count,
    is_report,
    long_enough,
    transitions,
    workers,
)

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


def reports() -> Stream[Report | TDReport]:
    report: Report | TDReport = Report(0.5, Weights(1))
    return from_items([report])


def take_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | take(2), Stream[Trajectories])


def take_keeps_the_type_inside_the_shards() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(rollouts | take(2), ParallelStream[Trajectories, RolloutWorker])


def every_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | every(2), Stream[Trajectories])


def every_keeps_the_type_inside_the_shards() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(rollouts | every(2), ParallelStream[Trajectories, RolloutWorker])


def a_gate_has_no_type_of_items() -> Gate:
    return assert_type(take(2).named("two"), Gate)


def tap_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | tap(transitions), Stream[Trajectories])


def tap_with_a_function_of_a_base_class_does_not_widen_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | tap(count), Stream[Trajectories])


def tap_on_a_union_gives_a_stream() -> Stream[Trajectories]:
    return assert_type((sampled() & sampled()) | tap(count), Stream[Trajectories])


def tap_takes_a_function_of_anything() -> Stream[Trajectories]:
    seen: list[object] = []
    return assert_type(sampled() | tap(seen.append), Stream[Trajectories])


def tap_as_a_method_infers_the_parameter_of_a_lambda() -> Stream[Trajectories]:
    seen: list[int] = []
    return assert_type(sampled().tap(lambda batch: seen.append(batch.steps)), Stream[Trajectories])


def until_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | until(long_enough), Stream[Trajectories])


def until_as_a_method_infers_the_parameter_of_a_lambda() -> Stream[Trajectories]:
    return assert_type(sampled().until(lambda batch: batch.steps > 3), Stream[Trajectories])


def filter_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled().filter(long_enough), Stream[Trajectories])


def filter_keeps_the_type_inside_the_shards() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(rollouts.filter(long_enough), ParallelStream[Trajectories, RolloutWorker])


def filter_infers_the_parameter_of_a_lambda() -> Stream[Trajectories]:
    return assert_type(sampled().filter(lambda batch: batch.steps > 3), Stream[Trajectories])


def filter_takes_a_class_that_tells_truth() -> Stream[int]:
    return assert_type(from_items([0, 1]).filter(bool), Stream[int])


def filter_narrows_by_type_is() -> Stream[Report]:
    return assert_type(reports().filter(is_report), Stream[Report])


def filter_narrows_inside_the_shards() -> ParallelStream[Report, RolloutWorker]:
    def reported(batch: Trajectories) -> Report | TDReport:
        return Report(float(batch.steps), Weights(0))

    return assert_type((rollouts | reported).filter(is_report), ParallelStream[Report, RolloutWorker])


# By steps and by the clock


def once_per_steps_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | once_per_steps(16), Stream[Trajectories])


def once_per_steps_keeps_the_type_inside_the_shards() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(rollouts | once_per_steps(16), ParallelStream[Trajectories, RolloutWorker])


def a_batch_has_steps() -> HasSteps:
    return Trajectories(3)


def every_seconds_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | every_seconds(0.001), Stream[Trajectories])


def throttle_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | throttle(0.001), Stream[Trajectories])


def buffer_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | buffer(2), Stream[Trajectories])


def pacing_keeps_the_source() -> Stream[Sourced[Trajectories, RolloutWorker]]:
    sourced = rollouts | gather_async().with_source()
    paced = sourced | buffer(2) | throttle(0.001) | every_seconds(0.001)
    return assert_type(paced, Stream[Sourced[Trajectories, RolloutWorker]])
