"""What a law is: a number, a title, a statement, and the checker that finds where a trace breaks it.

Apart from the laws themselves, which all are made of this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from typing_extensions import override

from pipeflow.semantics.events import Trace


@dataclass(frozen=True, slots=True)
class Violation:
    """Where a trace breaks a law: the law's number, what was expected and what was found, and the event."""

    law: int
    message: str
    event_index: int

    @override
    def __str__(self) -> str:
        return f"law {self.law}, event {self.event_index}: {self.message}"


Checker = Callable[[Trace], list[Violation]]


@dataclass(frozen=True)
class Law:
    """A law of `docs/semantics.md`, with its checker.

    A checker decides from the plan and the events alone. It finds nothing in the trace of any run that keeps
    the law, nor in the beginning of such a trace, whatever the schedule, the crashes and the errors were.
    """

    number: int
    title: str
    statement: str
    check: Checker


def law(number: int, title: str, check: Checker) -> Law:
    """A law whose statement is the docstring of its checker, up to the example."""
    told = inspect.getdoc(check) or ""
    return Law(number, title, " ".join(told.partition(">>>")[0].split()), check)
