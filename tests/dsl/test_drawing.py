"""The drawing of a plan: one lane a branch, which part at forks and come together at unions."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import re
import textwrap

from pipeflow.dsl import Stream, actors, drain, from_items, from_shards, gather_async, gather_sync
from pipeflow.dsl.drawing import draw
from pipeflow.dsl.nodes import Node


def place(node: Node) -> str:
    return "shards" if node.parallel else "driver"


def lanes(plan: Stream[object]) -> str:
    """The drawing without where stages run and where they were written."""
    drawn = draw(plan.node, place)
    return re.sub(r" +(shards|driver)  test_drawing.py:\d+$", "", drawn, flags=re.MULTILINE)


def shown(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_a_stage_has_its_place_and_its_line_and_shards_a_double_one() -> None:
    plan = from_shards([[1], [2]]) | gather_sync()
    line = plan.node.site.line
    assert draw(plan.node, place) == shown(
        f"""
        ●  from_shards    shards  test_drawing.py:{line}
        ║    int
        ●  gather_sync()  driver  test_drawing.py:{line}
        │    int
        """
    )


def test_the_branches_of_a_union_are_lanes_and_a_drained_one_is_dotted() -> None:
    plan = ((from_items([1]) | drain) & (from_items(["a"]) | str.upper) & from_items([2])).round_robin()
    assert lanes(plan) == shown(
        """
        ●      from_items
        │        int
        ●      drain
        ┊        nothing
        ┊ ●    from_items
        ┊ │      str
        ┊ ●    str.upper
        ┊ │      ?
        ┊ │ ●  from_items
        ┊ │ │    int
        ├─┴─╯
        ●      round_robin
        │        ?
        """
    )


def test_a_fork_parts_and_a_lane_in_between_is_crossed() -> None:
    one, two = from_items([1]).fork(2, buffer=1)
    plan = ((one & from_items([2])).round_robin() & two).round_robin()
    assert lanes(plan) == shown(
        """
        ●      from_items
        │        int
        ●      fork(2)
        ├─╮      int
        ● │    fork(2)[0]
        │ │      int
        │ │ ●  from_items
        │ │ │    int
        ├─┼─╯
        ● │    round_robin
        │ │      int
        │ ●    fork(2)[1]
        │ │      int
        ├─╯
        ●      round_robin
        │        int
        """
    )


class Worker:
    def make(self) -> int:
        return 1


def test_items_with_their_source_are_shown_as_such() -> None:
    plan = actors(Worker, 1).produce(Worker.make) | gather_async(1).with_source()
    assert lanes(plan).splitlines()[-1] == "│    Sourced[int, Worker]"
