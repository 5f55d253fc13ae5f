"""Actors: their constructor's arguments, and methods of another class."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import Stream, actors, gather_sync
from tests.typing.domain import (
    Advantages,
    DQNLearner,
    PPOLearner,
    Replay,
    RolloutWorker,
    Trajectories,
    gae,
    learner,
    workers,
)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


# Descriptions


def an_argument_is_missing() -> None:
    actors(RolloutWorker, 2)  # E: call-arg: Missing positional argument "seed" in call to "actors"
    # R: none, the constructor is first called when a run starts


def an_argument_of_another_type() -> None:
    actors(RolloutWorker, 2, "seven")  # E: arg-type: Argument 3 to "actors" has incompatible type "str"; expected "int"
    # R: none, the constructor is first called when a run starts


def a_keyword_of_another_type() -> None:
    actors(RolloutWorker, 2, 7, steps="3")  # E: arg-type: Argument "steps" to "actors" has incompatible type "str"; expected "int"
    # R: none, the constructor is first called when a run starts


def a_keyword_misspelt() -> None:
    actors(RolloutWorker, 2, 7, step=3)  # E: call-arg: Unexpected keyword argument "step" for "actors"; did you mean "steps"?
    # W: mypy adds where "actors" is defined
    # R: none, the constructor is first called when a run starts


def an_argument_too_many() -> None:
    actors(RolloutWorker, 2, 7, 3)  # E: call-arg: Too many positional arguments for "actors"
    # W: mypy adds where "actors" is defined
    # R: none, the constructor is first called when a run starts


def the_count_and_an_argument_swapped() -> None:
    actors(PPOLearner, 3e-4, 1)  # E: arg-type: Argument 2 to "actors" has incompatible type "float"; expected "int"
    # R: none, the constructor is first called when a run starts


# Repeating


def a_stage_that_makes_another_type_repeated() -> None:
    sampled() | gae() | learner.stage(PPOLearner.update).repeat(2)  # E: operator: ("Stream[Advantages]" and "Placed[Never, Never, PPOLearner]")  # P: reportAttributeAccessIssue
    # R: stage(PPOLearner.update) takes Advantages, but PPOLearner.stage(PPOLearner.update) 1/2 .. delivers Report; put a stage between


def a_repeated_stage_that_takes_another_type() -> None:
    sampled() | gae() | workers.stage(RolloutWorker.adapt).repeat(2)  # E: operator: ("Stream[Advantages]" and "Placed[Trajectories, Trajectories, RolloutWorker]")
    # R: stage(RolloutWorker.adapt) takes Trajectories .. delivers Advantages


# Methods of another class


def produce_with_a_method_of_another_class() -> None:
    workers.produce(Replay.sample)  # E: arg-type: Argument 1 to "produce" of "Actors" has incompatible type "Callable[[Replay], Transitions | NotReady]"; expected "Callable[[RolloutWorker],
    # R: Replay.sample is a method of Replay .. are actors of RolloutWorker; pass a method of RolloutWorker
    # W: both signatures in full, with what a source may return


def stage_with_a_method_of_another_class() -> None:
    workers.stage(PPOLearner.update)  # E: arg-type: Argument 1 to "stage" of "Actors" has incompatible type "Callable[[PPOLearner, Advantages], Report]"; expected "Callable[[RolloutWorker, Advantages], Report]"
    # R: PPOLearner.update is a method of PPOLearner .. are actors of RolloutWorker


def send_with_a_method_of_another_class() -> None:
    workers.send(Replay.update_priorities)  # E: arg-type: Argument 1 to "send" of "Actors" has incompatible type "Callable[[Replay, Priorities], None]"; expected "Callable[[RolloutWorker, Priorities], object]"
    # R: Replay.update_priorities is a method of Replay .. are actors of RolloutWorker


def a_method_of_a_subclass() -> None:
    def measured(worker: DQNLearner, batch: Advantages) -> int:
        return batch.steps

    learner.stage(measured)  # E: arg-type: Argument 1 to "stage" of "Actors" has incompatible type "Callable[[DQNLearner, Advantages], int]"; expected "Callable[[PPOLearner, Advantages], int]"
    # R: none, the class of the first parameter is only known of methods


def produce_with_a_method_that_takes_an_item() -> None:
    workers.produce(RolloutWorker.gradients)  # E: arg-type: Argument 1 to "produce" of "Actors" has incompatible type "Callable[[RolloutWorker, Advantages], Gradients]"; expected "Callable[[RolloutWorker],
    # R: none, how many parameters a method takes is not looked at before it is called
    # W: both signatures in full, with what a source may return


def a_bound_method() -> None:
    learner.stage(learner.update)  # E: attr-defined: "Actors[PPOLearner]" has no attribute "update"
    # R: none, Python's own AttributeError


def a_placed_stage_called() -> None:
    learner.stage(PPOLearner.update)(Advantages(3))  # E: operator: "Placed[Advantages, Report, PPOLearner]" not callable  # P: reportCallIssue
    # R: none, Python's own TypeError


def asking_with_a_method_of_another_class() -> None:
    plan = sampled() | gae() | learner.stage(PPOLearner.update)
    plan.run().ask(learner, RolloutWorker.sample)  # E: arg-type: Argument 2 to "ask" of "Run" has incompatible type "Callable[[RolloutWorker], Trajectories]"; expected "Callable[[PPOLearner], Trajectories]"
    # R: none, a run is no plan


# Actors where a stream is meant


def producing_forgotten() -> None:
    workers | gae() | gather_sync()  # E: operator: Unsupported left operand type for | ("Actors[RolloutWorker]")
    # R: none, neither operand is a stream; Python's own TypeError names both types
