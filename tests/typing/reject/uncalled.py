"""What was not called, or is no stage at all, on the right of ``|``.

A class defines ``__ror__``, so ``stream | SomeClass`` would be a `types.UnionType` to a checker. The DSL makes it a
stream of items that may be a ``type``: the next stage, or the annotation of the result, is what refuses it.
"""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import Gather, Stream, batch, drain, flatten, gather_sync, take
from tests.typing.domain import (
    Advantages,
    PPOLearner,
    Report,
    RolloutWorker,
    Trajectories,
    count,
    gae,
    learner,
    loss_of,
    workers,
)

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


# Functions that make an operator


def gather_sync_uncalled() -> None:
    rollouts | gather_sync  # E: operator: Unsupported operand types for | ("ParallelStream[Trajectories, RolloutWorker]" and "Callable[[], Gather]")
    # R: gather_sync makes a stage and was not called: write gather_sync(...)


def batch_uncalled() -> None:
    sampled() | batch  # E: operator: ("Stream[Trajectories]" and "Callable[[int], Batch]")
    # R: batch makes a stage and was not called: write batch(...)


def flatten_uncalled() -> None:
    sampled() | flatten  # E: operator: ("Stream[Trajectories]" and "Callable[[], Flatten]")
    # R: flatten makes a stage and was not called: write flatten(...)


def gae_uncalled() -> None:
    sampled() | gae  # E: operator: ("Stream[Trajectories]" and "Callable[[float, float], Stage[Trajectories, Advantages]]")
    # R: gae


def gae_uncalled_and_nothing_more_is_reported_after_it() -> None:
    (
        rollouts  # P: reportOperatorIssue
        | gather_sync()
        | gae  # E: operator: ("Stream[Trajectories]" and "Callable[[float, float], Stage[Trajectories, Advantages]]")  # P: none
        # R: gae
        | learner.stage(PPOLearner.update)
    )


def a_stage_of_actors_uncalled() -> None:
    sampled() | learner.stage  # E: operator: ("Stream[Trajectories]" and "Callable[[Callable[[PPOLearner, A], B]], Placed[A, B, PPOLearner]]")
    # R: Actors.stage


def drain_called() -> None:
    sampled() | drain()  # E: operator: "Drain" not callable  # P: reportCallIssue
    # R: none, Python's own TypeError


# Classes


def a_class_before_a_stage() -> None:
    (  # P: reportOperatorIssue
        rollouts
        | gather_sync()
        | PPOLearner  # E: none  # P: none
        # R: the class PPOLearner stands on the right of | .. call it if it makes one, or write .map(PPOLearner)
        | learner.stage(PPOLearner.update)  # E: operator: Unsupported operand types for | ("Stream[Any | type]" and "Placed[Advantages, Report, PPOLearner]")  # P: none
    )


def a_class_of_just_the_type_that_the_next_stage_takes() -> None:
    sampled() | Advantages | learner.stage(PPOLearner.update)  # E: operator: ("Stream[Any | type]" and "Placed[Advantages, Report, PPOLearner]")
    # R: the class Advantages stands on the right of |


def a_class_before_a_function() -> None:
    sampled() | list | count  # E: operator: ("Stream[Any | type]" and "Callable[[Experience], int]")
    # R: the class list stands on the right of |


def a_class_inside_the_shards() -> None:
    rollouts | Advantages | gather_sync() | count  # E: operator: ("Stream[Any | type]" and "Callable[[Experience], int]")
    # R: the class Advantages stands on the right of |


def a_class_of_an_operator() -> None:
    rollouts | Gather | take(3) | loss_of  # E: operator: ("ParallelStream[Any | type, RolloutWorker]" and "Callable[[Report], float]")
    # R: the class Gather stands on the right of |


def a_class_at_the_end_of_an_annotated_plan() -> Stream[Report]:
    return sampled() | Report  # E: return-value: Incompatible return value type (got "Stream[Report | type]", expected "Stream[Report]")
    # R: the class Report stands on the right of |


def a_class_after_a_stage() -> None:
    gae() | PPOLearner | count  # E: operator: ("Stage[Trajectories, Any | type]" and "Callable[[Experience], int]")
    # R: count takes Experience, but advantages | PPOLearner .. makes PPOLearner


# Other things


def a_number() -> None:
    sampled() | 3  # E: operator: ("Stream[Trajectories]" and "int")
    # R: 3 is no stage: it is neither an operator nor a function of one item


def a_name() -> None:
    sampled() | "gae"  # E: operator: ("Stream[Trajectories]" and "str")
    # R: 'gae' is no stage


def nothing() -> None:
    sampled() | None  # E: operator: ("Stream[Trajectories]" and "None")
    # R: None is no stage


def actors_themselves() -> None:
    sampled() | learner  # E: operator: ("Stream[Trajectories]" and "Actors[PPOLearner]")
    # R: is no stage: it is neither an operator nor a function of one item


def a_stream_after_a_stream() -> None:
    sampled() | sampled()  # E: operator: ("Stream[Trajectories]" and "Stream[Trajectories]")
    # R: is no stage


def a_source_in_the_middle() -> None:
    sampled() | workers.produce(RolloutWorker.sample)  # E: operator: ("Stream[Trajectories]" and "ParallelStream[Trajectories, RolloutWorker]")
    # R: is no stage


def an_item_instead_of_a_stream() -> None:
    Trajectories(3) | gae()  # E: operator: Unsupported left operand type for | ("Trajectories")
    # R: none, neither operand is a stream; Python's own TypeError names both types
