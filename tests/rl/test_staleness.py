"""Staleness: which items an age limit keeps, and that a limit which every item misses starves nobody."""

from __future__ import annotations

from typing import Any

import pytest

from pipeflow import actors, gather_async, max_lag, sync_weights, take
from pipeflow.lowering.engines.sim import Sim
from pipeflow.semantics.events import Delivered
from tests.cases import Case, cases


class Producer:
    """Hands out the version of the weights that it was given last."""

    def __init__(self) -> None:
        self._version = 0

    def sample(self) -> int:
        return self._version

    def set_weights(self, version: int, /) -> None:
        self._version = version


class Consumer:
    """Every update makes a version, and says which one it was made of."""

    def __init__(self) -> None:
        self._version = 0

    def update(self, version: int) -> tuple[int, int]:
        made_of = (self._version, version)
        self._version += 1
        return made_of

    def weights(self) -> int:
        return self._version


# Any, in Case: its numbers are known to the test alone.
def limits(case: Case) -> list[tuple[int, list[int], list[int]]]:
    """For every limit of the case: the limit, the ages of its items, and the ages of those that it keeps."""
    current: int = case["inputs"]["current_version"]
    versions: list[int] = case["inputs"]["item_versions"]
    kept: list[Any] = case["expected"]["kept"]
    return [
        (limit, [current - version for version in versions], [current - version for version in expected])
        for limit, expected in zip(case["inputs"]["max_age"], kept, strict=True)
    ]


@pytest.mark.parametrize("case", cases("staleness"))
@pytest.mark.parametrize("seed", range(5))
def test_a_limit_keeps_what_is_no_older_and_drops_all_else(case: Case, seed: int) -> None:
    for limit, ages, kept in limits(case):
        assert [age for age in ages if age <= limit] == kept  # what the case means by a limit
        producers, consumer = actors(Producer, len(ages)), actors(Consumer, 1)
        gathered = producers.produce(Producer.sample) | gather_async(2)
        updates = (
            gathered | max_lag(limit) | consumer.stage(Consumer.update) | sync_weights(consumer, producers)
        )
        run = (updates | take(20)).run(Sim(seed=seed), record=True)
        list(run)
        names = {number: node.name for number, node in enumerate(run.trace.nodes)}
        seen, delivered = (
            [
                event.lag
                for event in run.trace
                if isinstance(event, Delivered)
                and names[event.node].startswith(name)
                and event.lag is not None
            ]
            for name in ("gather_async", "max_lag")
        )
        assert [lag for lag in seen if lag <= limit] == delivered
        assert max(seen) > limit or limit == max(ages)


@pytest.mark.parametrize("engine_seed", range(5))
def test_where_all_that_is_under_way_is_too_old_it_is_made_anew(engine_seed: int) -> None:
    # The learner of the case waited for ever: everything that was under way when it sent weights was one behind.
    producers, consumer = actors(Producer, 4), actors(Consumer, 1)
    fresh = producers.produce(Producer.sample) | gather_async(2) | max_lag(0)
    plan = fresh | consumer.stage(Consumer.update) | sync_weights(consumer, producers) | take(30)
    run = plan.run(Sim(seed=engine_seed))
    updates = list(run)
    assert len(updates) == 30
    assert all(current == made_of for current, made_of in updates)
    stats = run.stats()
    assert stats["gather_async(2)"].items_out > stats["max_lag(0)"].items_out
