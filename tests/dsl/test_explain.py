"""The pictures of a plan: indented text, a Mermaid flowchart, and `repr`."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import re
import textwrap

import pytest

from pipeflow.dsl import (
    PlanError,
    Stage,
    actors,
    batch,
    drain,
    from_items,
    from_shards,
    gather_async,
    gather_rounds,
    gather_sync,
    reply_weights,
    stage,
    sync_weights,
)


class Item:
    pass


class Worker:
    def sample(self) -> Item:
        return Item()

    def set_weights(self, weights: int, /) -> None:
        pass


class Learner:
    def update(self, item: Item) -> float:
        return 0.0

    def weights(self) -> int:
        return 0


def text(number: int) -> str:
    return str(number)


class Doubler:
    def double(self, number: int) -> int:
        return 2 * number


def without_sites(text: str) -> str:
    return re.sub(r" +[^ ]*test_explain.py:\d+$", "", text, flags=re.MULTILINE)


def shown(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_a_chain_is_explained_from_its_output_to_its_source() -> None:
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync()
        | learner.stage(Learner.update)
        | sync_weights(learner, workers, every=3)
    )
    assert without_sites(plan.explain()) == shown(
        """
        sync_weights(Learner, Worker, every=3)  Stream[float]
        Learner.stage(Learner.update)           Stream[float]
        gather_sync()                           Stream[Item]
        Worker.produce(Worker.sample)           ParallelStream[Item]
        """
    )
    assert all(re.search(r"  \S*test_explain.py:\d+$", line) for line in plan.explain().splitlines())


def test_branches_are_drawn_as_a_tree_and_a_fork_is_drawn_once() -> None:
    left, right = from_items([1, 2]).fork(2, buffer=1)
    plan = ((left | batch(2) | drain) & (right | (lambda x: x))).round_robin(1, 2)
    assert without_sites(plan.explain()) == shown(
        """
        round_robin    Stream[?]
        ├─ drain       Stream[Never]
        │  batch(2)    Stream[list[int]]
        │  fork(2)[0]  Stream[int]
        │  fork(2)     Stream[int]
        │  from_items  Stream[int]
        └─ lambda      Stream[?]
           fork(2)[1]  Stream[int]
           fork(2)     Stream[int]
        """
    )


def test_sourced_items_are_shown_as_such() -> None:
    plan = actors(Worker, 1).produce(Worker.sample) | gather_async(2).with_source()
    assert without_sites(plan.explain()).splitlines()[0] == (
        "gather_async(2).with_source()  Stream[Sourced[Item, Worker]]"
    )


def test_names_of_the_user_s_are_shown() -> None:
    absolute: Stage[int, int] = stage(abs)
    normalise = absolute.named("normalise")
    plan = (from_shards([[1]]).named("data") | normalise | gather_sync().named("round")).named("all")
    assert without_sites(plan.explain()) == shown(
        """
        all        Stream[?]
        normalise  ParallelStream[?]
        data       ParallelStream[int]
        """
    )


def test_a_plan_is_a_flowchart_with_the_types_on_its_edges() -> None:
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_sync()
        | learner.stage(Learner.update)
        | sync_weights(learner, workers)
    )
    both = (plan & from_items(['say "so"']).named('a "name"')).async_()
    assert both.to_mermaid() == (
        shown(
            """
            flowchart TD
                n0{{"Worker.produce(Worker.sample)"}}
                n1(["gather_sync()"])
                n2[["Learner.stage(Learner.update)"]]
                n3["sync_weights(Learner, Worker)"]
                n4["a #quot;name#quot;"]
                n5(["&"])
                n0 -->|"Item"| n1
                n1 -->|"Item"| n2
                n2 -->|"float"| n3
                n3 -->|"float"| n5
                n4 -->|"str"| n5
                n3 -.->|"weights"| n0
            """
        )
        + "\n"
    )


def test_weights_that_go_to_the_source_are_drawn_as_well() -> None:
    workers, learner = actors(Worker, 2), actors(Learner, 1)
    plan = (
        workers.produce(Worker.sample)
        | gather_async().with_source()
        | learner.stage(Learner.update)
        | reply_weights(learner, every=2)
    )
    edges = [line.strip() for line in plan.to_mermaid().splitlines() if "-.->" in line]
    assert edges == ['n3 -.->|"weights"| n0']
    assert "reply_weights(Learner, every=2)  Stream[float]" in plan.explain()


def test_what_is_spread_and_gathered_again_is_shown_with_its_types() -> None:
    workers = actors(Worker, 2)
    plan = (
        (from_items([1, 2]) | workers.broadcast() | text | gather_rounds())
        .zip(from_items(["a"]))
        .named("pairs")
    )  # fmt: skip
    assert without_sites(plan.explain()) == shown(
        """
        pairs                  Stream[tuple[list[str], str]]
        ├─ gather_rounds()     Stream[list[str]]
        │  text                ParallelStream[str]
        │  Worker.broadcast()  ParallelStream[int]
        │  from_items          Stream[int]
        └─ from_items          Stream[str]
        """
    )


def test_a_repeated_stage_is_shown_as_often_as_it_runs() -> None:
    plan = from_items([1]) | actors(Doubler, 1).stage(Doubler.double).repeat(2)
    assert without_sites(plan.explain()) == shown(
        """
        Doubler.stage(Doubler.double) 2/2  Stream[int]
        Doubler.stage(Doubler.double) 1/2  Stream[int]
        from_items                         Stream[int]
        """
    )


def test_a_stream_shows_its_type_its_last_stage_and_its_line() -> None:
    plan = from_items([1]) | batch(2)
    assert re.fullmatch(r"<Stream\[list\[int\]\] batch\(2\) at tests/dsl/test_explain.py:\d+>", repr(plan))
    shards = from_shards([[1]])
    assert re.fullmatch(r"<ParallelStream\[int\] from_shards at \S+:\d+>", repr(shards))


def test_operators_and_actors_show_what_they_are() -> None:
    assert repr(batch(2)) == "<Batch batch(2)>"
    assert repr(stage(abs)) == "<Stage abs>"
    assert repr(gather_sync().with_source()) == "<SourcedGather gather_sync().with_source()>"
    assert repr(actors(Learner, 1).stage(Learner.update)) == "<Placed Learner.stage(Learner.update)>"
    assert re.fullmatch(
        r"<Actors\[Worker\] 3 left at \S+test_explain.py:\d+>", repr(actors(Worker, 3).named("left"))
    )


def test_a_plan_that_uses_a_stream_twice_is_not_drawn() -> None:
    """Law 26."""
    items = from_shards([[1]])
    twice = ((items | abs) & (items | abs)) | gather_sync()
    for draw in (twice.explain, twice.to_mermaid):
        with pytest.raises(PlanError, match="is used twice"):
            draw()
