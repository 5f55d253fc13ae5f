"""Workers whose environment sleeps 5 ms a step: what share of the ideal rate 1 to 64 of them reach.

    python benchmarks/bench_scaling.py

The ideal is the rate of one worker that is called in a loop in this process, times their number. Sleeping
workers need little of the cores, so it is the dataflow that is measured, not the machine.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import numpy as np
import ray
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Case, Contestant, Result, Target, measure, options, show, write
from pipeflow import actors, gather_async, gather_sync

PIPEFLOW, IDEAL = "pipeflow", "ideal"
STEP_SECONDS = 0.005
FRAGMENT = 20
SIZES = (1, 2, 4, 8, 16, 32, 64)
SECONDS = 2.0


class SleepingWorker:
    """Steps an environment that sleeps, as long as a fragment has steps."""

    def __init__(self) -> None:
        self._observations = np.zeros((FRAGMENT, 4), np.float32)

    def sample(self) -> NDArray[np.float32]:
        for _ in range(FRAGMENT):
            time.sleep(STEP_SECONDS)
        return self._observations


def rate(fragments: Iterator[object], workers: int, stale: int) -> Contestant:
    """Environment steps a second; fragments that were made before it began are left out."""
    taken = round(SECONDS / (STEP_SECONDS * FRAGMENT)) * workers

    def measured() -> float:
        deque(islice(fragments, stale), maxlen=0)
        started = time.perf_counter()
        deque(islice(fragments, taken), maxlen=0)
        return taken * FRAGMENT / (time.perf_counter() - started)

    return measured


def ideal(workers: int) -> Contestant:
    """The rate of one worker in this process, times so many."""
    worker = SleepingWorker()
    alone = rate((worker.sample() for _ in count()), 1, 1)
    return lambda: alone() * workers


def compare(mode: str, size: int, rounds: int) -> Case:
    workers = actors(SleepingWorker, size).resources(cpus=0)
    gather = gather_sync() if mode == "synchronous" else gather_async(2)
    with (workers.produce(SleepingWorker.sample) | gather).run("ray") as run:
        stale = size * (1 if mode == "synchronous" else 2)
        figures = measure({PIPEFLOW: rate(run, size, stale), IDEAL: ideal(size)}, rounds)
    return Case(f"{mode}, {size} worker{'s' * (size > 1)}", "steps/s", figures)


def main() -> None:
    chosen = options(__doc__)
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
    )
    cases: list[Case] = []
    for mode in ("asynchronous", "synchronous"):
        for size in (1, 16) if chosen.quick else SIZES:
            cases.append(compare(mode, size, 3))
            print(cases[-1].name, f"{cases[-1].ratio(PIPEFLOW, IDEAL):.1%} of ideal", flush=True)
    ray.shutdown()
    efficiency = {case.name: case.ratio(PIPEFLOW, IDEAL) for case in cases}
    targets = [
        Target(
            "of ideal with 16 workers, asynchronous", efficiency["asynchronous, 16 workers"], "at least", 0.95
        ),
        Target(
            "of ideal with 16 workers, synchronous", efficiency["synchronous, 16 workers"], "at least", 0.9
        ),
    ]
    result = Result("scaling", cases, targets)
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
