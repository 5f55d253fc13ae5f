"""Several streams at once: ``&`` and its policies, `zip`, `drain`, `fork` and `partition`."""

from __future__ import annotations

from typing import Never, assert_type

from pipeflow import Merged, ParallelStream, Sourced, Stream, drain, from_items, gather_sync, take
from tests.typing.domain import (
    Advantages,
    EvaluationWorker,
    Experience,
    Report,
    RolloutWorker,
    TDReport,
    Trajectories,
    Transitions,
    Weights,
    count,
    evaluators,
    gae,
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
    return from_items([report, report])


# Unions


def a_union_has_the_types_of_both() -> Merged[Trajectories | Advantages]:
    return assert_type(sampled() & (sampled() | gae()), Merged[Trajectories | Advantages])


def a_union_of_one_type_has_that_type() -> Merged[Trajectories]:
    return assert_type(sampled() & sampled(), Merged[Trajectories])


def a_union_of_three() -> Merged[Trajectories | Advantages | int]:
    merged = sampled() & (sampled() | gae()) & (sampled() | count)
    return assert_type(merged, Merged[Trajectories | Advantages | int])


def a_union_is_a_stream() -> Stream[Trajectories | Advantages]:
    return sampled() & (sampled() | gae())


def round_robin_keeps_the_type() -> Stream[Trajectories | Advantages]:
    merged = (sampled() & (sampled() | gae())).round_robin(2, 1)
    return assert_type(merged, Stream[Trajectories | Advantages])


def async_keeps_the_type() -> Stream[Trajectories | Advantages]:
    merged = (sampled() & (sampled() | gae())).async_()
    return assert_type(merged, Stream[Trajectories | Advantages])


def by_steps_keeps_the_type() -> Stream[Trajectories | Advantages]:
    merged = (sampled() & (sampled() | gae())).by_steps(2, 0.5)
    return assert_type(merged, Stream[Trajectories | Advantages])


def by_steps_forgets_a_drained_branch() -> Stream[Advantages]:
    return assert_type(((sampled() | drain) & (sampled() | gae())).by_steps(1, 1), Stream[Advantages])


def prioritised_keeps_the_type() -> Stream[Trajectories | Advantages]:
    return assert_type((sampled() & (sampled() | gae())).prioritised(), Stream[Trajectories | Advantages])


def zip_makes_pairs() -> Stream[tuple[Trajectories, int]]:
    return assert_type(sampled().zip(from_items([1, 2])), Stream[tuple[Trajectories, int]])


def zip_takes_a_union() -> Stream[tuple[Trajectories | Advantages, str]]:
    both = (sampled() & (sampled() | gae())).zip(from_items(["a", "b"]))
    return assert_type(both, Stream[tuple[Trajectories | Advantages, str]])


def zip_shows_the_sources_of_its_sides() -> Stream[tuple[Sourced[Trajectories, RolloutWorker], int]]:
    sourced = workers.produce(RolloutWorker.sample) | gather_sync().with_source()
    return assert_type(
        sourced.zip(from_items([1, 2])), Stream[tuple[Sourced[Trajectories, RolloutWorker], int]]
    )


def pairs_go_to_a_function_of_a_pair() -> Stream[int]:
    def total(pair: tuple[Experience, int]) -> int:
        return pair[0].steps + pair[1]

    return assert_type(sampled().zip(from_items([1, 2])) | total, Stream[int])


def a_stage_of_a_base_class_takes_a_union() -> Stream[int]:
    return assert_type((sampled() & (sampled() | gae())) | count, Stream[int])


def parallel_streams_join_their_items_and_their_classes() -> ParallelStream[
    Trajectories | Advantages, RolloutWorker | EvaluationWorker
]:
    both = rollouts & (evaluators.produce(EvaluationWorker.sample) | gae())
    return assert_type(both, ParallelStream[Trajectories | Advantages, RolloutWorker | EvaluationWorker])


# Draining


def drain_delivers_nothing() -> Stream[Never]:
    return assert_type(sampled() | take(2) | drain, Stream[Never])


def a_drained_branch_vanishes_from_a_union() -> Merged[Advantages]:
    return assert_type((sampled() | drain) & (sampled() | gae()), Merged[Advantages])


def a_drained_branch_vanishes_on_the_right_as_well() -> Merged[Advantages]:
    return assert_type((sampled() | gae()) & (sampled() | drain), Merged[Advantages])


def drained_branches_alone_deliver_nothing() -> Merged[Never]:
    finite = from_items([1, 2]) | drain
    return assert_type(finite & (from_items([3]) | drain), Merged[Never])


# Sharing


def fork_into_two() -> tuple[Stream[Trajectories], Stream[Trajectories]]:
    left, right = sampled().fork(2, buffer=4)
    assert_type(left, Stream[Trajectories])
    assert_type(right, Stream[Trajectories])
    return left, right


def fork_into_three() -> tuple[Stream[Trajectories], Stream[Trajectories], Stream[Trajectories]]:
    return assert_type(
        sampled().fork(3, buffer=4), tuple[Stream[Trajectories], Stream[Trajectories], Stream[Trajectories]]
    )


def fork_into_any_number() -> tuple[Stream[Trajectories], ...]:
    number = len("four")
    return assert_type(sampled().fork(number, buffer=4), tuple[Stream[Trajectories], ...])


def partition_keeps_the_type_on_both_sides() -> tuple[Stream[Trajectories], Stream[Trajectories]]:
    long, short = sampled().partition(long_enough, buffer=4)
    assert_type(long, Stream[Trajectories])
    return long, short


def partition_infers_the_parameter_of_a_lambda() -> tuple[Stream[Trajectories], Stream[Trajectories]]:
    return assert_type(
        sampled().partition(lambda batch: batch.steps > 3, buffer=4),
        tuple[Stream[Trajectories], Stream[Trajectories]],
    )


def partition_narrows_the_first_side_by_type_is() -> tuple[Stream[Report], Stream[Report | TDReport]]:
    held, others = reports().partition(is_report, buffer=4)
    assert_type(held, Stream[Report])
    assert_type(others, Stream[Report | TDReport])
    return held, others


def outlets_go_different_ways() -> Stream[Transitions | Advantages]:
    left, right = sampled().fork(2, buffer=4)
    return (left | transitions) & (right | gae())
