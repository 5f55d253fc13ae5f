"""On Ray neither the driver nor the object store grows with the items that pass."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from itertools import islice

import pytest
import ray

from pipeflow import Stream, actors, gather_async, sync_weights
from tests.lowering.actors import Counter
from tests.reliability.actors import Loader
from tests.reliability.gauges import Gauge

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_runtime")]

SIZE = 1 << 20


def stored() -> float:
    """Bytes in Ray's object store, which tells them a moment late."""
    time.sleep(0.3)
    free = ray.available_resources()["object_store_memory"]
    used: float = ray.cluster_resources()["object_store_memory"] - free
    return used


def test_b116_the_driver_holds_no_more_after_ten_thousand_items() -> None:
    gauge = Gauge(1_000, 10_000)
    plan = actors(Counter, 2).produce(Counter.next_number) | gather_async(16)
    with plan.run("ray") as run:
        next(run)
        threads = threading.active_count()
        for _ in islice(run, 10_000):
            gauge.tick()
        assert threading.active_count() == threads
    # What waits in the plan, and Ray's own caches.
    assert gauge.growth < 2_000


def read_by_the_driver() -> Stream[object]:
    return actors(Loader, 2, SIZE).produce(Loader.make) | gather_async(2)


def handed_on() -> Stream[object]:
    loaders, taker = actors(Loader, 2, SIZE), actors(Loader, 1, SIZE).named("taker")
    return loaders.produce(Loader.make) | gather_async(2) | taker.stage(Loader.take).max_in_flight(2)


def with_weights() -> Stream[object]:
    loaders, learner = actors(Loader, 2, SIZE), actors(Loader, 1, SIZE).named("learner")
    trained = loaders.produce(Loader.make) | gather_async(2) | learner.stage(Loader.take)
    return trained | sync_weights(learner, loaders)


def levels(plan: Stream[object]) -> list[float]:
    """What the store holds after every 150 items of a run; only this holds the run, which has its last items."""
    before = stored()
    readings = list[float]()
    with plan.run("ray") as run:
        for _ in range(10):
            assert sum(1 for _ in islice(run, 150)) == 150
            readings.append(stored() - before)
    return readings


@pytest.mark.slow
@pytest.mark.parametrize("plan", [read_by_the_driver, handed_on, with_weights])
def test_b115_the_object_store_holds_no_more_after_many_large_items(
    plan: Callable[[], Stream[object]],
) -> None:
    before = stored()
    readings = levels(plan())
    # Four items in flight, two at the stage, one that was read last; four weights for each actor, and the next.
    assert max(readings) <= (4 + 2 + 1 + 2 * 4 + 1) * (SIZE + 1024)
    assert max(readings[5:]) <= max(readings[:5]) + SIZE
    gc.collect()
    time.sleep(0.5)
    assert stored() - before < SIZE
