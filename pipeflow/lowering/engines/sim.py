"""The simulation: the inline engine under a seeded scheduler, which decides what finishes when and who dies.

One thread, a virtual clock and no sleeping, so hundreds of schedules a second of a small plan. The executor is
the one that runs on Ray; a schedule that breaks a plan is a seed that replays it, in a debugger too.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from typing_extensions import override

from pipeflow.dsl.nodes import Group
from pipeflow.lowering.engine import Actor, Call, overdue
from pipeflow.lowering.engines.inline import InlineEngine, LocalActor, LocalCall
from pipeflow.lowering.host import Host
from pipeflow.lowering.program import Answer, Failure, Status


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


class SimulatedError(Exception):
    """What a call raises where the schedule lets it fail."""


class Sim(InlineEngine):
    """A seeded simulation.

    Args:
        seed: of the schedule; the same seed gives the same run.
        crashes: how many actors may die in the run, each at a moment that the schedule decides.
        errors: how many calls may raise `SimulatedError` in the run, as if code of the user's had.
        chooser: decides in place of the seed.
    """

    def __init__(
        self, seed: int = 0, *, crashes: int = 0, errors: int = 0, chooser: Chooser | None = None
    ) -> None:
        super().__init__()
        self._chooser = SeededChooser(seed) if chooser is None else chooser
        self._seed = seed
        self._crashes_left = crashes
        self._errors_left = errors
        self._queues: dict[Actor, deque[LocalCall]] = {}
        # Since when the next call of each actor could run.
        self._since: dict[Actor, float] = {}
        self._clock = 0.0

    @property
    @override
    def name(self) -> str:
        return f"sim(seed={self._seed})"

    @override
    def start(self, name: str, index: int, group: Group) -> Actor:
        actor = super().start(name, index, group)
        self._queues[actor] = deque()
        return actor

    @override
    def kill(self, actor: Actor) -> None:
        super().kill(actor)
        self._queues[actor].clear()

    @override
    def submit(self, actor: Actor, method: Callable[..., Answer], *args: Any, apart: bool = False) -> Call:
        assert isinstance(actor, LocalActor)
        call = LocalCall(actor, method, args, apart)
        if actor not in self._dead:
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
            for actor in runnable:
                self._since.setdefault(actor, self._clock)
            finished.extend(call for call in self._step(runnable) if call in wanted)
        return finished

    @override
    def complete(self, calls: Sequence[Call]) -> None:
        for call in calls:
            assert isinstance(call, LocalCall)
            self._queues[call.actor].remove(call)
            self._run(call)

    @override
    def state(self) -> Mapping[str, object]:
        return {
            "chooser": self._chooser,
            "clock": self._clock,
            "crashes_left": self._crashes_left,
            "errors_left": self._errors_left,
            "since": {actor.name: since for actor, since in self._since.items()},
            "order": [actor.name for actor in self._queues if actor not in self._dead],
        }

    # `Any`: what `state` gave.
    @override
    def load_state(self, state: Mapping[str, Any], actors: Mapping[str, Actor]) -> None:
        self._chooser = state["chooser"]
        self._clock = state["clock"]
        self._crashes_left, self._errors_left = state["crashes_left"], state["errors_left"]
        self._since = {actors[name]: since for name, since in state["since"].items()}
        # Which actor moves is decided by its place among those that can.
        self._queues = {
            **{actors[name]: self._queues[actors[name]] for name in state["order"]},
            **{actor: deque[LocalCall]() for actor in self._dead},
        }

    @override
    def gone(self, name: str) -> Actor:
        actor = super().gone(name)
        self._queues[actor] = deque()
        return actor

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
        since = self._since.pop(actor)
        if self._crashes_left and self._chosen(["lives"] * 15 + ["dies"]) == 15:
            self._crashes_left -= 1
            return self._ended(actor)
        assert isinstance(actor, LocalActor)
        if actor.time_limit is not None and self._clock - since > actor.time_limit:
            return self._ended(actor, overdue(actor.time_limit))
        call = queue.popleft()
        if self._errors_left and not call.installs and self._chosen(["returns"] * 15 + ["raises"]) == 15:
            self._errors_left -= 1
            call.fail(_raises)
        else:
            call.run()
        return [call]

    def _ended(self, actor: Actor, failure: Failure | None = None) -> list[Call]:
        """Let an actor die, its calls with it."""
        lost = list(self._queues[actor])
        self._dead.add(actor)
        self._queues[actor].clear()
        return self._lost(lost, failure)

    def _lost(self, calls: Sequence[Call], failure: Failure | None = None) -> list[Call]:
        for call in calls:
            assert isinstance(call, LocalCall)
            call.lose(Status.DIED, failure)
        return list(calls)

    def _yes(self, yes: str, no: str) -> bool:
        return self._chosen([no, yes]) == 1

    def _chosen(self, options: Sequence[str]) -> int:
        return 0 if len(options) == 1 else self._chooser.choose(options)


def _raises(_: object) -> object:
    message = "the schedule lets this call fail"
    raise SimulatedError(message)
