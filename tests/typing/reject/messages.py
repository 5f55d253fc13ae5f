"""Messages: `sync_weights` between the wrong actors, replies to nobody or of another type."""
# fmt: off
# The expectations belong to the end of their lines.

from __future__ import annotations

from pipeflow import (
    Stream,
    actors,
    gather_async,
    gather_sync,
    reply,
    reply_weights,
    sync_weights,
    update_target,
)
from tests.typing.domain import (
    Advantages,
    PPOLearner,
    Priorities,
    Replay,
    RolloutWorker,
    Trajectories,
    Weights,
    gae,
    learner,
    replay,
    workers,
)

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


# Weights


def weights_of_workers_to_a_learner() -> None:
    sync_weights(workers, learner)  # E: arg-type: Argument 1 to "sync_weights" has incompatible type "Actors[RolloutWorker]"; expected "Actors[HasWeights[Never]]"  # E: arg-type: Argument 2 to "sync_weights" has incompatible type "Actors[PPOLearner]"; expected "Actors[TakesWeights[Never]]"
    # R: sync_weights needs RolloutWorker .. to have a method weights
    # W: there are two mistakes


def weights_of_what_has_none() -> None:
    sync_weights(replay, workers)  # E: arg-type: Argument 1 to "sync_weights" has incompatible type "Actors[Replay]"; expected "Actors[HasWeights[Weights]]"
    # R: sync_weights needs Replay .. to have a method weights


def weights_to_what_takes_none() -> None:
    sync_weights(learner, replay)  # E: arg-type: Argument 2 to "sync_weights" has incompatible type "Actors[Replay]"; expected "Actors[TakesWeights[Weights]]"
    # R: sync_weights needs Replay .. to have a method set_weights


def weights_of_another_type_than_the_workers_take() -> None:
    class Worker:
        def set_weights(self, weights: str, /) -> None:
            pass

    sync_weights(learner, actors(Worker, 1))  # E: misc: Cannot infer value of type parameter "Weights" of "sync_weights"  # P: reportArgumentType
    # R: sync_weights sends Weights, the weights of PPOLearner .. but Worker .. takes str


def weights_every_other_item() -> None:
    sync_weights(learner, workers, every="2")  # E: arg-type: Argument "every" to "sync_weights" has incompatible type "str"; expected "int"
    # R: none, Python's own TypeError


def a_target_of_what_has_none() -> None:
    update_target(learner, every=2)  # E: arg-type: Argument 1 to "update_target" has incompatible type "Actors[PPOLearner]"; expected "Actors[HasTarget]"
    # R: update_target needs PPOLearner .. to have a method update_target


def weights_to_a_source_that_nobody_knows() -> None:
    sampled() | reply_weights(learner)  # E: operator: ("Stream[Trajectories]" and "ReplyWeights[Weights]")
    # R: reply_weights(PPOLearner) needs to know where items came from; gather with .with_source()


def weights_to_a_source_that_takes_none() -> None:
    sourced = replay.produce(Replay.sample) | gather_async().with_source()
    sourced | reply_weights(learner)  # E: operator: ("Stream[Sourced[Transitions, Replay]]" and "ReplyWeights[Weights]")
    # R: reply_weights needs Replay .. to have a method set_weights


def weights_of_another_type_than_the_source_takes() -> None:
    class Sampler:
        def sample(self) -> int:
            return 0

        def set_weights(self, weights: str, /) -> None:
            pass

    sourced = actors(Sampler, 1).produce(Sampler.sample) | gather_async().with_source()
    sourced | reply_weights(learner)  # E: operator: ("Stream[Sourced[int, Sampler]]" and "ReplyWeights[Weights]")
    # R: reply_weights sends Weights, the weights of PPOLearner .. but Sampler .. takes str


def weights_to_the_source_from_what_has_none() -> None:
    reply_weights(replay)  # E: arg-type: Argument 1 to "reply_weights" has incompatible type "Actors[Replay]"; expected "Actors[HasWeights[Never]]"
    # R: reply_weights needs Replay .. to have a method weights


# Replies


def a_reply_with_a_method_of_another_class() -> None:
    sourced = rollouts | gather_async().with_source()
    sourced.reply(Replay.update_priorities, lambda batch: Priorities((1.0,)))  # E: arg-type: Argument 1 to "reply" of "Stream" has incompatible type "Callable[[Replay, Priorities], None]"; expected "Callable[[RolloutWorker, Priorities], object]"
    # R: Replay.update_priorities is a method of Replay .. are actors of RolloutWorker; pass a method of RolloutWorker


def a_reply_of_another_type() -> None:
    sourced = rollouts | gather_async().with_source()
    sourced.reply(RolloutWorker.set_weights, lambda batch: batch.steps)  # E: misc: Cannot infer value of type parameter "Message" of "reply" of "Stream"  # P: reportArgumentType
    # R: none, what a lambda returns is not known before it is called


def a_reply_from_an_attribute_that_the_item_does_not_have() -> None:
    sourced = rollouts | gather_async().with_source()
    sourced.reply(RolloutWorker.set_weights, lambda batch: batch.weights)  # E: attr-defined: "Trajectories" has no attribute "weights"
    # R: none, a lambda's body is first seen when it is called


def a_reply_to_nobody() -> None:
    sampled().reply(RolloutWorker.set_weights, lambda batch: Weights(1))  # E: misc: Invalid self argument "Stream[Trajectories]" to attribute function "reply" with type "Callable[[Stream[Sourced[A, V]],  # P: reportAttributeAccessIssue
    # R: reply(RolloutWorker.set_weights) needs to know where items came from; gather with .with_source()
    # W: mypy shows the whole signature


def a_function_of_the_item_on_an_item_with_its_source() -> None:
    (  # P: reportOperatorIssue
        rollouts
        | gather_async().with_source()
        | gae()  # E: operator: ("Stream[Sourced[Trajectories, RolloutWorker]]" and "Stage[Trajectories, Advantages]")  # P: none
        # R: takes Trajectories .. delivers Sourced
    )


def a_placed_stage_of_another_type_on_items_with_their_sources() -> None:
    sourced = rollouts | gather_async().with_source()
    sourced | learner.stage(PPOLearner.update)  # E: operator: ("Stream[Sourced[Trajectories, RolloutWorker]]" and "Placed[Advantages, Report, PPOLearner]")
    # R: stage(PPOLearner.update) takes Advantages .. delivers Trajectories


def a_message_of_another_type_than_the_items() -> None:
    def priorities(batch: Advantages) -> Priorities:
        return Priorities((float(batch.steps),))

    sourced = rollouts | gather_async().with_source()
    sourced.reply(RolloutWorker.set_weights, priorities)  # E: misc: Cannot infer value of type parameter "Message" of "reply" of "Stream"  # E: arg-type: Argument 2 to "reply" of "Stream" has incompatible type "Callable[[Advantages], Priorities]"; expected "Callable[[Trajectories], Any]"  # P: reportArgumentType
    # W: the message is neither made from such an item nor what the method takes
    # R: none, what the message is made from is looked at by the checker alone


# Replies as operators


def an_operator_that_replies_with_a_method_of_another_class() -> None:
    def priorities(batch: Trajectories) -> Priorities:
        return Priorities((float(batch.steps),))

    sourced = rollouts | gather_async().with_source()
    sourced | reply(Replay.update_priorities, priorities)  # E: operator: ("Stream[Sourced[Trajectories, RolloutWorker]]" and "Reply[Trajectories, Replay]")
    # R: Replay.update_priorities is a method of Replay .. are actors of RolloutWorker; pass a method of RolloutWorker


def an_operator_that_replies_to_nobody() -> None:
    def weights(batch: Trajectories) -> Weights:
        return Weights(batch.version)

    sampled() | reply(RolloutWorker.set_weights, weights)  # E: operator: ("Stream[Trajectories]" and "Reply[Trajectories, RolloutWorker]")
    # R: reply(RolloutWorker.set_weights) needs to know where items came from; gather with .with_source()


def an_operator_that_replies_to_items_of_another_type() -> None:
    def weights(batch: Advantages) -> Weights:
        return Weights(batch.version)

    sourced = rollouts | gather_async().with_source()
    sourced | reply(RolloutWorker.set_weights, weights)  # E: operator: ("Stream[Sourced[Trajectories, RolloutWorker]]" and "Reply[Advantages, RolloutWorker]")
    # R: reply(RolloutWorker.set_weights) takes Advantages .. delivers Trajectories


def an_operator_that_replies_with_the_item_where_the_method_takes_another() -> None:
    sourced = rollouts | gather_async().with_source()
    sourced | reply(RolloutWorker.set_weights)  # E: operator: ("Stream[Sourced[Trajectories, RolloutWorker]]" and "Reply[Weights, RolloutWorker]")
    # R: reply(RolloutWorker.set_weights) takes Weights .. delivers Trajectories


def a_message_that_the_method_does_not_take() -> None:
    def steps(batch: Trajectories) -> int:
        return batch.steps

    reply(RolloutWorker.set_weights, steps)  # E: misc: Cannot infer value of type parameter "Message" of "reply"  # P: reportArgumentType
    # R: none, what the message is made from is looked at by the checker alone


def an_operator_that_replies_with_a_lambda() -> None:
    sourced = rollouts | gather_async().with_source()
    sourced | reply(RolloutWorker.set_weights, lambda batch: Weights(batch.version))  # E: operator: ("Stream[Sourced[Trajectories, RolloutWorker]]" and "Reply[Never, RolloutWorker]")  # P: reportAttributeAccessIssue
    # R: none, it can be built: write it as a method, sourced.reply(...)
