"""Several streams at once: unions that do not join, branches that do not fit, outlets that do not match."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import Stream, gather_sync
from tests.typing.domain import (
    PPOLearner,
    Replay,
    Report,
    RolloutWorker,
    Trajectories,
    count,
    gae,
    is_report,
    learner,
    loss_of,
    replay,
    transitions,
    workers,
)

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


# Unions


def branches_without_parentheses() -> None:
    rollouts | gather_sync() & rollouts | gather_sync()  # E: operator: Unsupported left operand type for & ("Gather")
    # R: & binds tighter than |, so each branch of a union stands in parentheses


def a_union_without_parentheses() -> None:
    sampled() & sampled().by_steps(1, 4)  # E: attr-defined: "Stream[Trajectories]" has no attribute "by_steps"
    # R: by_steps says how a union is served, and gather_sync() .. is none; put the union in parentheses


def shards_and_a_stream() -> None:
    rollouts & sampled()  # E: operator: Unsupported operand types for & ("ParallelStream[Trajectories, RolloutWorker]" and "Stream[Trajectories]")
    # R: gather the shards first, or join two parallel streams


def a_stream_and_shards() -> None:
    sampled() & rollouts  # E: operator: ("Stream[Trajectories]" and "ParallelStream[Trajectories, RolloutWorker]")
    # R: gather the shards first, or join two parallel streams


def a_stream_and_a_function() -> None:
    sampled() & loss_of  # E: operator: ("Stream[Trajectories]" and "Callable[[Report], float]")
    # R: & joins two streams; did you mean | ?


def a_union_where_one_branch_is_taken() -> None:
    (sampled() & (sampled() | transitions)) | gae()  # E: operator: ("Merged[Trajectories | Transitions]" and "Stage[Trajectories, Advantages]")
    # R: takes Trajectories .. delivers Trajectories | Transitions


def a_union_where_one_branch_is_learnt_from() -> None:
    (  # P: reportOperatorIssue
        ((sampled() | gae()) & sampled())
        | learner.stage(PPOLearner.update)  # E: operator: ("Merged[Advantages | Trajectories]" and "Placed[Advantages, Report, PPOLearner]")  # P: none
        # R: stage(PPOLearner.update) takes Advantages .. delivers Advantages | Trajectories
    )


def a_branch_that_was_not_drained() -> Stream[Report]:
    stored = sampled() | transitions | replay.stage(Replay.add)
    updates = sampled() | gae() | learner.stage(PPOLearner.update)
    return stored & updates  # E: return-value: Incompatible return value type (got "Merged[int | Report]", expected "Stream[Report]")
    # R: none, a return annotation is the checker's alone


def round_robin_of_one_stream() -> None:
    sampled().round_robin(1, 2)  # E: attr-defined: "Stream[Trajectories]" has no attribute "round_robin"
    # R: none, Python's own AttributeError


def weights_that_are_no_counts() -> None:
    (sampled() & sampled()).round_robin(0.5, 2)  # E: arg-type: Argument 1 to "round_robin" of "Merged" has incompatible type "float"; expected "int"
    # R: none, a ValueError: weights below 1


def steps_of_what_has_none() -> None:
    (sampled() & (sampled() | count)).by_steps(1, 2)  # E: misc: Invalid self argument "Merged[Trajectories | int]" to attribute function "by_steps"  # P: reportAttributeAccessIssue
    # W: mypy shows the signature
    # R: by_steps counts the steps of items, but count .. delivers int, which has none; put a stage before it that makes batches


def steps_of_one_stream() -> None:
    sampled().by_steps(1, 2)  # E: attr-defined: "Stream[Trajectories]" has no attribute "by_steps"
    # R: none, Python's own AttributeError


def steps_in_words() -> None:
    (sampled() & sampled()).by_steps("1", 2)  # E: arg-type: Argument 1 to "by_steps" of "Merged" has incompatible type "str"; expected "float"
    # R: none, Python's own TypeError


def weights_of_priorities() -> None:
    (sampled() & sampled()).prioritised(2, 1)  # E: call-arg: Too many arguments for "prioritised" of "Merged"
    # R: none, Python's own TypeError


# Pairs


def a_pair_with_shards() -> None:
    sampled().zip(rollouts)  # E: arg-type: Argument 1 to "zip" of "Stream" has incompatible type "ParallelStream[Trajectories, RolloutWorker]"; expected "Stream[Any]"
    # R: zip takes another Stream, not <ParallelStream[Trajectories] .. shards are to be gathered first


def a_pair_of_shards() -> None:
    rollouts.zip(rollouts)  # E: attr-defined: "ParallelStream[Trajectories, RolloutWorker]" has no attribute "zip"
    # R: none, Python's own AttributeError


def a_pair_where_one_is_taken() -> None:
    sampled().zip(sampled() | count) | gae()  # E: operator: ("Stream[tuple[Trajectories, int]]" and "Stage[Trajectories, Advantages]")
    # R: takes Trajectories .. delivers tuple[Trajectories, int]


# Outlets


def two_names_for_three_outlets() -> None:
    _left, _right = sampled().fork(3, buffer=1)  # E: misc: Too many values to unpack (2 expected, 3 provided)  # P: reportAssignmentType
    # R: none, Python's own ValueError


def three_names_for_two_outlets() -> None:
    _left, _right, _rest = sampled().fork(2, buffer=1)  # E: misc: Need more than 2 values to unpack (3 expected)  # P: reportAssignmentType
    # R: none, Python's own ValueError


def a_fork_without_a_bound() -> None:
    sampled().fork(2)  # E: call-overload: No overload variant of "fork" of "Stream" matches argument type "int"
    # W: the notes are the three signatures, one for each number of outlets
    # R: none, Python's own TypeError


def partition_with_a_function_of_another_type() -> None:
    sampled().partition(is_report, buffer=1)  # E: arg-type: Argument 1 to "partition" of "Stream" has incompatible type "Callable[[Report | TDReport], TypeIs[Report]]"; expected "Callable[[Trajectories],  # P: reportCallIssue, reportArgumentType
    # R: partition(is_report) takes Report | TDReport .. delivers Trajectories
