"""Choices: a nondeterministic computation as a plain function, and every way in which it can go.

The function asks a `Choices` which of several options to take. `every_way` runs it again and again, each time
with the next combination of answers, until there is none left. Apart from the reference interpreter because
it knows nothing of plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


class TooManyWays(RuntimeError):
    """A computation can go in more ways than were to be tried."""


class Choices:
    """The answers of one way: first those of `path`, then always the first option."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self._options: list[int] = []

    def choose(self, count: int) -> int:
        """One of `count` options, by index."""
        if count == 1:
            return 0
        position = len(self._options)
        self._options.append(count)
        if position == len(self.path):
            self.path.append(0)
        return self.path[position]

    def following(self) -> list[int] | None:
        """The path of the next way in depth-first order; None after the last."""
        path = self.path[: len(self._options)]
        while path and path[-1] + 1 == self._options[len(path) - 1]:
            path.pop()
        return [*path[:-1], path[-1] + 1] if path else None


def every_way(compute: Callable[[Choices], T], limit: int) -> Iterator[T]:
    """The result of every way in which a computation can go.

    >>> def two_coins(choices: Choices) -> str:
    ...     return "".join("ht"[choices.choose(2)] for _ in range(2))
    >>> list(every_way(two_coins, limit=10))
    ['hh', 'ht', 'th', 'tt']

    Args:
        compute: deterministic but for what it asks the choices.
        limit: how many ways may be tried.

    Raises:
        TooManyWays: there are more than `limit`.
    """
    path: list[int] = []
    for _ in range(limit):
        choices = Choices(path)
        yield compute(choices)
        following = choices.following()
        if following is None:
            return
        path = following
    message = f"there are more than {limit} ways; raise the limit, or make what is computed smaller"
    raise TooManyWays(message)
