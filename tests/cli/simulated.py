"""Plans for `pipeflow simulate`: one that is on-policy, and some that are wrong in ways of their own."""

from __future__ import annotations

from pipeflow.dsl import Stream, actors, from_items, gather_async, gather_sync, sync_weights
from pipeflow.semantics.events import Asked, Trace
from pipeflow.testing.parts import Learner, Worker, fail_on_three


def on_policy(restarts: int = 0) -> Stream[int]:
    workers, learner = actors(Worker, 2, 3, 0).restarts(restarts), actors(Learner, 1).restarts(restarts)
    sampled = workers.produce(Worker.sample) | gather_sync()
    return sampled | learner.stage(Learner.update) | sync_weights(learner, workers, every=2)


def restarting() -> Stream[int]:
    """Whatever dies is started again."""
    return on_policy(restarts=1)


def sent_before_the_barrier() -> Stream[int]:
    """Wrong: the weights go out after every item of a round, while others of the round are still to come."""
    workers, learner = actors(Worker, 2, 3, 0), actors(Learner, 1)
    sampled = workers.produce(Worker.sample) | gather_sync()
    return sampled | learner.stage(Learner.update) | sync_weights(learner, workers)


def asynchronous() -> Stream[int]:
    workers, learner = actors(Worker, 2, 4, 0), actors(Learner, 1)
    sampled = workers.produce(Worker.sample) | gather_async()
    return sampled | learner.stage(Learner.update) | sync_weights(learner, workers)


def failing(count: int = 4) -> Stream[int]:
    return from_items(range(count)) | fail_on_three


def with_argument(count: int) -> Stream[int]:
    return from_items(range(count))


ITEMS = from_items([1, 2])


def asks_little(trace: Trace) -> str | None:
    asked = sum(isinstance(event, Asked) for event in trace)
    return f"{asked} polls" if asked > 3 else None


def answers_yes(trace: Trace) -> bool:
    return bool(trace.events)
