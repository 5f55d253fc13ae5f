"""The watch over actors that start and calls that run, on a clock of the test's."""

from __future__ import annotations

from pipeflow import actors
from pipeflow.lowering.engine import Actor
from pipeflow.lowering.engines.inline import LocalActor
from pipeflow.lowering.engines.watch import Watch
from pipeflow.lowering.host import Host
from tests.lowering.actors import Counter

GROUP = actors(Counter, 1).time_limit(4.0).group


class Bench:
    """A watch, its clock, and what is finished."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done = set[str]()
        self.watch: Watch[str] = Watch(
            lambda refs: [ref for ref in refs if ref in self.done], lambda: self.now
        )
        self.actor: Actor = LocalActor("Counter[0]", Host(0))
        self.watch.started(self.actor, "up", GROUP)

    def at(self, time: float) -> list[str]:
        self.now = time
        return [call.ref for call in self.watch.look()]


def test_the_time_to_come_up_is_no_part_of_a_call() -> None:
    bench = Bench()
    bench.watch.called(bench.actor, "build", [])
    assert bench.at(100.0) == []
    assert bench.watch.not_up(99.0) == (bench.actor, GROUP)
    bench.done.add("up")
    assert bench.at(101.0) == []
    assert bench.watch.not_up(99.0) is None
    assert bench.at(105.0) == []
    assert bench.at(105.6) == ["build"]


def test_a_call_begins_when_the_one_before_it_came_back() -> None:
    bench = Bench()
    bench.done.add("up")
    bench.watch.called(bench.actor, "a", [])
    bench.watch.called(bench.actor, "b", [])
    assert bench.at(1.0) == []
    bench.now = 4.0
    bench.watch.answered(bench.actor, "a")
    assert bench.at(7.9) == []
    assert bench.at(8.5) == ["b"]


def test_what_has_finished_unseen_is_not_overdue() -> None:
    bench = Bench()
    bench.done |= {"up", "a"}
    bench.watch.called(bench.actor, "a", [])
    assert bench.at(1.0) == []
    assert bench.at(60.0) == []


def test_a_call_has_all_of_its_time_after_what_it_waited_for() -> None:
    bench = Bench()
    bench.done.add("up")
    bench.watch.called(bench.actor, "message", ["weights"])
    assert bench.at(1.0) == []
    assert bench.at(6.0) == []
    bench.done.add("weights")
    assert bench.at(11.0) == []
    assert bench.at(14.9) == []
    assert bench.at(15.5) == ["message"]


def test_an_actor_that_is_gone_is_watched_no_more() -> None:
    bench = Bench()
    bench.watch.called(bench.actor, "a", [])
    bench.watch.ended(bench.actor)
    assert not bench.watch.active
    bench.watch.called(bench.actor, "b", [])
    bench.watch.answered(bench.actor, "b")
    assert bench.at(99.0) == []
