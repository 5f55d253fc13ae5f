"""Replays a recorded run in the simulation: the calls finish in the order in which the record says they did.

With it a run on Ray can be looked at in a debugger; and a trace that no schedule of the simulation shows would
be one that Ray has and the simulation lacks (law 23).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from pipeflow.dsl import Stream
from pipeflow.lowering.engines.sim import Chooser, Sim
from pipeflow.lowering.run import Run
from pipeflow.semantics.events import Called, Delivered, Event, Finished, Trace
from pipeflow.testing.schedules import Simulated, finished


class NotReproducible(AssertionError):
    """The simulation cannot do what a trace shows; the message says at which event."""


# `Any`: a plan of items of any type.
def replayed(plan: Stream[Any], trace: Trace) -> Simulated:
    """Run a plan in the simulation so that its calls finish as a trace says, and compare.

    Args:
        plan: the plan, as it was when the trace was recorded.
        trace: of a run to its end in which no actor died, on any engine.

    Returns: the simulated run, whose items are to be those of the other.

    Raises:
        NotReproducible: the simulated run has other events.
    """
    chooser = _Replay(trace)
    run: Run[object] = plan.run(Sim(chooser=chooser), record=True)
    chooser.made = run.trace
    simulated = finished(run)
    for index, (wanted, found) in enumerate(zip(_comparable(trace), _comparable(run.trace), strict=False)):
        if wanted != found:
            raise NotReproducible(f"event {index} is {wanted} in the trace and {found} in the simulation")
    if len(trace) != len(run.trace):
        raise NotReproducible(f"the trace has {len(trace)} events and the simulation {len(run.trace)}")
    return simulated


def _comparable(trace: Trace) -> list[Event]:
    """The events without what differs between any two runs: where objects lie in memory."""
    return [replace(event, identity=None) if isinstance(event, Delivered) else event for event in trace]


class _Replay(Chooser):
    """Decides as the trace has it at the place that the simulated run has come to."""

    def __init__(self, trace: Trace) -> None:
        self._events = trace.events
        self.made = Trace(trace.plan)
        self._seen = -1
        self._steps = 0

    @override
    def choose(self, options: Sequence[str]) -> int:
        """The option that leads to the next event of the trace."""
        if len(self.made) != self._seen:
            self._seen, self._steps = len(self.made), 0
        place = self._seen + self._steps
        following = self._events[place] if place < len(self._events) else None
        match options:
            case ["look", "see nothing"]:
                return int(not isinstance(following, Finished))
            case ["the driver looks", "another finishes"]:
                return int(isinstance(following, Finished))
            case [one, several] if several == one.replace("one call", "several calls") != one:
                called = isinstance(following, Called) and one == f"one call to {following.actor}"
                return int(not called)
            case ["0", *_]:
                self._steps += 1
                return 0
            case _:
                last = self._events[place - 1]
                if not isinstance(last, Finished) or last.actor not in options:
                    raise NotReproducible(
                        f"event {place - 1} is {last}; one of {', '.join(options)} has to finish"
                    )
                return options.index(last.actor)
