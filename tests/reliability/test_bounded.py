"""Memory, threads and queues do not grow with the items that pass, for every operator of the DSL."""

from __future__ import annotations

import inspect
import threading
from collections import deque
from collections.abc import Callable

import pytest

import pipeflow
from pipeflow import Stream, buffer, gather_async, gather_sync
from pipeflow.dsl import nodes
from pipeflow.dsl.trees import walk
from pipeflow.lowering.engines.sim import Sim
from tests.reliability.actors import Maker
from tests.reliability.gauges import Gauge
from tests.reliability.plans import PLANS, Parts, held_up, is_even

# Blocks that may come and go between two readings: frames, what waits in the plan, caches of the interpreter.
SLACK = 100


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("items", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_an_operator_holds_no_more_after_many_items(name: str, items: int) -> None:
    gauge = Gauge(items // 10, items)
    threads = threading.active_count()
    deque(PLANS[name](Parts(gauge)).run(), maxlen=0)
    assert gauge.growth < SLACK
    assert threading.active_count() == threads


def test_a_stage_that_keeps_its_items_is_found_out() -> None:
    kept = list[object]()
    gauge = Gauge(200, 2_000)
    deque(Parts(gauge).items.tap(kept.append).run(), maxlen=0)
    assert gauge.growth > 1_500


def test_every_node_that_a_plan_can_have_is_in_one_of_them() -> None:
    parts = [plan(Parts(Gauge(1, 2))) for plan in PLANS.values()]
    used = {type(node) for plan in parts for node in walk(plan.node)}
    known = {
        kind
        for _, kind in inspect.getmembers(nodes, inspect.isclass)
        if issubclass(kind, nodes.Node) and kind not in (nodes.Node, nodes.OneInput)
    }
    assert known - used == set()


def test_every_function_that_makes_part_of_a_stream_has_a_plan() -> None:
    others = {"actors", "current_shard", "group_of", "groups_with"}
    makers = {name for name in pipeflow.__all__ if inspect.isfunction(getattr(pipeflow, name))} - others
    assert makers - PLANS.keys() == set()


# What runs ahead of a consumer that is slower; its name, and the most that may wait in it.
QUEUES: list[tuple[Callable[[Parts], Stream[object]], str, int]] = [
    (lambda p: p.shards | gather_async(4), "gather_async(4)", 2 * 4),
    (lambda p: (p.items | buffer(16)).zip(p.shards | gather_sync()), "buffer(16)", 16),
    (lambda p: p.items | p.others.stage(Maker.take).max_in_flight(6), "others.stage(Maker.take)", 6),
    (
        lambda p: p.items | p.others.stage(Maker.take).max_in_flight(6).unordered(),
        "others.stage(Maker.take)",
        6,
    ),
    (lambda p: held_up(p.items.fork(2, buffer=8)), "fork(2)[1]", 8),
    (lambda p: held_up(p.items.partition(is_even, buffer=8)), "partition(is_even)[1]", 8),
]


@pytest.mark.parametrize(("plan", "node", "most"), QUEUES, ids=[node for _, node, _ in QUEUES])
@pytest.mark.parametrize("seed", range(2))
def test_a_queue_fills_to_its_bound_and_no_further_whatever_finishes_first(
    plan: Callable[[Parts], Stream[object]], node: str, most: int, seed: int
) -> None:
    longest = 0
    with plan(Parts(Gauge(100, 500))).run(Sim(seed)) as run:
        for _ in run:
            longest = max(longest, *(one.queue for one in run.stats().nodes if one.name == node))
    assert most - 1 <= longest <= most
