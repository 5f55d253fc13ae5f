"""Stages before they meet a stream: compositions that do not fit, and operators that do not compose."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import batch, expand, from_items, from_shards, gather_sync, stage, take
from tests.typing.domain import (
    PPOLearner,
    Trajectories,
    count,
    gae,
    learner,
    loss_of,
    standardise,
)


def a_stage_after_itself() -> None:
    gae() | gae()  # E: operator: Unsupported operand types for | ("Stage[Trajectories, Advantages]" and "Stage[Trajectories, Advantages]")
    # R: advantages takes Trajectories, but advantages (tests/typing/domain.py: .. makes Advantages


def a_function_that_does_not_fit_two_stages() -> None:
    gae() | standardise | loss_of  # E: operator: ("Stage[Trajectories, StandardisedAdvantages]" and "Callable[[Report], float]")
    # R: loss_of takes Report, but advantages | standardise (tests/typing/reject/stages.py: .. makes StandardisedAdvantages


def a_composition_that_does_not_fit_the_stream() -> None:
    from_items([1, 2]) | (gae() | standardise)  # E: operator: ("Stream[int]" and "Stage[Trajectories, StandardisedAdvantages]")
    # R: takes Trajectories .. delivers int


def a_placed_stage_after_a_stage() -> None:
    gae() | learner.stage(PPOLearner.update)  # E: operator: ("Stage[Trajectories, Advantages]" and "Placed[Advantages, Report, PPOLearner]")
    # R: stage(PPOLearner.update)> acts on a stream, and <Stage advantages> is none


def a_gather_after_a_stage() -> None:
    gae() | gather_sync()  # E: operator: ("Stage[Trajectories, Advantages]" and "Gather")
    # R: <Gather gather_sync()> acts on a stream, and <Stage advantages> is none


def an_operator_that_starts_a_composition() -> None:
    batch(3) | count  # E: operator: Unsupported left operand type for | ("Batch")
    # R: a chain starts with a stream


def two_operators() -> None:
    take(3) | batch(3)  # E: operator: No overload variant of "__ror__" of "Batch" matches argument type "Gate"
    # W: neither side is a stream, so mypy shows what the right one takes
    # R: a chain starts with a stream


def a_stage_called_with_another_type() -> None:
    stage(loss_of)(Trajectories(3))  # E: arg-type: Argument 1 to "__call__" of "Stage" has incompatible type "Trajectories"; expected "Report"
    # R: none, calling a stage is calling its function


def a_stage_of_what_is_no_function() -> None:
    stage(3)  # E: arg-type: Argument 1 to "stage" has incompatible type "int"; expected "Callable[[Never], Never]"
    # R: none, first seen when it meets a stream


def expand_of_what_makes_no_state() -> None:
    expand(gae)  # E: arg-type: Argument 1 to "expand" has incompatible type "Callable[[float, float], Stage[Trajectories, Advantages]]"; expected "Callable[[], ExpansionOf[Never, Never]]"
    # R: none, the state is first made when a run starts


def a_source_of_what_is_no_iterable() -> None:
    from_items(3)  # E: arg-type: Argument 1 to "from_items" has incompatible type "int"; expected "Iterable[Never]"
    # R: none, read when a run starts


def shards_of_what_are_no_iterables() -> None:
    from_shards([1, 2])  # E: arg-type: Argument 1 to "from_shards" has incompatible type "list[int]"; expected "Iterable[Iterable[Never]]"  # P: reportArgumentType
    # R: none, read when a run starts
