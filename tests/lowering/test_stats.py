"""What a run counts: items in and out exactly, busy and waiting time where they must be."""

from __future__ import annotations

import time
from itertools import islice

import pytest

from pipeflow.dsl import actors, batch, drain, every, from_items, from_shards, gather_async, gather_sync
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.engines.sim import Sim
from pipeflow.lowering.stats import NodeStats, RunStats
from tests.conftest import EngineName
from tests.lowering.actors import Arithmetic, Recorder


def slow(number: int) -> int:
    time.sleep(0.01)
    return number


class Slow:
    def make(self) -> int:
        return slow(1)


def test_every_node_counts_its_items_wherever_it_runs(engine: EngineName) -> None:
    plan = (
        from_shards([[1, 2, 3, 4, 5, 6]])
        | every(2)
        | slow
        | gather_sync()
        | batch(2)
        | sum
        | actors(Arithmetic, 1).stage(Arithmetic.square)
    ).tap(lambda number: None)
    run = plan.run(engine)
    assert list(run) == [36, 36]  # 2 4, and then 6 alone
    counts = {node.name: (node.items_in, node.items_out) for node in run.stats().nodes}
    assert counts == {
        "from_shards": (0, 6),
        "every(2)": (6, 3),
        "slow": (3, 3),
        "gather_sync()": (3, 3),
        "batch(2)": (3, 2),
        "sum": (2, 2),
        "Arithmetic.stage(Arithmetic.square)": (2, 2),
        "tap(lambda)": (2, 2),
    }
    assert run.stats().engine == engine
    assert run.stats()["slow"].busy_seconds >= 0.03
    assert run.stats()["gather_sync()"].waiting_seconds > 0
    assert run.stats()["Arithmetic.stage(Arithmetic.square)"].waiting_seconds > 0


def test_unions_forks_and_drains_count_what_passes_them() -> None:
    left, right = from_items(range(4)).fork(2, buffer=4)
    high, low = right.partition(lambda number: number > 0, buffer=4)
    plan = (left & (high | drain) & low).round_robin()
    run = plan.run()
    assert sorted(run) == [0, 0, 1, 2, 3]
    counts = {node.name: (node.items_in, node.items_out) for node in run.stats().nodes}
    name = next(name for name in counts if name.startswith("partition") and not name.endswith("]"))
    assert counts == {
        "from_items": (4, 4),
        "fork(2)": (4, 8),
        "fork(2)[0]": (4, 4),
        "fork(2)[1]": (4, 4),
        name: (4, 4),
        f"{name}[0]": (3, 3),
        f"{name}[1]": (1, 1),
        "drain": (3, 0),
        "round_robin": (5, 5),
    }


def test_a_stage_on_the_driver_counts_its_time() -> None:
    run = (from_items([1, 2]) | slow).run()
    list(run)
    assert 0.02 <= run.stats()["slow"].busy_seconds < 1


def test_the_queue_is_what_is_finished_or_in_flight_and_not_delivered() -> None:
    run = (
        from_shards([range(9), range(9)])
        | gather_async(3)
        | actors(Recorder, 1).stage(Recorder.note_number).max_in_flight(2)
    ).run()
    assert len(list(islice(run, 1))) == 1
    assert run.stats()["gather_async(3)"].queue <= 6
    assert run.stats()["Recorder.stage(Recorder.note_number)"].queue <= 2
    assert (
        run.stats()["gather_async(3)"].queue + run.stats()["Recorder.stage(Recorder.note_number)"].queue > 0
    )
    run.close()


def test_a_name_that_is_not_of_exactly_one_node_is_refused_with_the_names_there_are() -> None:
    stats = (from_items([1]) | abs | abs).run().stats()
    with pytest.raises(KeyError, match="2 nodes are named 'abs'; the names are"):
        stats["abs"]
    with pytest.raises(KeyError, match="0 nodes are named 'absolute'"):
        stats["absolute"]


def test_the_figures_print_as_a_table_with_the_bottleneck_marked_and_named() -> None:
    stats = RunStats(
        "inline",
        (
            NodeStats("from_items", "flows/plan.py:3", 4, 4, 0.5, 0.0, 0),
            NodeStats("normalise", "flows/plan.py:4", 4, 3, 1.25, 0.125, 10),
        ),
        wall_seconds=2.5,
    )
    assert str(stats) == (
        "  node        in  out  busy s  busy  waiting s  queue  written at\n"
        "  from_items   4    4   0.500   20%      0.000      0  plan.py:3\n"
        "> normalise    4    3   1.250   50%      0.125     10  plan.py:4\n"
        "bottleneck: normalise (plan.py:4), the driver busy 70%\n"
        'try: make it cheaper; on engine "ray", place it on an actor'
    )


def test_a_run_that_did_nothing_prints_without_a_bottleneck() -> None:
    lines = str((from_items([1]) | abs).run().stats()).splitlines()
    assert [line.split()[:2] for line in lines] == [["node", "in"], ["from_items", "0"], ["abs", "0"]]


def test_the_time_with_the_reader_is_counted_apart_and_ends_with_the_run() -> None:
    with (from_items([1, 2]) | slow).run() as run:
        assert run.stats().wall_seconds == 0
        for _ in run:
            time.sleep(0.02)
    stats = run.stats()
    assert stats.reading_seconds >= 0.04
    assert stats.wall_seconds - stats.reading_seconds >= 0.02
    assert run.stats() == stats


@pytest.mark.parametrize("engine", [InlineEngine(), Sim(seed=3)], ids=["inline", "sim"])
def test_user_code_is_timed_wherever_it_runs_also_under_simulated_time(engine: Engine) -> None:
    workers = actors(Slow, 2)
    with (workers.produce(Slow.make) | gather_async() | slow).run(engine) as run:
        next(run)
    stats = run.stats()
    assert stats["slow"].busy_seconds >= 0.01
    assert [group.busy_seconds >= 0.01 for group in stats.groups] == [True]
    assert stats.wall_seconds >= sum(node.busy_seconds for node in stats.nodes)


def test_a_resumed_run_goes_on_counting_where_the_other_stood() -> None:
    plan = actors(Slow, 2).produce(Slow.make) | gather_async() | slow
    with plan.run() as run:
        next(run)
        checkpoint = run.checkpoint()
        before = run.stats()
    with plan.run(resume=checkpoint) as resumed:
        at_once = resumed.stats()
        next(resumed)
        after = resumed.stats()
    assert at_once.groups == before.groups
    assert at_once.wall_seconds <= before.wall_seconds < after.wall_seconds
    assert after.groups[0].busy_seconds > before.groups[0].busy_seconds
