"""Operators that make new items: functions, `Stage`, `.map`, `expand`, `flat_map`, `batch`, `flatten`, `concat`, `shuffle`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar, assert_type

from pipeflow import (
    Concatenable,
    Expand,
    ExpansionOf,
    ParallelStream,
    Sourced,
    Stage,
    Stream,
    batch,
    concat,
    expand,
    flat_map,
    flatten,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    shuffle,
    stage,
    take,
)
from pipeflow.dsl.sources import Shard
from tests.typing.domain import (
    Advantages,
    NStep,
    RolloutWorker,
    StandardisedAdvantages,
    Trajectories,
    Transitions,
    count,
    gae,
    standardise,
    transitions,
    workers,
)

T = TypeVar("T")
U = TypeVar("U")

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


# Functions


def a_function_is_a_stage() -> Stream[Transitions]:
    return assert_type(sampled() | transitions, Stream[Transitions])


def a_function_is_a_stage_inside_the_shards() -> ParallelStream[Transitions, RolloutWorker]:
    return assert_type(rollouts | transitions, ParallelStream[Transitions, RolloutWorker])


def a_function_of_a_base_class_is_a_stage() -> Stream[int]:
    return assert_type(sampled() | count, Stream[int])


def a_function_of_anything_is_a_stage() -> Stream[str]:
    return assert_type(from_items([1, 2]) | repr, Stream[str])


def a_partial_is_a_stage() -> Stream[int]:
    def power(exponent: int, base: int) -> int:
        return int(base**exponent)

    return assert_type(from_items([1, 2]) | functools.partial(power, 2), Stream[int])


def a_bound_method_is_a_stage() -> Stream[str]:
    return assert_type(from_items([["a", "b"]]) | "".join, Stream[str])


def a_callable_object_is_a_stage() -> Stream[float]:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __call__(self, x: float) -> float:
            return self.factor * x

    return assert_type(from_items([1, 2]) | Scale(0.5), Stream[float])


def a_function_with_further_defaults_is_a_stage() -> Stream[int]:
    def plus(x: int, y: int = 1) -> int:
        return x + y

    return assert_type(from_items([1, 2]) | plus, Stream[int])


def functions_follow_each_other() -> Stream[str]:
    return assert_type(sampled() | gae() | standardise | count | repr, Stream[str])


# .map


def map_infers_the_parameter_of_a_lambda() -> Stream[int]:
    return assert_type(sampled().map(lambda batch: batch.steps), Stream[int])


def map_infers_the_parameter_of_a_lambda_inside_the_shards() -> ParallelStream[int, RolloutWorker]:
    return assert_type(rollouts.map(lambda batch: batch.steps), ParallelStream[int, RolloutWorker])


def map_infers_a_chain_of_lambdas() -> Stream[str]:
    lengths = sampled().map(lambda batch: batch.steps).map(lambda steps: [steps] * 2)
    return assert_type(lengths.map(lambda pair: str(pair[0] + pair[1])), Stream[str])


def map_takes_a_class_to_construct() -> Stream[str]:
    return assert_type(from_items([1, 2]).map(str), Stream[str])


def map_can_pin_a_function_to_the_driver() -> Stream[Transitions]:
    return assert_type(sampled().map(transitions, here=True), Stream[Transitions])


# Stage


def a_factory_makes_a_stage() -> Stage[Trajectories, Advantages]:
    return assert_type(gae(0.99, 0.95), Stage[Trajectories, Advantages])


def a_decorated_function_is_a_stage() -> Stage[Advantages, StandardisedAdvantages]:
    return assert_type(standardise, Stage[Advantages, StandardisedAdvantages])


def a_stage_can_be_called() -> None:
    assert_type(gae()(Trajectories(3)), Advantages)


def stage_wraps_a_function() -> Stage[Trajectories, Transitions]:
    return assert_type(stage(transitions), Stage[Trajectories, Transitions])


def stages_compose() -> Stage[Trajectories, StandardisedAdvantages]:
    return assert_type(gae() | standardise, Stage[Trajectories, StandardisedAdvantages])


def a_stage_composes_with_a_function() -> Stage[Trajectories, int]:
    return assert_type(gae() | standardise | count, Stage[Trajectories, int])


def composed_stages_are_a_stage() -> ParallelStream[StandardisedAdvantages, RolloutWorker]:
    both = gae() | standardise
    return assert_type(rollouts | both, ParallelStream[StandardisedAdvantages, RolloutWorker])


def a_stage_keeps_its_types_under_another_name() -> Stage[Trajectories, Advantages]:
    return assert_type(gae().named("advantages"), Stage[Trajectories, Advantages])


# Zero or more outputs


def expand_has_the_types_of_its_state() -> Expand[Trajectories, Transitions]:
    return assert_type(expand(NStep), Expand[Trajectories, Transitions])


def expand_makes_zero_or_more() -> Stream[Transitions]:
    return assert_type(sampled() | expand(NStep), Stream[Transitions])


def expand_makes_zero_or_more_inside_the_shards() -> ParallelStream[Transitions, RolloutWorker]:
    return assert_type(rollouts | expand(NStep), ParallelStream[Transitions, RolloutWorker])


def expand_takes_any_factory_of_a_state() -> Stream[Transitions]:
    def state() -> ExpansionOf[Trajectories, Transitions]:
        return NStep()

    return assert_type(sampled() | expand(state), Stream[Transitions])


def flat_map_has_the_type_of_the_members() -> Stream[Transitions]:
    def twice(batch: Trajectories) -> list[Transitions]:
        return [Transitions(batch.steps)] * 2

    return assert_type(sampled() | flat_map(twice), Stream[Transitions])


def flat_map_works_inside_the_shards() -> ParallelStream[int, Shard[int]]:
    return assert_type(from_shards([[1, 2]]) | flat_map(range), ParallelStream[int, Shard[int]])


# Operators whose output type depends on the input's


def batch_makes_lists() -> Stream[list[Trajectories]]:
    return assert_type(sampled() | batch(2), Stream[list[Trajectories]])


def batch_makes_lists_inside_the_shards() -> ParallelStream[list[Trajectories], RolloutWorker]:
    return assert_type(rollouts | batch(2), ParallelStream[list[Trajectories], RolloutWorker])


def batch_of_batch_is_a_list_of_lists() -> Stream[list[list[int]]]:
    return assert_type(from_items([1, 2, 3]) | batch(2) | batch(2), Stream[list[list[int]]])


def flatten_undoes_batch() -> Stream[Trajectories]:
    return assert_type(sampled() | batch(2) | flatten(), Stream[Trajectories])


def flatten_works_inside_the_shards() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(rollouts | batch(2) | flatten(), ParallelStream[Trajectories, RolloutWorker])


def flatten_takes_any_iterable() -> Stream[str]:
    return assert_type(from_items(["ab", "c"]) | flatten(), Stream[str])


def concat_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | concat(10), Stream[Trajectories])


def concat_keeps_a_subclass() -> Stream[StandardisedAdvantages]:
    return assert_type(sampled() | gae() | standardise | concat(10), Stream[StandardisedAdvantages])


def concat_works_inside_the_shards() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(rollouts | concat(10), ParallelStream[Trajectories, RolloutWorker])


def a_batch_is_concatenable() -> Concatenable:
    return Trajectories(3)


def shuffle_keeps_the_type() -> Stream[Trajectories]:
    return assert_type(sampled() | take(9) | shuffle(3, seed=1), Stream[Trajectories])


def shuffle_works_inside_the_shards() -> ParallelStream[int, Shard[int]]:
    return assert_type(from_shards([[1, 2, 3]]) | shuffle(2, seed=1), ParallelStream[int, Shard[int]])


# Together with where the items came from


def batch_keeps_the_sources_of_all() -> Stream[Sourced[list[Trajectories], RolloutWorker]]:
    sourced = rollouts | gather_async().with_source()
    return assert_type(sourced | batch(2), Stream[Sourced[list[Trajectories], RolloutWorker]])


def concat_keeps_the_sources_of_all() -> Stream[Sourced[Trajectories, RolloutWorker]]:
    sourced = rollouts | gather_async().with_source()
    return assert_type(sourced | concat(16), Stream[Sourced[Trajectories, RolloutWorker]])


# Functions that are generic over streams


def a_generic_function_may_apply_a_function() -> Stream[list[int]]:
    def in_pairs(stream: Stream[T], function: Callable[[T], U]) -> Stream[list[U]]:
        return stream | function | batch(2)

    return assert_type(in_pairs(sampled(), count), Stream[list[int]])


def a_generic_function_may_return_what_it_applied() -> Stream[int]:
    def applied(stream: Stream[T], function: Callable[[T], U]) -> Stream[U]:
        return stream | function

    return assert_type(applied(sampled(), count), Stream[int])


def an_optional_stage_may_be_chosen() -> Stream[Advantages]:
    def plan(normalise: bool) -> Stream[Advantages]:
        advantages = sampled() | gae()
        return advantages | standardise if normalise else advantages

    return plan(True)
