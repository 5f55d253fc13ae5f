"""What an engine of other processes keeps an eye on: actors that do not come up, calls that take too long.

Apart from the engine, which does the waiting: here is only who has been at what since when, without Ray.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from pipeflow.dsl.nodes import Group
from pipeflow.lowering.engine import Actor

# Of what is outstanding; the engine's kind of reference.
R = TypeVar("R")

# How often it looks, in seconds, at most; a limit is kept to a quarter of itself where that is shorter.
_LOOK_SECONDS = 0.5


class Overdue(NamedTuple, Generic[R]):
    """A call that has taken longer than its actor's time limit of so many seconds."""

    actor: Actor
    ref: R
    limit: float


@dataclass
class _Starting(Generic[R]):
    """An actor that has not come up yet, since when, and what will be finished when it has."""

    group: Group
    ref: R
    since: float


@dataclass
class _Calls(Generic[R]):
    """The calls to an actor with a time limit, in their order, which it runs one at a time.

    `since` is when the first of them can have begun at the earliest, as far as is known, and `given` are, by call,
    references that it may be waiting for.
    """

    limit: float
    since: float = 0.0
    refs: deque[R] = field(default_factory=deque[R])
    given: dict[R, Sequence[R]] = field(default_factory=dict[R, Sequence[R]])


class Watch(Generic[R]):
    """Who has been at what since when, on the engine's clock.

    Args:
        finished: which of some references are finished, without waiting.
        now: the clock, in seconds.
    """

    def __init__(self, finished: Callable[[Sequence[R]], Collection[R]], now: Callable[[], float]) -> None:
        self._finished, self._now = finished, now
        self._starting: dict[Actor, _Starting[R]] = {}
        self._calls: dict[Actor, _Calls[R]] = {}
        self._interval = _LOOK_SECONDS
        self._next_look = -math.inf

    @property
    def active(self) -> bool:
        """Whether there is anything to keep an eye on."""
        return bool(self._starting or self._calls)

    @property
    def rest(self) -> float:
        """Seconds until it wants to look again."""
        return max(self._next_look - self._now(), 0.0)

    def started(self, actor: Actor, ref: R, group: Group) -> None:
        """An actor was started; `ref` will be finished when it has come up."""
        self._starting[actor] = _Starting(group, ref, self._now())
        if group.time_limit is not None:
            self._calls[actor] = _Calls(group.time_limit)
            self._interval = min(self._interval, group.time_limit / 4)

    def called(self, actor: Actor, ref: R, given: Sequence[R]) -> None:
        """An actor with a time limit was called, given what some references stand for."""
        calls = self._calls.get(actor)
        if calls is None:  # it was ended
            return
        if not calls.refs:
            calls.since = self._now()
        calls.refs.append(ref)
        if given:
            calls.given[ref] = given

    def answered(self, actor: Actor, ref: R) -> None:
        """A call to an actor with a time limit came back."""
        calls = self._calls.get(actor)
        if calls is None or ref not in calls.refs:
            return
        calls.refs.remove(ref)  # nearly always the first
        calls.given.pop(ref, None)
        calls.since = self._now()

    def ended(self, actor: Actor) -> None:
        """An actor is gone."""
        self._starting.pop(actor, None)
        self._calls.pop(actor, None)

    def look(self) -> list[Overdue[R]]:
        """The calls that have taken too long; nothing until it is time to look again."""
        now = self._now()
        if now < self._next_look:
            return []
        self._next_look = now + self._interval
        self._note_starts(now)
        return [
            Overdue(actor, calls.refs[0], calls.limit)
            for actor, calls in self._calls.items()
            if calls.refs and actor not in self._starting and self._is_overdue(calls, now)
        ]

    def not_up(self, limit: float) -> tuple[Actor, Group] | None:
        """An actor that has not come up within so many seconds, if there is one, with its group."""
        earliest = self._now() - limit
        late = (
            (actor, starting.group) for actor, starting in self._starting.items() if starting.since < earliest
        )
        return next(late, None)

    def _note_starts(self, now: float) -> None:
        if not self._starting:
            return
        finished = set(self._finished([starting.ref for starting in self._starting.values()]))
        for actor in [actor for actor, starting in self._starting.items() if starting.ref in finished]:
            del self._starting[actor]
            if actor in self._calls:
                self._calls[actor].since = now

    def _is_overdue(self, calls: _Calls[R], now: float) -> bool:
        first = calls.refs[0]
        if now - calls.since <= calls.limit or self._finished([first]):
            return False
        given = calls.given.pop(first, ())
        if not given:
            return True
        # It may have waited for these until now: from here on it has the whole of its time.
        calls.since = now
        if len(self._finished(given)) < len(given):
            calls.given[first] = given
        return False
