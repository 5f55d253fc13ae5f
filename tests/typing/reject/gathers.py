"""Sequencing: what is still in its shards, what is gathered already."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import (
    Stream,
    buffer,
    drain,
    gather_async,
    gather_rounds,
    gather_sync,
    max_lag,
    select_shards,
    sync_weights,
    tap,
    throttle,
    until,
)
from tests.typing.domain import (
    PPOLearner,
    RolloutWorker,
    Trajectories,
    count,
    gae,
    learner,
    long_enough,
    workers,
)

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


def gathering_twice() -> None:
    rollouts | gather_sync() | gather_sync()  # E: operator: Unsupported operand types for | ("Stream[Trajectories]" and "Gather")
    # R: <Gather gather_sync()> takes a ParallelStream, but <Stream[Trajectories] .. is gathered already


def gathering_a_stream_with_sources() -> None:
    sampled() | gather_async(2).with_source()  # E: operator: ("Stream[Trajectories]" and "SourcedGather")
    # R: takes a ParallelStream .. is gathered already


def gathering_a_stream_in_rounds() -> None:
    sampled() | gather_rounds()  # E: operator: ("Stream[Trajectories]" and "GatherRounds")
    # R: takes a ParallelStream .. is gathered already


def a_stage_of_other_actors_without_a_gather() -> None:
    (  # P: reportOperatorIssue
        rollouts
        | gae()
        | learner.stage(PPOLearner.update)  # E: operator: ("ParallelStream[Advantages, RolloutWorker]" and "Placed[Advantages, Report, PPOLearner]")  # P: none
        # R: stage(PPOLearner.update) runs in PPOLearner .. but the shards of .. are in other actors, RolloutWorker .. gather them first
    )


def draining_shards() -> None:
    rollouts | drain  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Drain")
    # R: <Drain drain> takes a Stream, but <ParallelStream[Trajectories] .. is still in its shards; gather it first


def tapping_shards() -> None:
    rollouts | tap(count)  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Tap[Experience]")
    # R: takes a Stream .. is still in its shards


def ending_shards() -> None:
    rollouts | until(long_enough)  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Until[Experience]")
    # R: takes a Stream .. is still in its shards


def sending_from_shards() -> None:
    rollouts | gae() | learner.send(PPOLearner.update)  # E: operator: ("ParallelStream[Advantages, RolloutWorker]" and "Send[Advantages]")
    # R: takes a Stream .. is still in its shards


def weights_from_shards() -> None:
    rollouts | sync_weights(learner, workers)  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "SyncWeights")
    # R: takes a Stream .. is still in its shards


def the_lag_of_shards() -> None:
    rollouts | max_lag(1)  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "MaxLag")
    # R: takes a Stream .. is still in its shards


def a_buffer_in_the_shards() -> None:
    rollouts | buffer(2)  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Buffer")
    # R: takes a Stream .. is still in its shards


def the_pace_of_shards() -> None:
    rollouts | throttle(0.5)  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Pace")
    # R: takes a Stream .. is still in its shards


def scattering_shards() -> None:
    rollouts | workers.scatter()  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Scatter[RolloutWorker]")
    # R: takes a Stream .. is still in its shards


def the_shards_of_a_stream() -> None:
    sampled() | select_shards(0)  # E: operator: ("Stream[Trajectories]" and "SelectShards")
    # R: takes a ParallelStream .. is gathered already


def scattered_to_the_actors_of_another_class() -> None:
    (  # P: reportOperatorIssue
        sampled()
        | workers.broadcast()
        | learner.stage(PPOLearner.update_vtrace)  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Placed[Trajectories, Report, PPOLearner]")  # P: none
        # R: runs in PPOLearner .. but the shards of .. are in other actors, RolloutWorker .. gather them first
    )


def tap_as_a_method_of_shards() -> None:
    rollouts.tap(count)  # E: attr-defined: "ParallelStream[Trajectories, RolloutWorker]" has no attribute "tap"
    # R: none, Python's own AttributeError


def running_shards() -> None:
    rollouts.run()  # E: attr-defined: "ParallelStream[Trajectories, RolloutWorker]" has no attribute "run"
    # R: none, Python's own AttributeError


def forking_shards() -> None:
    rollouts.fork(2, buffer=1)  # E: attr-defined: "ParallelStream[Trajectories, RolloutWorker]" has no attribute "fork"
    # R: none, Python's own AttributeError


def iterating_over_shards() -> None:
    for _ in rollouts:  # E: attr-defined: "ParallelStream[Trajectories, RolloutWorker]" has no attribute "__iter__" (not iterable)  # P: reportGeneralTypeIssues
        # R: ParallelStream[Trajectories] is a description and cannot be iterated; gather it first
        pass


def iterating_over_a_plan() -> None:
    for _ in sampled():  # E: attr-defined: "Stream[Trajectories]" has no attribute "__iter__" (not iterable)  # P: reportGeneralTypeIssues
        # R: Stream[Trajectories] is a description and cannot be iterated; iterate over .run(...)
        pass


def the_length_of_a_plan() -> None:
    len(sampled())  # E: arg-type: Argument 1 to "len" has incompatible type "Stream[Trajectories]"; expected "Sized"
    # R: none, Python's own TypeError


def a_run_ahead_that_is_no_number() -> None:
    gather_async("2")  # E: arg-type: Argument 1 to "gather_async" has incompatible type "str"; expected "int"
    # R: none, Python's own TypeError
