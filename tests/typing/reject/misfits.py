"""Stages that do not take what the stream before them delivers."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import (
    Stream,
    batch,
    concat,
    every_seconds,
    expand,
    flat_map,
    flatten,
    from_items,
    gather_rounds,
    gather_sync,
    once_per_steps,
    shuffle,
    sync_weights,
    tap,
    until,
)
from tests.typing.domain import (
    Advantages,
    Aggregator,
    NStep,
    PPOLearner,
    Replay,
    Report,
    RolloutWorker,
    Trajectories,
    Transitions,
    aggregators,
    count,
    dqn_learner,
    gae,
    learner,
    loss_of,
    replay,
    standardise,
    transitions,
    workers,
)

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


def gae_forgotten() -> None:
    sampled() | learner.stage(PPOLearner.update)  # E: operator: Unsupported operand types for | ("Stream[Trajectories]" and "Placed[Advantages, Report, PPOLearner]")
    # R: stage(PPOLearner.update) takes Advantages .. delivers Trajectories


def gae_forgotten_in_a_chain_of_several_lines() -> None:
    (
        rollouts  # P: reportOperatorIssue
        | gather_sync()
        | concat(1000)
        | learner.stage(PPOLearner.update)  # E: operator: ("Stream[Trajectories]" and "Placed[Advantages, Report, PPOLearner]")  # P: none
        # R: stage(PPOLearner.update) takes Advantages .. delivers Trajectories
        | sync_weights(learner, workers)
        | tap(print)
    )


def gae_in_the_wrong_place() -> None:
    (
        rollouts  # P: reportOperatorIssue
        | gae()
        | standardise
        | gae()  # E: operator: ("ParallelStream[StandardisedAdvantages, RolloutWorker]" and "Stage[Trajectories, Advantages]")  # P: none
        # R: takes Trajectories .. delivers StandardisedAdvantages
        | gather_sync()
        | learner.stage(PPOLearner.update)
    )


def a_stage_out_of_order() -> None:
    sampled() | standardise  # E: operator: ("Stream[Trajectories]" and "Stage[Advantages, StandardisedAdvantages]")
    # R: standardise takes Advantages .. delivers Trajectories


def a_function_of_another_type() -> None:
    sampled() | loss_of  # E: operator: ("Stream[Trajectories]" and "Callable[[Report], float]")
    # R: loss_of takes Report .. delivers Trajectories


def a_function_of_another_type_and_nothing_more_is_reported_after_it() -> None:
    (
        rollouts  # P: reportOperatorIssue
        | gather_sync()
        | loss_of  # E: operator: ("Stream[Trajectories]" and "Callable[[Report], float]")  # P: none
        # R: loss_of takes Report .. delivers Trajectories
        | round
        | concat(100)
    )


def a_function_of_another_type_and_the_list_of_what_it_makes() -> None:
    (
        rollouts  # P: reportOperatorIssue
        | loss_of  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Callable[[Report], float]")  # P: none
        # R: loss_of takes Report .. delivers Trajectories
        | gather_rounds()
        | learner.stage(PPOLearner.update)  # E: operator: ("Stream[list[Any]]" and "Placed[Advantages, Report, PPOLearner]")  # P: none
    )


def a_function_of_another_type_inside_the_shards() -> None:
    rollouts | loss_of  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Callable[[Report], float]")
    # R: loss_of takes Report .. delivers Trajectories


def a_function_without_a_parameter() -> None:
    def nothing() -> int:
        return 1

    sampled() | nothing  # E: operator: ("Stream[Trajectories]" and "Callable[[], int]")
    # R: none, how many parameters a function takes is not looked at before it is called


def a_method_of_the_actor_without_the_actors() -> None:
    rollouts | RolloutWorker.gradients  # E: operator: ("ParallelStream[Trajectories, RolloutWorker]" and "Callable[[RolloutWorker, Advantages], Gradients]")
    # R: none, the parameter `self` has no annotation


def map_with_a_function_of_another_type() -> None:
    sampled().map(loss_of)  # E: arg-type: Argument 1 to "map" of "Stream" has incompatible type "Callable[[Report], float]"; expected "Callable[[Trajectories], float]"
    # R: loss_of takes Report .. delivers Trajectories


def tap_with_a_function_of_another_type() -> None:
    sampled() | tap(loss_of)  # E: operator: ("Stream[Trajectories]" and "Tap[Report]")
    # R: tap(loss_of) takes Report .. delivers Trajectories


def until_with_a_function_of_another_type() -> None:
    def good(report: Report) -> bool:
        return report.loss < 1

    sampled() | until(good)  # E: operator: ("Stream[Trajectories]" and "Until[Report]")
    # R: until(good) takes Report .. delivers Trajectories


def until_with_a_function_that_decides_nothing() -> None:
    sampled() | until(count)  # E: arg-type: Argument 1 to "until" has incompatible type "Callable[[Experience], int]"; expected "Callable[[Experience], bool]"
    # R: none, any value has a truth


def filter_with_a_function_of_another_type() -> None:
    sampled().filter(loss_of)  # E: arg-type: Argument 1 to "filter" of "Stream" has incompatible type "Callable[[Report], float]"; expected "Callable[[Trajectories],  # P: reportCallIssue, reportArgumentType
    # R: filter(loss_of) takes Report .. delivers Trajectories


def expand_with_a_state_of_another_type() -> None:
    sampled() | gae() | expand(NStep)  # E: operator: ("Stream[Advantages]" and "Expand[Trajectories, Transitions]")
    # R: NStep takes Trajectories .. delivers Advantages


def flat_map_with_a_function_of_another_type() -> None:
    def pieces(report: Report) -> list[float]:
        return [report.loss]

    sampled() | flat_map(pieces)  # E: operator: ("Stream[Trajectories]" and "Expand[Report, float]")
    # R: flat_map(pieces) takes Report .. delivers Trajectories


def flatten_of_what_has_no_members() -> None:
    sampled() | flatten()  # E: operator: ("Stream[Trajectories]" and "Flatten")
    # R: flatten takes Iterable .. delivers Trajectories


def concat_of_what_is_no_batch() -> None:
    from_items([1, 2]) | concat(100)  # E: operator: ("Stream[int]" and "Concat")
    # R: concat(100) takes Concatenable .. delivers int


def once_per_steps_of_what_has_none() -> None:
    sampled() | count | once_per_steps(8)  # E: operator: ("Stream[int]" and "OncePerSteps")
    # R: once_per_steps(8) counts the steps of items, but count .. delivers int, which has none; put a stage before it


def shuffling_without_a_seed() -> None:
    sampled() | shuffle(8)  # E: call-arg: Missing named argument "seed" for "shuffle"
    # W: mypy adds where "shuffle" is defined
    # R: none, Python's own TypeError


def a_time_in_words() -> None:
    sampled() | every_seconds("1")  # E: arg-type: Argument 1 to "every_seconds" has incompatible type "str"; expected "float"
    # R: none, Python's own TypeError


def an_aggregator_of_single_items() -> None:
    sampled() | aggregators.stage(Aggregator.concatenate)  # E: operator: ("Stream[Trajectories]" and "Placed[list[Trajectories], Trajectories, Aggregator]")
    # R: Aggregator.stage(Aggregator.concatenate) takes list[Trajectories] .. delivers Trajectories


def a_round_of_items_that_another_class_joins() -> None:
    workers.produce(RolloutWorker.sample) | gather_rounds() | Advantages.concatenate  # E: operator: ("Stream[list[Trajectories]]" and "Callable[[Sequence[Advantages]], Advantages]")
    # R: takes Sequence[Advantages] .. delivers list[Trajectories]


def a_list_where_one_item_is_taken() -> None:
    sampled() | batch(2) | gae()  # E: operator: ("Stream[list[Trajectories]]" and "Stage[Trajectories, Advantages]")
    # R: takes Trajectories .. delivers list[Trajectories]


def a_stored_item_that_replay_does_not_keep() -> None:
    sampled() | replay.stage(Replay.add)  # E: operator: ("Stream[Trajectories]" and "Placed[Transitions, int, Replay]")
    # R: stage(Replay.add) takes Transitions .. delivers Trajectories


def a_plan_that_is_returned_as_another_type() -> Stream[Advantages]:
    return sampled() | gae() | learner.stage(PPOLearner.update)  # E: return-value: Incompatible return value type (got "Stream[Report]", expected "Stream[Advantages]")
    # R: none, a return annotation is the checker's alone


def a_plan_that_ends_in_a_function_and_is_returned_as_another_type() -> Stream[Advantages]:
    return sampled() | transitions  # E: operator: ("Stream[Trajectories]" and "Callable[[Trajectories], Transitions]")  # P: reportReturnType
    # R: none, a return annotation is the checker's alone


def a_base_class_where_a_subclass_is_taken() -> None:
    def narrow(batch: Transitions) -> Transitions:
        return batch

    def widened() -> Stream[Trajectories | Transitions]:
        return sampled()

    widened() | narrow  # E: operator: ("Stream[Trajectories | Transitions]" and "Callable[[Transitions], Transitions]")
    # R: narrow takes Transitions .. delivers Trajectories


def weights_of_a_learner_sent_as_items() -> None:
    sampled() | workers.send(RolloutWorker.set_weights)  # E: operator: ("Stream[Trajectories]" and "Send[Weights]")
    # R: send(RolloutWorker.set_weights) takes Weights .. delivers Trajectories


def a_target_learner_of_another_kind() -> None:
    sampled() | gae() | dqn_learner.stage(PPOLearner.update)  # E: arg-type: Argument 1 to "stage" of "Actors" has incompatible type "Callable[[PPOLearner, Advantages], Report]"; expected "Callable[[DQNLearner, Advantages], Report]"
    # R: PPOLearner.update is a method of PPOLearner .. are actors of DQNLearner
