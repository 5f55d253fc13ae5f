"""A stream feeds one place of a plan (law 26); both places are named."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pipeflow.dsl import PlanError, actors, batch, from_items, gather_async, gather_sync
from tests.dsl.domain import Worker, advantages

HERE = r"tests/dsl/test_linearity.py:\d+"
WORKERS = actors(Worker, 2)


def samples() -> Any:
    return WORKERS.produce(Worker.sample)


def stream() -> Any:
    return samples() | gather_sync()


def test_a_stream_that_feeds_two_places_is_refused_with_both() -> None:
    items = stream()
    with pytest.raises(PlanError) as caught:
        _ = (items | advantages) & (items | batch(2))
    assert re.fullmatch(
        rf"gather_sync\(\) \({HERE}\) is used twice, by advantages \({HERE}\) and by batch\(2\) \({HERE}\); a "
        r"stream feeds one place: share its items with .fork\(n, buffer=...\), or make an independent stream with "
        "a second produce",
        str(caught.value),
    )


TWICE: list[tuple[str, Callable[[], Any]]] = [
    ("both sides of a union", lambda: (lambda s: s & s)(from_items([1]))),
    ("a union and one of its branches", lambda: (lambda s, t: (s & t) & s)(from_items([1]), from_items([2]))),
    ("a shared source far up", lambda: (lambda s: (s | abs | abs) & (s | repr))(from_items([1]))),
    ("a fork and a stage beside it", lambda: (lambda s: (s | abs) & s.fork(1, buffer=1)[0])(from_items([1]))),
    ("both sides of a pair", lambda: (lambda s: s.zip(s))(from_items([1]))),
    ("a pair and a union", lambda: (lambda s: (s | abs).zip(from_items([1])) & s)(from_items([1]))),
    ("two forks", lambda: (lambda s: s.fork(1, buffer=1)[0] & s.fork(1, buffer=1)[0])(from_items([1]))),
    ("an end of a fork", lambda: (lambda ends: ends[0] & ends[0])(from_items([1]).fork(2, buffer=1))),
    (
        "an end of a fork under two names",
        lambda: (lambda ends: ends[0].named("a") & ends[0].named("b"))(from_items([1]).fork(2, buffer=1)),
    ),
    ("a stage under two names", lambda: (lambda s: s.named("a") & s.named("b"))(from_items([1]) | abs)),
]


@pytest.mark.parametrize("twice", [pytest.param(make, id=name) for name, make in TWICE])
def test_a_stream_is_used_once_wherever_the_second_use_is(twice: Callable[[], Any]) -> None:
    with pytest.raises(PlanError, match="used twice"):
        twice()


def test_shards_that_feed_two_places_are_refused_when_the_plan_runs() -> None:
    shards = samples()
    plan = (shards | gather_sync()) & (samples() | gather_sync())
    plan.run().close()
    twice = ((shards | advantages) & (shards | advantages)) | gather_sync()
    with pytest.raises(PlanError, match="is used twice"):
        twice.run()


def test_what_may_be_used_twice() -> None:
    """Operators, actors, functions, and the ends of a fork one each."""
    pairs, workers = batch(2), actors(Worker, 1)
    left, right = from_items([1]).fork(2, buffer=1)
    assert ((left | pairs) & (right | pairs)).explain()
    twice = (workers.produce(Worker.sample) | gather_sync()) & (
        workers.produce(Worker.sample) | gather_async()
    )
    assert twice.explain()
