"""What stands wrongly on the right of | and & is refused with what to write."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeflow.dsl import PlanError, Stage, actors, flat_map, gather_sync, select_shards, stage, take, tap
from tests.dsl.domain import Learner, Worker, advantages

HERE = r"tests/dsl/test_misplaced.py:\d+"
WORKERS = actors(Worker, 2)


def samples() -> Any:
    return WORKERS.produce(Worker.sample)


def stream() -> Any:
    return samples() | gather_sync()


def makes_a_stage() -> Stage[Any, Any]:
    return stage(abs)


async def coroutine(item: object) -> object:
    return item


MISPLACED: list[tuple[str, Callable[[], object], str]] = [
    (
        "a class",
        lambda: stream() | Learner,
        r"the class Learner stands on the right of \| ; a class is no stage",
    ),
    ("a number", lambda: stream() | 3, "3 is no stage: it is neither an operator nor a function of one item"),
    ("not called", lambda: stream() | take, r"take makes a stage and was not called: write take\(...\)"),
    ("not called, generic", lambda: stream() | flat_map, "flat_map makes a stage and was not called"),
    ("not called, own", lambda: stream() | makes_a_stage, "makes_a_stage makes a stage and was not called"),
    (
        "a coroutine",
        lambda: stream() | coroutine,
        "coroutine is a coroutine function; a stage is a plain function",
    ),
    (
        "gathered twice",
        lambda: stream() | gather_sync(),
        "<Gather gather_sync.*> takes a ParallelStream, but <Stream",
    ),
    (
        "not gathered",
        lambda: samples() | tap(print),
        "<Tap tap.*> takes a Stream, but <ParallelStream.*gather it first",
    ),
    (
        "no brackets",
        lambda: stream() | take(1) & take(2),  # type: ignore[operator]
        "& binds tighter than |, so each branch of a union stands in",
    ),
    ("starts without a stream", lambda: take(1) | abs, "a chain starts with a stream"),  # type: ignore[operator]
    ("a function first", lambda: abs | take(1), "a chain starts with a stream"),  # type: ignore[operator]
    ("stage and gather", lambda: stage(abs) | gather_sync(), "acts on a stream, and <Stage abs> is none"),  # type: ignore[operator]
    ("union of kinds", lambda: stream() & samples(), "gather the shards first, or join two parallel streams"),
    ("union of kinds, turned", lambda: samples() & stream(), "gather the shards first, or join two parallel"),
    ("union with a function", lambda: stream() & abs, r"& joins two streams; did you mean \| \?"),
    ("a pair with shards", lambda: stream().zip(samples()), "zip takes another Stream, not <ParallelStream"),
    (
        "a pair with a function",
        lambda: stream().zip(abs),
        "zip takes another Stream, not <built-in function abs>",
    ),
    (
        "shards scattered",
        lambda: samples() | WORKERS.scatter(),
        "takes a Stream, but <ParallelStream.*gather it",
    ),
    ("shards of a stream", lambda: stream() | select_shards(0), "takes a ParallelStream, but <Stream"),
    (
        "weights of steps",
        lambda: ((stream() | advantages) & (stream() | advantages)).by_steps(1),
        "by_steps has 1 weight for 2 branches",
    ),
    ("a weight", lambda: (stream() & stream()).round_robin(1), "round_robin has 1 weight for 2 branches"),
    (
        "weights",
        lambda: (stream() & stream()).round_robin(1, 2, 3),
        "round_robin has 3 weights for 2 branches",
    ),
    ("truth", lambda: stream() and stream(), "a stream has no truth value; join streams with &"),
    ("iterated", lambda: list(stream()), r"is a description and cannot be iterated; iterate over .run"),
    ("shards iterated", lambda: list(samples()), "cannot be iterated; gather it first"),
]


@pytest.mark.parametrize(("broken", "message"), [pytest.param(*row, id=name) for name, *row in MISPLACED])
def test_what_is_in_the_wrong_place_is_told_what_to_write(broken: Callable[[], object], message: str) -> None:
    with pytest.raises(PlanError, match=f"^{HERE}: .*{message}"):
        broken()
