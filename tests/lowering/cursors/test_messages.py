"""Messages to actors: weights to all or to the source, targets, sends; when they take effect, and errors."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from pipeflow.dsl import (
    StageError,
    Stream,
    actors,
    batch,
    from_items,
    gather_async,
    gather_rounds,
    gather_sync,
    reply_weights,
    sync_weights,
    take,
    update_target,
)
from pipeflow.lowering.cursors.messages import SyncWeightsCursor
from pipeflow.lowering.engines.sim import Sim
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
            cursor._broadcast()
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


# Weights to the source


def test_weights_go_to_just_the_workers_that_an_item_came_from(engine: EngineName) -> None:
    """Law 9: all get them once at the start, then each after an item of its own."""
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync().with_source()
        | learner.stage(Learner.update)
        | reply_weights(learner)
        | take(4)
    )
    with plan.run(engine) as run:
        assert [(sample.shard, sample.version) for sample in run] == [(0, 0), (1, 0), (0, 1), (1, 2)]
        assert run.ask(workers, Worker.messages) == [[0, 1, 3], [0, 2, 4]]


def test_weights_go_to_a_worker_after_every_nth_item_of_its_own() -> None:
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync().with_source()
        | learner.stage(Learner.update)
        | reply_weights(learner, every=2)
        | take(8)
    )
    with plan.run() as run:
        list(run)
        assert run.ask(workers, Worker.messages) == [[0, 3, 7], [0, 4, 8]]


@pytest.mark.parametrize("seed", range(10))
def test_after_its_weights_were_sent_at_most_num_async_items_of_a_worker_miss_them(seed: int) -> None:
    """Laws 7 and 9, under every schedule."""
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_async(2).with_source()
        | learner.stage(Learner.update)
        | reply_weights(learner)
        | take(14)
    )
    sent: dict[int, list[int]] = {0: [0], 1: [0]}
    for version, sample in enumerate(plan.run(Sim(seed)), start=1):
        # It reflects all that was sent before it was asked for: all but what the last two items brought.
        assert sample.version in sent[sample.shard][-3:]
        sent[sample.shard].append(version)


def test_weights_for_a_batch_go_to_each_of_its_sources() -> None:
    workers, learner = actors(Worker, 3), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync().with_source()
        | batch(2)
        | learner.stage(Learner.update_round)
        | reply_weights(learner)
        | take(3)
    )
    with plan.run() as run:
        assert [[sample.shard for sample in samples] for samples in run] == [[0, 1], [2, 0], [1, 2]]
        assert run.ask(workers, Worker.messages) == [[0, 1, 2], [0, 1, 3], [0, 2, 3]]


# Targets


def test_a_target_follows_after_every_nth_item(engine: EngineName) -> None:
    """Law 9: before the item is delivered, hence before the next update."""
    workers, learner = actors(Worker, 1), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync()
        | learner.stage(Learner.update)
        | update_target(learner, every=3)
        | take(7)
    )
    with plan.run(engine) as run:
        for number, _ in enumerate(run, start=1):
            assert run.ask(learner, Learner.targets) == [list(range(3, number + 1, 3))]


def test_an_error_of_a_target_names_its_line() -> None:
    """Law 20."""

    class Broken:
        def update_target(self) -> None:
            message = "no target"
            raise ValueError(message)

    broken = actors(Broken, 1)
    with pytest.raises(
        StageError, match=r"test_messages.py:\d+: stage update_target\(.*Broken\) failed in .*: no target"
    ):
        list((from_items([1]) | update_target(broken)).run())


# Sends


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
            assert item - len(run._executor.outstanding) <= 500
            assert len(run._executor.outstanding) < 70


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
