"""Messages to actors: weights, replies to sources, sends; when they take effect and what becomes of errors."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from pipeflow.dsl import (
    Sourced,
    StageError,
    Stream,
    actors,
    drain,
    every,
    from_items,
    gather_async,
    gather_rounds,
    gather_sync,
    sync_weights,
    take,
)
from pipeflow.lowering.cursors.messages import SyncWeightsCursor
from pipeflow.lowering.items import Item, Signal
from tests.conftest import EngineName
from tests.lowering.actors import Failing, Learner, Recorder, Sample, Worker


def test_a_synchronous_plan_is_exactly_on_policy(engine: EngineName) -> None:
    """Laws 6 and 9: every item of round k reflects the weights that were sent after round k - 1."""
    assert_on_policy(engine)


def assert_on_policy(engine: EngineName) -> None:
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_rounds()
        | learner.stage(Learner.update_round)
        | sync_weights(learner, workers)
        | take(4)
    )
    for k, samples in enumerate(plan.run(engine)):
        assert samples == [Sample(shard, k, version=k) for shard in range(2)]


def test_weights_that_are_sent_after_the_item_was_delivered_fail_the_law_of_the_barrier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant for law 6: the broadcast belongs to the next poll."""

    def late(cursor: SyncWeightsCursor) -> Item | Signal:
        found = cursor._pull()
        if isinstance(found, Item) and cursor.meter.taken > 1:
            cursor.executor.broadcast(cursor._sync, cursor._sync.workers)
        return found

    monkeypatch.setattr(SyncWeightsCursor, "_poll", late)
    with pytest.raises(AssertionError):
        assert_on_policy("inline")


def test_weights_are_sent_after_every_nth_item_and_once_at_the_start() -> None:
    workers, learner = actors(Worker, 1), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync()
        | learner.stage(Learner.update)
        | sync_weights(learner, workers, every=3)
    )
    with plan.run() as run:
        assert [sample.version for sample in islice(run, 7)] == [0, 0, 0, 3, 3, 3, 6]
        assert run.ask(workers, Worker.messages) == [[0, 3, 6]]


def test_under_gather_async_at_most_num_async_items_miss_a_broadcast() -> None:
    """Law 7: an item misses the broadcasts since it was asked for, and those are at most two."""
    workers, learner = actors(Worker, 1), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_async(2)
        | learner.stage(Learner.update)
        | sync_weights(learner, workers)
        | take(12)
    )
    lags = [sample.k - sample.version for sample in plan.run()]
    assert max(lags) <= 2
    assert lags[-1] > 0


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


def test_send_reaches_every_actor_in_the_order_sent(engine: EngineName) -> None:
    """Law 9."""
    recorders = actors(Recorder, 2)
    with (from_items([1, 2, 3]) | recorders.send(Recorder.note)).run(engine) as run:
        assert list(run) == [1, 2, 3]
        assert run.ask(recorders, Recorder.notes) == [[1, 2, 3], [1, 2, 3]]


def test_send_takes_the_item_of_a_sourced_stream_and_a_round_as_a_list() -> None:
    recorder = actors(Recorder, 1)
    workers = actors(Worker, 1)
    plan = (
        workers.produce(Worker.started) | gather_sync().with_source() | recorder.send(Recorder.note) | take(2)
    )
    with plan.run() as run:
        assert [item.item for item in run] == [0, 0]
        assert run.ask(recorder, Recorder.notes) == [[0, 0]]
    rounds = workers.produce(Worker.started) | gather_rounds() | recorder.send(Recorder.note) | take(1)
    with rounds.run() as run_of_rounds:
        assert list(run_of_rounds) == [[0]]
        assert run_of_rounds.ask(recorder, Recorder.notes) == [[[0]]]


def test_a_message_that_was_sent_is_applied_before_the_plan_ends(tmp_path: Any) -> None:
    """Laws 9 and 18: also the last ones, which nothing in the plan waits for."""

    class Writer:
        def write(self, number: int) -> None:
            (tmp_path / str(number)).touch()

    assert list((from_items([1, 2, 3]) | actors(Writer, 1).send(Writer.write)).run()) == [1, 2, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2", "3"]


def test_messages_to_a_slow_group_do_not_pile_up() -> None:
    """A plan that waits for nothing else waits for the group."""
    recorder = actors(Recorder, 1)
    with (from_items(range(1000)) | recorder.send(Recorder.note)).run() as run:
        for item in islice(run, 500):
            assert item - len(run._executor._outstanding) <= 500
            assert len(run._executor._outstanding) < 70


@pytest.mark.parametrize("operator", ["send", "reply", "sync"])
def test_an_error_in_the_handler_of_a_message_ends_the_run(operator: str) -> None:
    """Law 20: though the plan does not look at what a handler returns, and also after the last item."""
    failing, learner = actors(Failing, 1), actors(Learner, 1)
    plans: dict[str, Stream[Any]] = {
        "send": from_items([7]) | failing.send(Failing.refuse),
        "reply": (failing.produce(Failing.number) | gather_sync().with_source() | take(1)).reply(
            Failing.refuse, lambda number: number + 6
        ),
        "sync": from_items([7]) | sync_weights(learner, failing) | actors(Recorder, 1).stage(Recorder.note),
    }
    given = {"send": 7, "reply": 7, "sync": 0}[operator]
    with pytest.raises(
        StageError, match=rf"{operator}.* failed in Failing\[0\]: ValueError: refused {given}"
    ):
        list(plans[operator].run())
