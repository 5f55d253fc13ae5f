"""Which stages run together in one actor (law 3)."""

from __future__ import annotations

from typing import Any

from pipeflow.dsl import (
    Stage,
    Stream,
    actors,
    batch,
    every,
    flatten,
    from_items,
    from_shards,
    gather_sync,
    stage,
)
from pipeflow.dsl import nodes as nodes
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.trees import walk
from pipeflow.lowering.fusion import consumer_of, shards_of
from pipeflow.lowering.program import Program
from tests.lowering.actors import Arithmetic, Counter, Recorder, Worker


def numbered(root: Node) -> tuple[list[Node], dict[int, int]]:
    order = list(walk(root))
    return order, {id(node): index for index, node in enumerate(order)}


def names(program: Program, order: list[Node]) -> list[str]:
    return [order[step.node].name for step in program.all_steps]


def fused_into_the_last(plan: Stream[Any]) -> tuple[list[str], str]:
    """The names in the program of the plan's last stage, and the node that feeds it."""
    order, number = numbered(plan.node)
    assert isinstance(plan.node, nodes.Place)
    program, upstream = consumer_of(plan.node, number)
    return names(program, order), upstream.name


def test_all_between_a_source_and_its_gather_is_one_program_a_shard() -> None:
    workers = actors(Worker, 2)
    plan = (
        workers.produce(Worker.started)
        | every(2)
        | abs
        | batch(3)
        | flatten()
        | workers.stage(Worker.doubled)
        | gather_sync()
    )
    order, number = numbered(plan.node)
    assert isinstance(plan.node, nodes.Gather)
    shards = shards_of(plan.node.input, number)
    assert [(shard.group, shard.index) for shard in shards] == [(workers.group, 0), (workers.group, 1)]
    for shard in shards:
        assert names(shard.program, order) == [
            "Worker.produce(Worker.started)",
            "every(2)",
            "abs",
            "batch(3)",
            "flatten",
            "Worker.stage(Worker.doubled)",
        ]


def test_the_shards_of_a_union_come_in_the_order_of_its_branches() -> None:
    both = (from_shards([[1], [2]]) | abs) & actors(Counter, 1).produce(Counter.next_number) | repr
    order, number = numbered(both.node)
    found = [
        (shard.group.name, shard.index, names(shard.program, order)) for shard in shards_of(both.node, number)
    ]
    assert found == [
        ("shards", 0, ["from_shards", "abs", "repr"]),
        ("shards", 1, ["from_shards", "abs", "repr"]),
        ("Counter", 0, ["Counter.produce(Counter.next_number)", "repr"]),
    ]


def test_callables_and_expansions_before_a_placed_stage_move_into_its_actor() -> None:
    plan = from_items([1]) | abs | batch(2) | sum | actors(Arithmetic, 1).stage(Arithmetic.square)
    assert fused_into_the_last(plan) == (
        ["abs", "batch(2)", "sum", "Arithmetic.stage(Arithmetic.square)"],
        "from_items",
    )


def test_what_acts_on_the_driver_stays_there() -> None:
    square = actors(Arithmetic, 1).stage(Arithmetic.square)
    alone = ["Arithmetic.stage(Arithmetic.square)"]
    assert fused_into_the_last(from_items([1]) | every(2) | square) == (alone, "every(2)")
    assert fused_into_the_last(from_items([1]).filter(bool) | square) == (alone, "filter(bool)")
    assert fused_into_the_last(from_items([1]).map(abs, here=True) | square) == (alone, "abs")
    assert fused_into_the_last((from_items([1]) & from_items([2])) | square) == (alone, "&")
    left, _ = from_items([1]).fork(2, buffer=1)
    assert fused_into_the_last(left | square) == (alone, "fork(2)[0]")
    assert fused_into_the_last(from_items([1]) | square | square) == (alone, alone[0])


def test_a_pool_takes_nothing_in_since_a_state_would_be_split() -> None:
    plan = from_items([1]) | abs | actors(Arithmetic, 2).stage(Arithmetic.square)
    assert fused_into_the_last(plan) == (["Arithmetic.stage(Arithmetic.square)"], "abs")


def test_a_callable_that_is_given_the_source_stays_where_the_source_is_known() -> None:
    recorder = actors(Recorder, 1)
    sourced = actors(Worker, 1).produce(Worker.started) | gather_sync().with_source()
    plan = sourced | repr | recorder.stage(Recorder.note)
    assert fused_into_the_last(plan) == (["Recorder.stage(Recorder.note)"], "repr")


def test_composed_stages_are_the_same_plan_as_stages_in_a_row() -> None:
    """Law 3."""
    first: Stage[int, int] = stage(abs)
    second: Stage[int, float] = stage(float)
    row = from_items([1]) | first | second
    composed = from_items([1]) | (first | second)
    assert list(row.run()) == list(composed.run()) == [1.0]
