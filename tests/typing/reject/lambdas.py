"""Lambdas: attributes that an item does not have, reported inside of the lambda, and places without a type for it."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import Stream, flat_map, gather_async, gather_sync, tap
from tests.typing.domain import Report, RolloutWorker, TDReport, Trajectories, workers

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


def in_map() -> None:
    sampled().map(lambda batch: batch.reward)  # E: attr-defined: "Trajectories" has no attribute "reward"
    # R: none, a lambda's body is first seen when it is called


def in_map_inside_the_shards() -> None:
    rollouts.map(lambda batch: batch.reward)  # E: attr-defined: "Trajectories" has no attribute "reward"
    # R: none, a lambda's body is first seen when it is called


def in_a_chain_of_maps() -> None:
    sampled().map(lambda batch: batch.steps).map(lambda steps: steps.reward)  # E: attr-defined: "int" has no attribute "reward"
    # R: none, a lambda's body is first seen when it is called


def after_a_bar() -> None:
    sampled() | (lambda batch: batch.reward)  # E: attr-defined: "Trajectories" has no attribute "reward"  # P: none
    # R: none, a lambda's body is first seen when it is called


def inside_of_tap() -> None:
    sampled() | tap(lambda batch: batch.steps)  # E: operator: ("Stream[Trajectories]" and "Tap[Never]")  # P: reportAttributeAccessIssue
    # R: none, it is right but for the checkers, who know the type of a lambda's parameter in .tap(...)


def inside_of_flat_map() -> None:
    sampled() | flat_map(lambda batch: [batch.steps])  # E: operator: ("Stream[Trajectories]" and "Expand[Never, Any]")  # P: reportAttributeAccessIssue
    # R: none, it is right but for the checkers, who need a function with annotations here


def in_filter() -> None:
    sampled().filter(lambda batch: batch.reward > 0)  # E: attr-defined: "Trajectories" has no attribute "reward"
    # R: none, a lambda's body is first seen when it is called


def in_filter_inside_the_shards() -> None:
    rollouts.filter(lambda batch: batch.reward > 0)  # E: attr-defined: "Trajectories" has no attribute "reward"
    # R: none, a lambda's body is first seen when it is called


def in_partition() -> None:
    sampled().partition(lambda batch: batch.reward > 0, buffer=1)  # E: attr-defined: "Trajectories" has no attribute "reward"
    # R: none, a lambda's body is first seen when it is called


def in_until() -> None:
    sampled().until(lambda batch: batch.reward > 0)  # E: attr-defined: "Trajectories" has no attribute "reward"
    # R: none, a lambda's body is first seen when it is called


def in_tap() -> None:
    seen: list[int] = []
    sampled().tap(lambda batch: seen.append(batch.reward))  # E: attr-defined: "Trajectories" has no attribute "reward"
    # R: none, a lambda's body is first seen when it is called


def of_one_member_of_a_union(reports: Stream[Report | TDReport]) -> None:
    reports.map(lambda report: report.loss)  # E: union-attr: Item "TDReport" of "Report | TDReport" has no attribute "loss"
    # R: none, a lambda's body is first seen when it is called


def of_an_item_with_its_source() -> None:
    (rollouts | gather_async().with_source()).map(lambda pair: pair.steps)  # E: attr-defined: "Sourced[Trajectories, RolloutWorker]" has no attribute "steps"
    # R: none, a lambda's body is first seen when it is called


def of_a_result() -> None:
    for steps in sampled().map(lambda batch: batch.steps).run():
        steps.reward  # E: attr-defined: "int" has no attribute "reward"
        # R: none, an item is no plan
        break


def a_truth_that_is_none() -> None:
    sampled().until(lambda batch: batch.steps)  # E: arg-type: Argument 1 to "until" of "Stream" has incompatible type "Callable[[Trajectories], int]"; expected "Callable[[Trajectories], bool]"  # E: return-value: Incompatible return value type (got "int", expected "bool")  # P: reportArgumentType
    # W: mypy reports the lambda as a whole and its body
    # R: none, any value has a truth


def of_two_parameters() -> None:
    sampled().map(lambda batch, steps: batch.steps + steps)  # E: misc: Cannot infer type of lambda  # E: arg-type: Argument 1 to "map" of "Stream" has incompatible type "Callable[[Any, Any], Any]"; expected "Callable[[Trajectories], Any]"  # P: reportArgumentType
    # W: mypy reports the lambda by itself and as an argument
    # R: none, how many parameters a function takes is not looked at before it is called


def of_no_parameter() -> None:
    sampled().map(lambda: 1)  # E: misc: Cannot infer type of lambda  # E: arg-type: Argument 1 to "map" of "Stream" has incompatible type "Callable[[], int]"; expected "Callable[[Trajectories], int]"  # P: reportArgumentType
    # W: mypy reports the lambda by itself and as an argument
    # R: none, how many parameters a function takes is not looked at before it is called
