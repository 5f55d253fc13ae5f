"""`pipeflow simulate`: a plan of the user's under many simulated schedules, every law checked on every run."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeflow.cli.errors import UsageError, one_line
from pipeflow.cli.flags import parse
from pipeflow.cli.targets import plans_of
from pipeflow.dsl import RunError, Stream
from pipeflow.semantics.events import Trace
from pipeflow.semantics.laws import LAWS
from pipeflow.testing import Invariant, LawViolation, check_laws, policy_lag_at_most

_USAGE = "pipeflow simulate MODULE:PLAN"


@dataclass(frozen=True)
class SimulateOptions:
    """Which schedules, and what is to hold under them."""

    schedules: int = 100
    """How many schedules; each has a seed of its own."""

    seed: int = 0
    """The seed of the first schedule; the others follow."""

    crashes: int = 0
    """How many actors may die in a run."""

    items: int | None = None
    """After how many items a run is closed; by default it goes on to the plan's end."""

    law: tuple[int, ...] = ()
    """The laws to check, by number; by default all."""

    max_lag: int | None = None
    """Also, that no item's actor was sent more weights than that between being asked for it and its delivery."""

    invariant: tuple[str, ...] = ()
    """Also, these functions, as MODULE:FUNCTION: of the trace of a run, returning what is wrong, or None."""


def simulate_plan(reference: str, words: Sequence[str]) -> int:
    """Run a plan under many schedules.

    reference: MODULE:PLAN, a stream or a function without arguments that makes one; the module may be a file.
    Returns 0 if every law and invariant held, else 1, after printing which did not and how to replay the run.
    Raises UsageError for what names no plan, and for words that do not fit.
    """
    options = parse(
        SimulateOptions, words, _USAGE, "Check the laws on a plan under many simulated schedules."
    )
    unknown = sorted(set(options.law) - {law.number for law in LAWS})
    if unknown:
        raise UsageError(f"there is no law {unknown[0]}; the laws are numbered from 1 to {len(LAWS)}")
    if options.schedules < 1:
        raise UsageError(f"--schedules must be at least 1, got {options.schedules}")
    plan = _plan(reference)
    invariants = [_invariant(name) for name in options.invariant]
    if options.max_lag is not None:
        invariants.append(policy_lag_at_most(options.max_lag))
    try:
        checked = check_laws(
            plan,
            options.schedules,
            crashes=options.crashes,
            laws=options.law or None,
            invariants=invariants,
            items=options.items,
            seed=options.seed,
        )
    except LawViolation as violation:
        words = [*_without(words, "--schedules", "--seed"), "--schedules", "1"]
        again = " ".join([reference, *words, "--seed", str(violation.schedule.seed)])
        print(f"{reference}: {violation}\nor with\n    pipeflow simulate {again}")
        return 1
    except RunError as error:
        print("\n".join([f"{reference}: {type(error).__name__}: {error}", "", *error.__notes__]))
        return 1
    last = options.seed + options.schedules - 1
    laws = f"laws {', '.join(map(str, options.law))} hold" if options.law else "every law holds"
    told = f"{laws} under {options.schedules} schedules, seeds {options.seed} to {last}"
    if options.crashes:
        ended = checked.ended_by_death or "none"
        told += f"; actors died in {checked.with_deaths} of them, and {ended} ended with ActorDiedError"
    print(f"{reference}: {told}")
    return 0


# `Any`: a plan of items of any type.
def _plan(reference: str) -> Stream[Any]:
    if not reference.partition(":")[2]:
        raise UsageError(f"{reference!r} is not of the form MODULE:PLAN, as in {_USAGE.lower()}")
    (plan,) = plans_of(reference).values()
    return plan


def _invariant(reference: str) -> Invariant:
    # `Any`: what a name in the user's module stands for is known when it is called.
    found: Any = _named(reference)
    if not inspect.isroutine(found):
        raise UsageError(f"{reference} is no function; an invariant takes the trace of a run")

    def invariant(trace: Trace) -> str | None:
        problem: object = found(trace)
        if problem is None or isinstance(problem, str):
            return problem
        told = f"{reference} returned {problem!r}"
        raise UsageError(f"{told}; an invariant returns what is wrong as a string, or None")

    invariant.__name__ = reference
    return invariant


def _named(reference: str) -> object:
    """What MODULE:NAME names; a module in the working directory is found as `python -m` would find it."""
    module, _, name = reference.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), *name.split(".")]):
        raise UsageError(f"{reference!r} is not of the form MODULE:NAME, as in {_USAGE.lower()}")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        advice = f"; run this in the folder of {module}.py, or install it" if error.name == module else ""
        raise UsageError(f"cannot import {module}: {one_line(error)}{advice}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{module} has nothing of the name {name}")
        found = getattr(found, part)
    return found


def _without(words: Sequence[str], *flags: str) -> list[str]:
    """The words but for these flags and their values."""
    kept: list[str] = []
    skipped = False
    for word in words:
        if skipped:
            skipped = False
        elif word in flags:
            skipped = True
        elif not word.startswith(tuple(f"{flag}=" for flag in flags)):
            kept.append(word)
    return kept
