"""10 MB batches from two workers to a learner: the bytes that the driver reads for each, and the seconds.

    python benchmarks/bench_data_plane.py

Against two loops written by hand: one hands references on, as pipeflow does, the other reads every batch on the
driver and passes it on by value.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from unittest import mock

import numpy as np
import ray
from numpy.typing import NDArray
from ray import cloudpickle

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Case, Contestant, Result, Target, measure, options, show, write
from pipeflow import actors, gather_async

PIPEFLOW, BY_REFERENCE, BY_VALUE = (
    "pipeflow",
    "hand-written, by reference",
    "hand-written, through the driver",
)
WORKERS = 2
BATCHES = 30
BATCH_BYTES = 10_000_000

Batch = NDArray[np.float32]


class Worker:
    """Makes batches of 10 MB."""

    def __init__(self) -> None:
        self._batch: Batch = np.ones((BATCH_BYTES // 4 // 100, 100), np.float32)

    def sample(self) -> Batch:
        return self._batch


class Learner:
    """Reads all of a batch once."""

    def update(self, batch: Batch) -> float:
        return float(batch.sum())


def by_pipeflow() -> Generator[float]:
    workers = actors(Worker, WORKERS).resources(cpus=0)
    learner = actors(Learner, 1).resources(cpus=0)
    plan = workers.produce(Worker.sample) | gather_async(2) | learner.stage(Learner.update)
    with plan.run("ray") as run:
        yield from run


def by_hand(by_value: bool) -> Generator[float]:
    workers = [ray.remote(num_cpus=0)(Worker).remote() for _ in range(WORKERS)]
    learner = ray.remote(num_cpus=0)(Learner).remote()
    made_by = {worker.sample.remote(): worker for _ in range(2) for worker in workers}
    try:
        while True:
            (batch,), _ = ray.wait(list(made_by), num_returns=1)
            worker = made_by.pop(batch)
            made_by[worker.sample.remote()] = worker
            yield ray.get(learner.update.remote(ray.get(batch) if by_value else batch))
    finally:
        for actor in (*workers, learner):
            ray.kill(actor)


@contextmanager
def counting() -> Generator[list[int]]:
    """The size of every object that this process reads from Ray meanwhile."""
    sizes: list[int] = []
    get = ray.get

    def counted(refs: ray.ObjectRef[object], *, timeout: float | None = None) -> object:
        values = get(refs, timeout=timeout)
        sizes.append(len(cloudpickle.dumps(values)))
        return values

    with mock.patch.object(ray, "get", counted):
        yield sizes


def seconds(losses: Iterator[float]) -> Contestant:
    """Milliseconds a batch."""

    def timed() -> float:
        deque(islice(losses, 4), maxlen=0)
        started = time.perf_counter()
        deque(islice(losses, BATCHES), maxlen=0)
        return (time.perf_counter() - started) / BATCHES * 1e3

    return timed


def fetched(losses: Iterator[float]) -> Contestant:
    """Bytes a batch that the driver reads."""

    def counted() -> float:
        with counting() as sizes:
            deque(islice(losses, BATCHES), maxlen=0)
        return sum(sizes) / BATCHES

    return counted


def main() -> None:
    chosen = options(__doc__)
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
    )
    streams = {PIPEFLOW: by_pipeflow(), BY_REFERENCE: by_hand(False), BY_VALUE: by_hand(True)}
    timed = measure({who: seconds(losses) for who, losses in streams.items()}, 3 if chosen.quick else 7)
    read = measure({who: fetched(losses) for who, losses in streams.items()}, 1)
    for losses in streams.values():
        losses.close()
    ray.shutdown()
    time_case = Case("seconds", "ms a batch", timed)
    bytes_case = Case("read by the driver", "bytes a batch", read)
    share = bytes_case.median(PIPEFLOW) / BATCH_BYTES
    targets = [
        Target("of each 10 MB batch read by the driver", share, "at most", 0.001),
        Target("× the time through the driver", time_case.ratio(PIPEFLOW, BY_VALUE), "at most", 1.0),
        Target(
            "× the time of the loop by reference", time_case.ratio(PIPEFLOW, BY_REFERENCE), "at most", 1.02
        ),
    ]
    result = Result("data_plane", [time_case, bytes_case], targets)
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
