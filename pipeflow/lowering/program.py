"""Programs: what is installed in an actor once, so that one call then returns one finished item.

A program is the fused run of stages that live in the same place: a shard's source and everything up to its
gather, or everything pure between a gather and the stage placed in a learner, with that stage (law 3).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from pipeflow.dsl.nodes import Function
from pipeflow.dsl.signals import Ended, NotReady


class Status(enum.Enum):
    """What a call of a program came to."""

    ITEM = enum.auto()
    """One finished item."""
    EMPTY = enum.auto()
    """No item yet: the input was taken in and completed no output."""
    NOT_READY = enum.auto()
    """The source has nothing until something else moves."""
    ENDED = enum.auto()
    """There will be no further item."""
    FAILED = enum.auto()
    """User code raised."""
    DIED = enum.auto()
    """The actor is gone, and the call with it."""
    LOST = enum.auto()
    """The actor lives, and an item that the call was given is gone with another actor."""


class Gone:
    """Stands for the item of a call that failed, for a call that was given it before that was known."""


@dataclass(frozen=True)
class Failure:
    """An exception in user code, on its way to the driver.

    `step` is the step of the program that raised, `item` how many items it had been given before; -1 where it
    was not about a step or an item. `trace` is its traceback as text where the exception crossed a process,
    else empty.
    """

    step: int
    item: int
    cause: BaseException
    trace: str = ""


@dataclass(slots=True)
class Tally:
    """What one step did since it was last reported: items in and out, and seconds inside user code."""

    taken: int = 0
    made: int = 0
    busy: float = 0.0


@dataclass(slots=True)
class Reply:
    """The small part of an answer, which the driver reads.

    `more` says that further finished items wait in the actor. `order` counts the calls that the actor has run.
    `apart` says that the item may never be read by the driver, so that it is not to travel with the reply.
    """

    status: Status
    more: bool = False
    tallies: tuple[Tally, ...] = ()
    failure: Failure | None = None
    order: int = 0
    apart: bool = False

    @property
    def busy(self) -> float:
        """Seconds inside user code."""
        return sum(tally.busy for tally in self.tallies)


Answer = tuple[Reply, object]
"""What a host's method returns: the reply for the driver and, apart from it, the item."""


def done() -> Answer:
    """The answer of a call that makes no item."""
    return Reply(Status.EMPTY), None


@dataclass(frozen=True)
class Step:
    """One fused stage: its `node` in the plan's numbering, and the function, method or state factory.

    Exactly one of `function` (of the item), `method` (of the actor and the item), `expansion` and `gating`
    (factories of states) is set.
    """

    node: int
    function: Function | None = None
    method: Function | None = None
    expansion: Function | None = None
    gating: Function | None = None


@dataclass(frozen=True)
class Program:
    """Steps in order; with a `source`, a method of the actor alone, they start from what that returns.

    `apart` says that its items stay where they are made: the driver may never read them. Without it they travel
    with the replies. `together` is how many calls may be made as one where items are small and quickly made.
    """

    source: Step | None = None
    steps: tuple[Step, ...] = field(default=())
    apart: bool = True
    together: int = 1

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The source, if there is one, and the steps: the order of a reply's tallies."""
        return self.steps if self.source is None else (self.source, *self.steps)

    @property
    def expands(self) -> bool:
        """Whether it can hold items back, so that the end of its input must be told to it."""
        return any(step.expansion is not None for step in self.steps)


def one_output(function: Function, *args: object) -> object:
    """Call a stage: what it returns is its one output (law 2).

    Raises:
        TypeError: it returned a signal of a source, which would count as an item.
    """
    made: object = function(*args)
    if isinstance(made, NotReady | Ended):
        message = f"a stage returned {type(made).__name__}, which only a producing method may return"
        raise TypeError(message)
    return made
