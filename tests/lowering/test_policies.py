"""What a group's policies make of failures, under many schedules of the simulation and inline."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from pipeflow import (
    ActorDiedError,
    Actors,
    PlanError,
    StageError,
    Stream,
    actors,
    from_items,
    gather_async,
    gather_sync,
    sync_weights,
    take,
)
from pipeflow.lowering.engines.sim import Sim
from pipeflow.semantics.laws import check
from tests.lowering.actors import Counter, Learner, Recorder, Worker


def trained(workers: Actors[Worker], learner: Actors[Learner]) -> Stream[Any]:
    """`Any`: what it makes is of no concern."""
    return (
        workers.produce(Worker.sample)
        | gather_async(2)
        | learner.stage(Learner.update)
        | sync_weights(learner, workers)
        | take(12)
    )


def rounds(workers: Actors[Worker], learner: Actors[Learner]) -> Stream[Any]:
    """`Any`: likewise."""
    return (
        workers.produce(Worker.sample)
        | gather_sync()
        | learner.stage(Learner.update)
        | sync_weights(learner, workers)
        | take(12)
    )


@pytest.mark.parametrize("make", [trained, rounds])
@pytest.mark.parametrize("policy", ["restart", "drop_shard"])
@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_under_any_schedule_of_errors_and_deaths_all_laws_hold(
    make: Callable[[Actors[Worker], Actors[Learner]], Stream[Any]], policy: Any, seed: int
) -> None:
    """Laws 19 and 20 with the others."""
    workers = actors(Worker, 3).restarts(4).on_error(policy)
    learner = actors(Learner, 1).restarts(4).on_error("restart")
    run = make(workers, learner).run(Sim(seed, crashes=2, errors=2), record=True)
    assert len(list(run)) == 12
    assert check(run.trace) == []


@pytest.mark.parametrize("policy", ["restart", "drop_shard"])
@pytest.mark.parametrize("seed", range(30))
def test_the_laws_hold_as_well_where_no_restart_or_no_other_worker_is_left(policy: Any, seed: int) -> None:
    workers, learner = actors(Worker, 2).restarts(1).on_error(policy), actors(Learner, 1)
    run = trained(workers, learner).run(Sim(seed, crashes=3, errors=3), record=True)
    with contextlib.suppress(StageError, ActorDiedError):
        assert len(list(run)) == 12
    assert check(run.trace) == []


def test_an_error_that_is_to_restart_loses_its_item_only() -> None:
    class Sometimes:
        def half(self, number: int) -> int:
            if number % 2:
                raise ValueError(number)
            return number // 2

    group = actors(Sometimes, 1).restarts(3).on_error("restart")
    with (from_items(range(6)) | group.stage(Sometimes.half)).run() as run:
        assert list(run) == [0, 1, 2]
        assert (run.stats().restarts, run.stats().lost, run.stats().given_up) == (3, 3, ())


def test_with_no_restart_left_the_error_ends_the_run() -> None:
    class Broken:
        def number(self) -> int:
            raise ValueError("broken")

    group = actors(Broken, 1).restarts(2).on_error("restart")
    with pytest.raises(StageError, match="ValueError: broken"):
        list((group.produce(Broken.number) | gather_sync()).run())


def test_what_the_user_asks_raises_to_the_user() -> None:
    class Polite:
        def number(self) -> int:
            return 1

        def refuse(self) -> int:
            raise ValueError("no")

    group = actors(Polite, 1).restarts(2).on_error("restart")
    run = (group.produce(Polite.number) | gather_sync()).run()
    with pytest.raises(StageError, match=r"stage ask\(Polite.refuse\) failed"):
        run.ask(group, Polite.refuse)


def test_messages_go_on_without_an_actor_that_was_given_up() -> None:
    class Picky:
        def __init__(self) -> None:
            self.taken = list[int]()

        def take(self, number: int) -> None:
            from pipeflow import current_shard

            if number == 2 and current_shard() == 0:
                raise ValueError(number)
            self.taken.append(number)

        def all(self) -> list[int]:
            return self.taken

    group = actors(Picky, 2).on_error("drop_shard")
    with (from_items(range(5)) | group.send(Picky.take)).run() as run:
        assert list(run) == [0, 1, 2, 3, 4]
        assert run.stats().given_up == ("Picky[0]",)
        assert run.ask(group, Picky.all) == [[0, 1, 2, 3, 4]]


def test_inline_a_call_that_took_too_long_counts_as_a_death_when_it_returns() -> None:
    class Slow:
        def __init__(self) -> None:
            self.count = 0

        def number(self) -> int:
            self.count += 1
            time.sleep(0.05 if self.count == 2 else 0.0)
            return self.count

    group = actors(Slow, 1).time_limit(0.04)
    with pytest.raises(ActorDiedError, match=r"Slow\[0\] died .* longer than its time limit of 0.04 s"):
        list((group.produce(Slow.number) | gather_sync()).run())
    with (group.restarts(1).produce(Slow.number) | gather_sync()).run() as run:
        assert [next(run), next(run)] == [1, 1]
        assert run.stats().restarts == 1


@pytest.mark.parametrize("seed", range(20))
def test_in_the_simulation_time_limits_go_by_its_clock_and_the_laws_hold(seed: int) -> None:
    workers, learner = actors(Worker, 3).time_limit(0.02).restarts(40), actors(Learner, 1)
    run = trained(workers, learner).run(Sim(seed), record=True)
    assert len(list(run)) == 12
    assert check(run.trace) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: actors(Counter, 1).on_error("drop_shard").produce(Counter.next_number) | gather_sync(),
            r"^Counter \(\S+:\d+\): on_error\(.drop_shard.\) would leave no actor of a group of one",
        ),
        (
            lambda: actors(Counter, 2).on_error("restart").produce(Counter.next_number) | gather_sync(),
            r"^Counter \(\S+:\d+\): on_error\(.restart.\) needs restarts",
        ),
        (
            lambda: from_items([1]) | actors(Counter, 2).on_error("drop_shard").stage(Counter.scaled),
            r"is for actors that are shards, but Counter.stage\(Counter.scaled\) \(\S+:\d+\) needs all of them",
        ),
        (
            lambda: rounds(actors(Worker, 2), actors(Learner, 1).on_error("drop_shard")),
            r"^Learner .* would leave no actor of a group of one",
        ),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_name_and_line(
    make: Callable[[], Stream[Any]], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        make().run()


def test_policies_are_copies_and_bad_ones_are_refused() -> None:
    plain = actors(Recorder, 2)
    chosen = plain.restarts(1).on_error("restart").time_limit(3)
    assert (plain.group.on_error, plain.group.time_limit) == ("raise", None)
    assert (chosen.group.on_error, chosen.group.time_limit, chosen.group.restarts) == ("restart", 3, 1)
    with pytest.raises(
        ValueError, match=r"^on_error\(policy\) must be one of raise, restart, drop_shard, got"
    ):
        plain.on_error("no")  # type: ignore[arg-type]  # refused by the checkers as well
    with pytest.raises(ValueError, match=r"^time_limit\(seconds\) must be positive, got 0"):
        plain.time_limit(0)


def test_weights_for_a_busy_worker_do_not_pile_up_and_the_newest_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Laws 7 and 9: what is started after a broadcast reflects it, however many there were."""
    monkeypatch.setattr("pipeflow.lowering.broadcasts._WEIGHTS_AHEAD", 1)
    for seed in range(30):
        workers, learner = actors(Worker, 3), actors(Learner, 1)
        run = trained(workers, learner).run(Sim(seed, crashes=0), record=True)
        list(run)
        assert check(run.trace) == []
