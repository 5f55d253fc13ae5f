"""The simulation: the inline engine under a seeded scheduler, which decides what finishes when and who dies.

One thread, a virtual clock and no sleeping, so hundreds of schedules a second of a small plan. The executor is
the one that runs on Ray; a schedule that breaks a plan is a seed that replays it, in a debugger too.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from typing_extensions import override

from pipeflow.lowering.engine import Actor, Call
from pipeflow.lowering.engines.inline import InlineEngine, LocalActor, LocalCall
from pipeflow.lowering.host import Answer, Host
from pipeflow.lowering.program import Status


class Chooser(Protocol):
    """What makes the decisions of a schedule: a seeded generator, hypothesis, or the record of another run."""

    def choose(self, options: Sequence[str]) -> int:
        """The index of one of the options; there are at least two."""
        ...


class SeededChooser:
    """Every option equally likely, from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, options: Sequence[str]) -> int:
        """The index of one of the options."""
        return self._random.randrange(len(options))


class Sim(InlineEngine):
    """A seeded simulation.

    Args:
        seed: of the schedule; the same seed gives the same run.
        crashes: how many actors may die in the run, each at a moment that the schedule decides.
        chooser: decides in place of the seed.
    """

    def __init__(self, seed: int = 0, *, crashes: int = 0, chooser: Chooser | None = None) -> None:
        self._chooser = SeededChooser(seed) if chooser is None else chooser
        self._seed = seed
        self._crashes_left = crashes
        self._queues: dict[Actor, deque[LocalCall]] = {}
        self._dead: set[Actor] = set()
        self._clock = 0.0

    @property
    @override
    def name(self) -> str:
        return f"sim(seed={self._seed})"

    @override
    def start(self, name: str, index: int, resources: dict[str, float]) -> Actor:
        actor = LocalActor(name, Host(index))
        self._queues[actor] = deque()
        return actor

    @override
    def submit(self, actor: Actor, method: Callable[..., Answer], *args: Any, apart: bool = False) -> Call:
        assert isinstance(actor, LocalActor)
        call = LocalCall(actor, method, args)
        self._queues[actor].append(call)
        return call

    @override
    def travels_together(self, actor: Actor, seconds: float) -> bool:
        return self._yes(f"several calls to {actor.name}", f"one call to {actor.name}")

    @override
    def wait(self, calls: Sequence[Call], timeout: float | None, needed: int = 1) -> Sequence[Call]:
        wanted = set(calls)
        finished: list[Call] = self._lost([call for call in calls if call.actor in self._dead])
        if timeout == 0 and self._yes("see nothing", "look"):
            return finished
        while not finished or self._yes("another finishes", "the driver looks"):
            runnable = [actor for actor, queue in self._queues.items() if queue and queue[0].ready]
            if not runnable:
                break
            finished.extend(call for call in self._step(runnable) if call in wanted)
        return finished

    @override
    def sleep(self, seconds: float) -> None:
        self._clock += seconds

    @override
    def stop(self, actors: Sequence[Actor]) -> Sequence[Call]:
        for queue in self._queues.values():
            queue.clear()
        living = [actor for actor in actors if isinstance(actor, LocalActor) and actor not in self._dead]
        closings = [LocalCall(actor, Host.close, ()) for actor in living]
        for call in closings:
            call.run()
        self._queues.clear()
        return closings

    @override
    def now(self) -> float:
        return self._clock

    def _step(self, runnable: Sequence[Actor]) -> list[Call]:
        """Let one actor finish its next call, or die."""
        self._clock += 0.001 * (1 + self._chosen([str(step) for step in range(8)]))
        actor = runnable[self._chosen([actor.name for actor in runnable])]
        queue = self._queues[actor]
        if self._crashes_left and self._chosen(["lives"] * 15 + ["dies"]) == 15:
            self._crashes_left -= 1
            self._dead.add(actor)
            lost = list(queue)
            queue.clear()
            return self._lost(lost)
        call = queue.popleft()
        call.run()
        return [call]

    def _lost(self, calls: Sequence[Call]) -> list[Call]:
        for call in calls:
            assert isinstance(call, LocalCall)
            call.lose(Status.DIED)
        return list(calls)

    def _yes(self, yes: str, no: str) -> bool:
        return self._chosen([no, yes]) == 1

    def _chosen(self, options: Sequence[str]) -> int:
        return 0 if len(options) == 1 else self._chooser.choose(options)
