"""`Run`: what a user holds of an execution, and that nothing outlives it."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import gc
import os
import time
import weakref
from itertools import islice
from pathlib import Path

import pytest

from pipeflow.dsl import (
    EngineError,
    PlanError,
    StageError,
    Stream,
    actors,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    shuffle,
    take,
)
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.engines.sim import Sim
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Closing, Counter, Failing


def closing_plan(folder: Path) -> Stream[int]:
    return actors(Closing, 1, str(folder)).produce(Closing.pid) | gather_sync()


def assert_closed(folder: Path, pids: list[int]) -> None:
    """Law 21: every actor that was built was closed, and its process is gone within a few seconds."""
    assert sorted(path.name for path in folder.iterdir()) == ["built-0", "closed-0"]
    assert all(is_gone(pid) for pid in pids if pid != os.getpid())


def is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_the_end_of_the_items_closes_a_run(engine: EngineName, tmp_path: Path) -> None:
    """Laws 18 and 21."""
    pids = list((closing_plan(tmp_path) | take(2)).run(engine))
    assert_closed(tmp_path, pids)


def test_leaving_the_block_closes_a_run_whose_items_have_not_ended(
    engine: EngineName, tmp_path: Path
) -> None:
    """Law 21."""
    with closing_plan(tmp_path).run(engine) as run:
        pids = list(islice(run, 2))
    assert_closed(tmp_path, pids)


def test_an_exception_of_the_plan_closes_a_run(engine: EngineName, tmp_path: Path) -> None:
    """Law 21."""
    pids = list[int]()

    def third(pid: int) -> None:
        pids.append(pid)
        if len(pids) == 3:
            message = "stop"
            raise ValueError(message)

    with pytest.raises(StageError, match="ValueError: stop"):
        list(closing_plan(tmp_path).tap(third).run(engine))
    assert_closed(tmp_path, pids)


def test_ctrl_c_closes_a_run_and_is_not_wrapped(engine: EngineName, tmp_path: Path) -> None:
    """Law 21."""
    pids = list[int]()

    def interrupt(pid: int) -> None:
        pids.append(pid)
        if len(pids) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(closing_plan(tmp_path).tap(interrupt).run(engine))
    assert_closed(tmp_path, pids)


def test_the_garbage_collector_closes_a_run(engine: EngineName, tmp_path: Path) -> None:
    """Law 21: nothing inside of a run refers to it."""
    run = closing_plan(tmp_path).run(engine)
    pids = list(islice(run, 2))
    gc.disable()  # it goes with its last reference, not with some later collection
    try:
        del run
        assert_closed(tmp_path, pids)
    finally:
        gc.enable()


def test_a_loop_that_is_left_closes_its_run(tmp_path: Path) -> None:
    """Law 21."""
    for _ in closing_plan(tmp_path).run():
        break
    gc.collect()
    assert_closed(tmp_path, [])


def test_an_error_in_an_actor_closes_all_of_them(engine: EngineName, tmp_path: Path) -> None:
    """Laws 20 and 21."""
    plan = actors(Closing, 1, str(tmp_path)).produce(Closing.fail) | gather_sync()
    with pytest.raises(StageError, match="on purpose"):
        list(plan.run(engine))
    assert_closed(tmp_path, [])


def test_closing_twice_does_no_harm_and_a_closed_run_has_ended(tmp_path: Path) -> None:
    run = closing_plan(tmp_path).run()
    next(run)
    run.close()
    run.close()
    assert list(run) == []
    assert_closed(tmp_path, [])


def test_a_run_that_was_never_asked_has_nothing_to_close(tmp_path: Path) -> None:
    """Law 17."""
    with closing_plan(tmp_path).run():
        pass
    assert list(tmp_path.iterdir()) == []


def test_after_an_error_a_run_has_ended() -> None:
    run = (from_items([1, 0]) | (lambda number: 1 // number)).run()
    assert next(run) == 1
    with pytest.raises(StageError):
        next(run)
    assert list(run) == []


class Tracked:
    """Something whose end can be seen."""


def test_a_closed_run_keeps_its_figures_and_none_of_its_items() -> None:
    made: list[weakref.ref[Tracked]] = []

    def new(_: int) -> Tracked:
        item = Tracked()
        made.append(weakref.ref(item))
        return item

    plan = from_shards([range(9)]) | gather_async() | new | shuffle(4, seed=0)
    run = plan.run()
    del plan
    next(run)
    before = run.stats()
    assert any(item() is not None for item in made)
    run.close()
    assert all(item() is None for item in made)
    assert run.stats().nodes == before.nodes
    assert list(run) == []


def test_a_close_that_raises_is_reported_after_all_actors_were_closed(tmp_path: Path) -> None:
    """Law 20."""
    both = actors(Failing, 1, when_closed=True).produce(Failing.number) & actors(
        Closing, 1, str(tmp_path)
    ).produce(Closing.pid)
    run = (both | gather_sync()).run()
    next(run)
    with pytest.raises(
        StageError, match=r"stage Failing.close failed in Failing\[0\]: ValueError: not closed"
    ):
        run.close()
    assert_closed(tmp_path, [])


def test_a_close_that_raises_hides_no_error_of_the_plan(engine: EngineName) -> None:
    """Law 20."""
    plan = actors(Failing, 1, when_closed=True).produce(Failing.third_fails) | gather_sync()
    with pytest.raises(StageError, match="LookupError: the third") as caught:
        list(plan.run(engine))
    assert "ValueError: not closed" in caught.value.__notes__[0]


def test_ask_calls_a_method_of_every_actor_between_two_items(engine: EngineName) -> None:
    workers = actors(Counter, 2)
    with (workers.produce(Counter.next_number) | gather_sync()).run(engine) as run:
        assert list(islice(run, 3)) == [1, 1, 2]
        assert run.ask(workers, Counter.started) == [2, 2]
        assert next(run) == 2


def test_a_run_in_a_block_can_be_asked_after_its_last_item() -> None:
    workers = actors(Counter, 1, limit=2)
    with (workers.produce(Counter.next_number) | gather_sync()).run() as run:
        assert list(run) == [1, 2]
        assert run.ask(workers, Counter.started) == [2]
        assert list(run) == []


def test_a_closed_run_cannot_be_asked() -> None:
    workers = actors(Counter, 1)
    run = (workers.produce(Counter.next_number) | gather_sync()).run()
    run.close()
    with pytest.raises(RuntimeError, match="the run is closed and its actors are gone"):
        run.ask(workers, Counter.started)


def test_actors_of_another_plan_cannot_be_asked_and_the_run_goes_on() -> None:
    workers, others = actors(Counter, 1), actors(Arithmetic, 1)
    run = (workers.produce(Counter.next_number) | gather_sync()).run()
    with pytest.raises(
        LookupError, match=r"Arithmetic \(.*test_run.py:\d+\) is no group of this plan; .*Counter"
    ):
        run.ask(others, Arithmetic.square)  # type: ignore[arg-type]  # refused by mypy for its argument
    assert next(run) == 1
    run.close()


def test_an_error_of_an_asked_method_names_the_question() -> None:
    """Law 20."""
    failing = actors(Failing, 1)
    run = (failing.produce(Failing.number) | gather_async()).run()
    with pytest.raises(
        StageError, match=r"test_run.py:\d+: stage ask\(Failing.stops\) failed in Failing\[0\]"
    ):
        run.ask(failing, Failing.stops)
    assert list(run) == []


def test_two_runs_of_one_plan_are_independent(engine: EngineName) -> None:
    plan = actors(Counter, 1).produce(Counter.next_number) | gather_sync()
    first, second = plan.run(engine), plan.run(engine)
    assert [next(first), next(first), next(second), next(first)] == [1, 2, 1, 3]
    first.close()
    assert next(second) == 2
    second.close()


def test_one_engine_may_carry_two_runs_at_once() -> None:
    engine = InlineEngine()
    first, second = (
        (from_shards([[1, 2, 3]]) | gather_async(2)).run(engine),
        (from_shards([[4, 5, 6]]) | gather_async(2)).run(engine),
    )
    assert list(zip(first, second, strict=True)) == [(1, 4), (2, 5), (3, 6)]


def test_a_plan_that_uses_a_stream_twice_does_not_run() -> None:
    """Law 26."""
    items = from_shards([[1]])
    both = (items | abs) & (items | repr)
    with pytest.raises(PlanError, match="is used twice"):
        (both | gather_sync()).run()


def test_an_unknown_engine_is_refused_by_name() -> None:
    with pytest.raises(EngineError, match="there is no engine 'spark'; use 'inline' or 'ray', or an engine"):
        from_items([1]).run("spark")  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(40))
def test_an_actor_that_dies_while_it_is_asked_is_asked_again(seed: int) -> None:
    """Law 19: under some of these schedules an actor dies between the question and its answer."""
    counters = actors(Counter, 3).restarts(2)
    with (counters.produce(Counter.next_number) | gather_sync() | take(2)).run(Sim(seed, crashes=2)) as run:
        list(run)
        answers = [run.ask(counters, Counter.started) for _ in range(4)]
    assert all(len(answer) == 3 and all(isinstance(count, int) for count in answer) for answer in answers)
