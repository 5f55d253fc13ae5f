"""Actors: how they are described, their methods as stages, and what a run can ask them."""

from __future__ import annotations

from typing import assert_type

from pipeflow import (
    Actors,
    ParallelStream,
    Placed,
    Scatter,
    Send,
    Sourced,
    Stream,
    actors,
    concat,
    gather_async,
    gather_rounds,
    gather_sync,
    group_of,
    groups_with,
    select_shards,
    take,
)
from tests.typing.domain import (
    Advantages,
    EvaluationWorker,
    Experience,
    Gradients,
    PPOLearner,
    Report,
    RolloutWorker,
    StandardisedAdvantages,
    Trajectories,
    Weights,
    evaluators,
    gae,
    learner,
    standardise,
    workers,
)

rollouts = workers.produce(RolloutWorker.sample)


# Descriptions


def actors_have_the_class() -> None:
    assert_type(actors(RolloutWorker, 2, 7), Actors[RolloutWorker])


def actors_take_the_constructors_arguments_by_position_or_by_name() -> None:
    assert_type(actors(RolloutWorker, 2, seed=7, steps=3), Actors[RolloutWorker])


def actors_take_any_factory() -> Stream[Trajectories]:
    def made(seed: int) -> RolloutWorker:
        return EvaluationWorker(seed)

    described = actors(made, 2, 7)
    assert_type(described, Actors[RolloutWorker])
    return described.produce(RolloutWorker.sample) | gather_sync()


def actors_keep_their_class_under_another_name() -> None:
    assert_type(workers.named("collectors"), Actors[RolloutWorker])


def actors_keep_their_class_with_resources() -> None:
    assert_type(workers.resources(cpus=2.0, tpu=1.0), Actors[RolloutWorker])
    assert_type(workers.placement("spread").resources(gpus=1), Actors[RolloutWorker])


def actors_keep_their_class_when_they_may_restart() -> None:
    assert_type(workers.restarts(2), Actors[RolloutWorker])
    assert_type(workers.on_error("drop_shard").time_limit(2.5), Actors[RolloutWorker])


# Methods as stages


def a_method_is_a_stage_with_its_types_and_its_class() -> Placed[Advantages, Report, PPOLearner]:
    return assert_type(learner.stage(PPOLearner.update), Placed[Advantages, Report, PPOLearner])


def a_placed_stage_keeps_its_types_with_its_options() -> Placed[Advantages, Report, PPOLearner]:
    placed = learner.stage(PPOLearner.update).max_in_flight(2).unordered().named("learn")
    return assert_type(placed, Placed[Advantages, Report, PPOLearner])


def a_placed_stage_on_a_stream() -> Stream[Report]:
    plan = rollouts | gae() | gather_sync() | learner.stage(PPOLearner.update)
    return assert_type(plan, Stream[Report])


def a_placed_stage_takes_a_subclass() -> Stream[Report]:
    plan = rollouts | gae() | standardise | gather_sync() | learner.stage(PPOLearner.update)
    return assert_type(plan, Stream[Report])


def a_placed_stage_on_its_own_shards() -> ParallelStream[Gradients, RolloutWorker]:
    plan = rollouts | gae() | workers.stage(RolloutWorker.gradients)
    return assert_type(plan, ParallelStream[Gradients, RolloutWorker])


def a_placed_stage_carries_the_source() -> Stream[Sourced[Report, RolloutWorker]]:
    plan = rollouts | gae() | gather_async().with_source() | learner.stage(PPOLearner.update)
    return assert_type(plan, Stream[Sourced[Report, RolloutWorker]])


def the_source_survives_two_placed_stages() -> Stream[Sourced[Report, RolloutWorker]]:
    plan = (
        rollouts
        | gae()
        | gather_async().with_source()
        | workers.stage(RolloutWorker.gradients)
        | learner.stage(PPOLearner.apply)
    )
    return assert_type(plan, Stream[Sourced[Report, RolloutWorker]])


def a_lambda_over_the_actor_and_a_named_item() -> Stream[int]:
    def measured(worker: RolloutWorker, batch: Trajectories) -> int:
        return worker.seed + batch.steps

    return assert_type(rollouts | gather_sync() | workers.stage(measured), Stream[int])


def a_stage_may_be_repeated_where_it_makes_what_it_takes() -> Stream[Trajectories]:
    inner = workers.stage(RolloutWorker.adapt).repeat(3)
    assert_type(inner, Placed[Trajectories, Trajectories, RolloutWorker])
    return assert_type(rollouts | gather_sync() | inner, Stream[Trajectories])


def a_repeated_stage_runs_inside_the_shards() -> ParallelStream[Trajectories, RolloutWorker]:
    plan = rollouts | workers.stage(RolloutWorker.adapt).repeat(2)
    return assert_type(plan, ParallelStream[Trajectories, RolloutWorker])


def send_keeps_the_type() -> Stream[Weights]:
    sent: Send[Weights] = workers.send(RolloutWorker.set_weights)
    updates = rollouts | gae() | gather_sync() | concat(8) | learner.stage(PPOLearner.update)
    return assert_type(updates.map(lambda report: report.weights) | sent, Stream[Weights])


def send_does_not_widen_the_type() -> Stream[Trajectories]:
    def count(worker: RolloutWorker, batch: Experience) -> None:
        worker.steps += batch.steps

    return assert_type(rollouts | gather_sync() | evaluators.send(count), Stream[Trajectories])


def send_carries_the_source() -> Stream[Sourced[Trajectories, RolloutWorker]]:
    def count(worker: RolloutWorker, batch: Experience) -> None:
        worker.steps += batch.steps

    plan = rollouts | gather_sync().with_source() | workers.send(count)
    return assert_type(plan, Stream[Sourced[Trajectories, RolloutWorker]])


# Shards


def scatter_gives_a_stream_to_actors_in_turn() -> ParallelStream[Trajectories, EvaluationWorker]:
    scatter = evaluators.scatter()
    assert_type(scatter, Scatter[EvaluationWorker])
    plan = rollouts | gather_sync() | take(2) | scatter
    assert_type(plan, ParallelStream[Trajectories, EvaluationWorker])
    return plan


def broadcast_gives_a_stream_to_all_actors() -> Stream[list[Report]]:
    gradients = rollouts | gae() | workers.stage(RolloutWorker.gradients) | gather_sync()
    spread = gradients | workers.broadcast()
    assert_type(spread, ParallelStream[Gradients, RolloutWorker])
    applied = spread | workers.stage(RolloutWorker.apply) | gather_rounds()
    return assert_type(applied, Stream[list[Report]])


def scattered_items_go_through_functions_in_their_actors() -> Stream[list[Advantages]]:
    scattered = rollouts | gather_sync() | evaluators.scatter() | gae()
    assert_type(scattered, ParallelStream[Advantages, EvaluationWorker])
    return assert_type(scattered | gather_rounds(), Stream[list[Advantages]])


def select_shards_keeps_the_type() -> ParallelStream[Trajectories, RolloutWorker]:
    return assert_type(rollouts | select_shards(1), ParallelStream[Trajectories, RolloutWorker])


# Asking


def groups_with_finds_all_groups_of_a_class() -> None:
    assert_type(groups_with(a_placed_stage_on_a_stream(), PPOLearner), tuple[Actors[PPOLearner], ...])


def group_of_finds_the_actors_by_class() -> None:
    plan = a_placed_stage_on_a_stream()
    assert_type(group_of(plan, PPOLearner), Actors[PPOLearner])


def ask_returns_what_the_method_returns() -> None:
    plan = a_placed_stage_on_a_stream() | take(1)
    with plan.run() as run:
        assert_type(next(run), Report)
        assert_type(run.ask(learner, PPOLearner.weights), list[Weights])


# Variance


def a_stream_of_a_subclass_is_a_stream_of_its_base() -> Stream[Advantages]:
    standardised: Stream[StandardisedAdvantages] = rollouts | gae() | standardise | gather_sync()
    return standardised


def actors_of_a_subclass_are_actors_of_its_base() -> ParallelStream[Trajectories, RolloutWorker]:
    evaluated: ParallelStream[Trajectories, EvaluationWorker] = evaluators.produce(EvaluationWorker.sample)
    return evaluated
