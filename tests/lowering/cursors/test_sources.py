"""Sources: which actor an item came from, what carries that along, and the replies that go there."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from pipeflow.dsl import (
    Sourced,
    Stream,
    actors,
    batch,
    buffer,
    concat,
    drain,
    every,
    from_items,
    gather_async,
    gather_sync,
    reply,
    take,
    throttle,
)
from pipeflow.lowering.engines.sim import Sim
from pipeflow.lowering.items import Item, Origin
from tests.conftest import EngineName
from tests.lowering.actors import Learner, Recorder, Rolled, Roller, Sample, Worker


def test_a_reply_reaches_only_the_actor_that_the_item_came_from(engine: EngineName) -> None:
    """Law 9: the source is carried past the stage in the learner, and the plain item goes on."""
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync().with_source()
        | learner.stage(Learner.update)
    ).reply(Worker.set_weights, lambda sample: 10 * sample.shard + sample.k)  # fmt: skip
    with plan.run(engine) as run:
        assert list(islice(run, 4)) == [
            Sample(0, 0, -1),
            Sample(1, 0, -1),
            Sample(0, 1, 0),
            Sample(1, 1, 10),
        ]
        assert run.ask(workers, Worker.messages) == [[0, 1], [10, 11]]


def test_the_source_is_kept_by_gates_unions_and_forks() -> None:
    workers = actors(Worker, 2)
    sourced = workers.produce(Worker.sample) | gather_sync().with_source() | every(1) | take(6)
    left, right = sourced.fork(2, buffer=2)
    replied = (left & (right.filter(lambda _: True) | drain)).reply(
        Worker.set_weights, lambda sample: sample.k
    )
    with replied.run() as run:
        assert [sample.shard for sample in run] == [0, 1, 0, 1, 0, 1]
        assert run.ask(workers, Worker.messages) == [[0, 1, 2], [0, 1, 2]]


def test_a_function_of_a_sourced_stream_is_given_the_source() -> None:
    """Also before a placed stage, into whose actor it is then not moved, and in part of a union."""

    def shard(sourced: Sourced[Sample, Worker]) -> int:
        return sourced.source.index

    recorder = actors(Recorder, 1)
    sourced = actors(Worker, 2).produce(Worker.sample) | gather_sync().with_source()
    plan = sourced | shard | recorder.stage(Recorder.note_number) | take(4)
    assert list(plan.run()) == [0, 1, 0, 1]

    def kind(item: Any) -> str:
        return type(item).__name__

    sourced = actors(Worker, 1).produce(Worker.sample) | gather_sync().with_source()
    mixed: Stream[Any] = (sourced & from_items([1, 2])).round_robin()
    assert list((mixed | kind | recorder.stage(Recorder.note) | take(4)).run()) == [
        "Sourced", "int", "Sourced", "int",
    ]  # fmt: skip


def test_the_operator_form_of_a_reply_does_the_same() -> None:
    """With a message made from the item, and with the item itself."""

    def number(sample: Sample) -> int:
        return 10 * sample.shard + sample.k

    workers = actors(Worker, 2)
    sourced = workers.produce(Worker.sample) | gather_sync().with_source() | take(4)
    with (sourced | reply(Worker.set_weights, number)).run() as run:
        assert [sample.k for sample in run] == [0, 0, 1, 1]
        assert run.ask(workers, Worker.messages) == [[0, 1], [10, 11]]
    counted = workers.produce(Worker.started) | gather_sync().with_source() | reply(Worker.set_weights)
    with (counted | take(2)).run() as run_of_counts:
        assert list(run_of_counts) == [0, 0]
        assert run_of_counts.ask(workers, Worker.messages) == [[0], [0]]


# Sources of what was made of several items


def noted(recorder: Recorder, rolled: Rolled) -> Rolled:
    recorder.note(rolled)
    return rolled


def first_number(samples: list[Sample]) -> int:
    return samples[0].k


def test_a_batch_answers_each_of_its_sources_once(engine: EngineName) -> None:
    """Law 9: the sources of all, in the order of their first item, also past a stage in an actor."""
    workers, learner = actors(Worker, 3), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync().with_source()
        | batch(4)
        | learner.stage(Learner.update_round)
        | reply(Worker.set_weights, first_number)
        | take(2)
    )
    with plan.run(engine) as run:
        first, second = run
        assert [(sample.shard, sample.k) for sample in first] == [(0, 0), (1, 0), (2, 0), (0, 1)]
        assert [(sample.shard, sample.k) for sample in second] == [(1, 1), (2, 1), (0, 2), (1, 2)]
        # Two of the first batch's items are of worker 0, which is answered once.
        assert run.ask(workers, Worker.messages) == [[0, 1], [0, 1], [0, 1]]


@pytest.mark.parametrize("place", ["driver", "learner"])
def test_what_was_joined_has_the_sources_of_all_wherever_it_was_joined(place: str) -> None:
    """Law 9: on the driver, and where `concat` is fused into the learner's actor."""
    rollers, recorder = actors(Roller, 2), actors(Recorder, 1)
    joined = rollers.produce(Roller.roll) | gather_sync().with_source() | concat(5)
    if place == "learner":
        joined = joined | recorder.stage(noted)
    found = list((joined | take(2)).run())
    assert [item.item.steps for item in found] == [6, 6]
    assert [[source.index for source in item.sources] for item in found] == [[0, 1], [0, 1]]


def test_a_batch_that_forgets_a_source_fails_the_law_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant for law 9: only the first item's source is kept."""

    def first_only(items: list[Item]) -> tuple[Origin, ...]:
        return items[0].origins

    monkeypatch.setattr("pipeflow.lowering.cursors.driver.merged_origins", first_only)
    with pytest.raises(AssertionError):
        test_a_batch_answers_each_of_its_sources_once("inline")


@pytest.mark.parametrize("seed", range(8))
def test_buffers_and_pacing_carry_the_sources(seed: int) -> None:
    workers = actors(Worker, 2)
    sourced = workers.produce(Worker.sample) | gather_async(2).with_source() | buffer(2) | throttle(0.001)
    plan = sourced.reply(Worker.set_weights, lambda sample: sample.k) | take(6)
    with plan.run(Sim(seed)) as run:
        found = list(run)
        answered = run.ask(workers, Worker.messages)
    for shard in range(2):
        assert answered[shard] == [sample.k for sample in found if sample.shard == shard]
