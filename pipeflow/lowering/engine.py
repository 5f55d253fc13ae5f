"""The engine protocol: where actors live and calls run. Narrow on purpose, so that an engine is a small file.

An engine starts hosts, takes calls without ever blocking, waits for any of many calls, and fetches items. All
else (order, barriers, demand, failure) is the executor's, the same for every engine; so what a simulation
proves of a plan is proved of the code that runs on Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pipeflow.dsl.nodes import Group
from pipeflow.lowering.program import Answer, Failure, Reply

if TYPE_CHECKING:
    from pipeflow.lowering.stats import RunStats


class Actor(Protocol):
    """An actor that an engine started; only the engine looks inside."""

    @property
    def name(self) -> str:
        """As errors show it, such as ``RolloutWorker[2]``."""
        ...


class Handle:
    """An item that lives where it was made. Engines derive from it."""

    __slots__ = ()


class Call:
    """One call to one actor: outstanding until the engine has set `reply`.

    `item` is the engine's handle on the item, good for `Engine.fetch` and as an argument of `Engine.submit`.
    `finished` is the place of this call in the order in which the run's calls finished, `version` how many weights
    its actor had been sent when the call was issued, `number` its number in a trace, 0 before it has one.
    """

    __slots__ = ("actor", "finished", "item", "number", "reply", "version")

    def __init__(self, actor: Actor, item: Handle) -> None:
        self.actor = actor
        self.item = item
        self.reply: Reply | None = None
        self.finished = 0
        self.number = 0
        self.version = 0


class Engine(Protocol):
    """Where a plan runs."""

    @property
    def name(self) -> str:
        """As statistics and errors show it."""
        ...

    @property
    def concurrent(self) -> bool:
        """Whether actors work at the same time."""
        ...

    def open(self) -> None:
        """Get ready to start actors.

        Raises:
            EngineError: the engine cannot be started or reached.
        """
        ...

    def start(self, name: str, index: int, group: Group) -> Actor:
        """Start one `Host` of a group. What goes wrong in starting it shows in its first call.

        A call in it that takes longer than the group's time limit is ended: its reply, and those of all that wait
        behind it, are `Status.DIED`.
        """
        ...

    def kill(self, actor: Actor) -> None:
        """End an actor at once, without closing it where that could take time. Its calls come back as `DIED`."""
        ...

    # `Any`: a host's methods differ in their arguments. `method` is passed unbound; no string names it.
    def submit(self, actor: Actor, method: Callable[..., Answer], *args: Any, apart: bool = False) -> Call:
        """Call a host's method. Calls to one actor run in the order of submission (law 9). Never blocks.

        Args:
            actor: the actor.
            method: the method of `Host`, unbound.
            *args: its arguments; a `Handle` among them arrives as the item that it stands for.
            apart: whether the item is to stay where it is made, since the driver may never read it.
        """
        ...

    def submit_together(self, actor: Actor, count: int, apart: bool = False) -> Sequence[Call]:
        """Call `Host.advance` so many times, as one call of `Host.advance_together` where that is cheaper."""
        ...

    def travels_together(self, actor: Actor, seconds: float) -> bool:
        """Whether an actor whose calls take so long is better called several times at once, or not yet."""
        ...

    def wait(self, calls: Sequence[Call], timeout: float | None, needed: int = 1) -> Sequence[Call]:
        """Block until at least one of the calls has finished and return those that have, replies set.

        Args:
            calls: outstanding calls, in the order of submission.
            timeout: seconds after which to return even if none has; None waits for ever.
            needed: how many have to finish before anything else can move; an engine may wait for so many.

        The reply of a call whose actor is gone is `Status.DIED`.
        """
        ...

    def complete(self, calls: Sequence[Call]) -> None:
        """Block until these calls have finished and set their replies, whatever else is outstanding.

        An engine that can write down what has not run yet runs them ahead of it.
        """
        ...

    def hold(self, value: object) -> Handle:
        """A handle on an item that the driver has."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let time go by while no call is outstanding."""
        ...

    def fetch(self, handle: Handle) -> object:
        """The item itself."""
        ...

    def duplicate(self, handle: Handle) -> Handle:
        """A handle on an item that shares nothing writable with this one, for streams that fan out (law 26)."""
        ...

    def stop(self, actors: Sequence[Actor]) -> Sequence[Call]:
        """End these actors, letting each close what it holds, within a few seconds (law 21).

        Returns: the calls of `Host.close` that finished in time, replies set.
        """
        ...

    def close(self) -> None:
        """Give back whatever `open` took."""
        ...

    def now(self) -> float:
        """The engine's clock, in seconds."""
        ...

    @property
    def publishes(self) -> bool:
        """Whether the figures of the run are to be published while it goes on."""
        return False

    def publish(self, stats: RunStats) -> None:
        """Publish the figures of the run; called about once a second at most."""
        return  # without it checkers take the method for an abstract one


def overdue(limit: float) -> Failure:
    """Why a call was ended that took longer than the time limit of its actor's group."""
    return Failure(-1, -1, TimeoutError(f"a call took longer than its time limit of {limit:g} s"))
