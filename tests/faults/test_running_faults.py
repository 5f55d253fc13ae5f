"""Faults of RLlib Flow in how a plan runs and is counted: numbers 11, 15, 16, 22 and 23 of its table."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from pipeflow import (
    Stream,
    actors,
    batch,
    drain,
    from_items,
    from_shards,
    gather_async,
    gather_sync,
    take,
    throttle,
)
from pipeflow.lowering.engines.sim import Sim
from pipeflow.semantics.events import Delivered
from tests.conftest import EngineName
from tests.faults.actors import Interval, Sleeper
from tests.lowering.actors import Closing, Counter


def slow_actors() -> Stream[Interval]:
    return actors(Sleeper, 2, "a", 0.4).produce(Sleeper.work) | gather_async() | take(4)


def slow_clock() -> Stream[int]:
    return from_items([1, 2, 3]) | throttle(0.3)


@pytest.mark.ray
@pytest.mark.parametrize("plan", [slow_actors, slow_clock])
def test_fault_11_a_driver_that_waits_uses_no_cpu(
    plan: Callable[[], Stream[object]], ray_runtime: None
) -> None:
    """Flow's driver polled."""
    run = plan().run("ray")
    next(run)  # after the actors have started
    cpu, wall = time.process_time(), time.monotonic()
    list(run)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    assert wall > 0.3
    assert cpu < 0.25 * wall


@pytest.mark.ray
def test_fault_15_branches_in_actors_of_their_own_work_at_the_same_time(ray_runtime: None) -> None:
    """Flow's Concurrently took turns in one thread. Here the driver only hands references on."""
    a, b = (actors(Sleeper, 1, name, 0.2).produce(Sleeper.work) | gather_async() | take(3) for name in "ab")
    found = list((a & b).run("ray"))
    intervals = {name: [(begun, ended) for of, begun, ended in found if of == name] for name in "ab"}
    overlaps = [
        max(begun, other_begun) < min(ended, other_ended)
        for begun, ended in intervals["a"]
        for other_begun, other_ended in intervals["b"]
    ]
    assert any(overlaps)


def test_fault_16_the_figures_of_a_run_are_its_own_also_inside_of_another(engine: EngineName) -> None:
    """Flow kept them in a context of the thread, by name: a plan that ran another wrote into its counters."""

    def inner(number: int) -> int:
        run = (from_items(range(number)) | batch(1)).run()
        inner_total = len(list(run))
        assert run.stats()["batch(1)"].items_out == number
        return inner_total

    outer = from_shards([[3, 4]]) | gather_sync()
    with outer.map(inner, here=True).run(engine) as run:
        assert list(run) == [3, 4]
        assert [(node.items_in, node.items_out) for node in run.stats().nodes] == [(0, 2), (2, 2), (2, 2)]


def test_fault_22_a_plan_shows_its_stages_types_and_lines() -> None:
    """Flow's plan was a chain of closures, of which nobody could see, name or step anything."""
    plan = (from_shards([[1, 2, 3, 4]]) | batch(2)).named("pairs") | gather_sync()
    lines = plan.explain().splitlines()
    assert [re.split(r"  +", line)[:2] for line in lines] == [
        ["gather_sync()", "Stream[list[int]]"],
        ["pairs", "ParallelStream[list[int]]"],
        ["from_shards", "ParallelStream[int]"],
    ]
    assert all(re.search(r"test_running_faults.py:\d+$", line) for line in lines)
    assert plan.to_mermaid().startswith("flowchart TD")


def test_fault_22_a_run_can_be_stepped_counted_and_read_back() -> None:
    plan = from_shards([[1, 2, 3, 4]]) | batch(2) | gather_sync()
    with plan.run(Sim(0), record=True) as run:
        assert next(run) == [1, 2]
        assert run.stats()["batch(2)"].items_out == 1
        assert next(run) == [3, 4]
        delivered = [event for event in run.trace if isinstance(event, Delivered)]
    assert len(delivered) == 2


def test_fault_23_building_a_plan_does_nothing_and_a_run_ends_with_all_that_it_started(
    engine: EngineName, tmp_path: Path
) -> None:
    """Flow's construction sent weights, filled buffers and started threads, which were leaked."""
    folder = tmp_path / "actors"
    folder.mkdir()
    workers = actors(Closing, 2, str(folder))
    stored = workers.produce(Closing.pid) | gather_async(2) | drain
    plan = (stored & (workers.produce(Closing.pid) | gather_sync())).round_robin(1, 1)
    run = plan.run(engine)
    assert list(folder.iterdir()) == []
    with run:
        pids = set(islice(run, 4))
        assert sorted(path.name for path in folder.iterdir()) == ["built-0", "built-1"]
    assert sorted(path.name for path in folder.iterdir()) == ["built-0", "built-1", "closed-0", "closed-1"]
    if engine == "ray":
        deadline = time.monotonic() + 10
        while any(_lives(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(_lives(pid) for pid in pids)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_fault_23_an_engine_is_started_by_the_first_item() -> None:
    """Law 17."""
    counters = actors(Counter, 1)
    with (counters.produce(Counter.next_number) | gather_async(4)).run() as run:
        assert run.ask(counters, Counter.started) == [0]
    assert os.getpid() > 0
