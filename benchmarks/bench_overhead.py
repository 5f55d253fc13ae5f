"""What a gather costs an item, against the loop that a user would write by hand and against ``ray.util.iter``.

    python benchmarks/bench_overhead.py            all cases, up to ten minutes
    python benchmarks/bench_overhead.py --quick    trivial items alone, under a minute

All three gather on the same Ray from actors of their own, and the driver reads every item. A 1 ms item is
computed, not slept, so that what a contestant costs the actors' cores counts as well.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Literal

import numpy as np
import ray
from ray.util.iter import ParallelIteratorWorker, from_actors

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Case, Contestant, Result, Target, measure, options, show, write
from pipeflow import actors, gather_async, gather_sync

PIPEFLOW, BY_HAND, RAY_ITER = "pipeflow", "hand-written loop", "ray.util.iter"
ROUNDS = 5
ITEMS = {"trivial": 1000, "1 ms": 500, "1 MB": 300}

Kind = Literal["trivial", "1 ms", "1 MB"]


@dataclass(frozen=True)
class Setting:
    """A case: which gather, from how many actors, how many items in flight an actor, what items."""

    kind: Kind
    mode: Literal["sync", "async"]
    actors: int
    in_flight: int = 1

    @property
    def name(self) -> str:
        flight = "" if self.mode == "sync" else f", {self.in_flight} in flight"
        return f"{self.kind} items, {self.mode}, {self.actors} actor{'s' * (self.actors > 1)}{flight}"


class Source:
    """Makes items of one kind."""

    def __init__(self, kind: Kind, loops: int) -> None:
        self._loops = loops if kind == "1 ms" else 0
        self._item: object = np.ones(1_000_000, np.uint8) if kind == "1 MB" else 1

    def item(self) -> object:
        """The same item again, after the work that it stands for."""
        work(self._loops)
        return self._item


class IterSource(ParallelIteratorWorker):
    """The same for ``ray.util.iter``, which asks for an iterator."""

    def __init__(self, kind: Kind, loops: int) -> None:
        source = Source(kind, loops)
        super().__init__((source.item() for _ in count()), repeat=False)


def work(loops: int) -> int:
    """Compute for as long as so many turns of a loop take."""
    total = 0
    for turn in range(loops):
        total ^= turn
    return total


def loops_of(seconds: float) -> int:
    """How many turns `work` does in a time, by the fastest of some tries."""
    tries = []
    for _ in range(20):
        started = time.perf_counter()
        work(10_000)
        tries.append(time.perf_counter() - started)
    return round(10_000 * seconds / min(tries))


@contextmanager
def by_pipeflow(setting: Setting, loops: int) -> Generator[Iterator[object]]:
    sources = actors(Source, setting.actors, setting.kind, loops).resources(cpus=0)
    gather = gather_sync() if setting.mode == "sync" else gather_async(setting.in_flight)
    with (sources.produce(Source.item) | gather).run("ray") as run:
        yield run


@contextmanager
def by_hand(setting: Setting, loops: int) -> Generator[Iterator[object]]:
    remote = ray.remote(num_cpus=0)(Source)
    sources = [remote.remote(setting.kind, loops) for _ in range(setting.actors)]
    try:
        yield _rounds(sources) if setting.mode == "sync" else _as_ready(sources, setting.in_flight)
    finally:
        for source in sources:
            ray.kill(source)


@contextmanager
def by_ray_iter(setting: Setting, loops: int) -> Generator[Iterator[object]]:
    remote = ray.remote(num_cpus=0)(IterSource)
    sources = [remote.remote(setting.kind, loops) for _ in range(setting.actors)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated
        shards = from_actors(sources)
        gathered = (
            shards.gather_sync()
            if setting.mode == "sync"
            else shards.gather_async(num_async=setting.in_flight)
        )
    try:
        yield iter(gathered)
    finally:
        for source in sources:
            ray.kill(source)


def _rounds(sources: list[ray.actor.ActorHandle[Source]]) -> Iterator[object]:
    while True:
        yield from ray.get([source.item.remote() for source in sources])


def _as_ready(sources: list[ray.actor.ActorHandle[Source]], in_flight: int) -> Iterator[object]:
    made_by = {source.item.remote(): source for _ in range(in_flight) for source in sources}
    while True:
        (ready,), _ = ray.wait(list(made_by), num_returns=1)
        source = made_by.pop(ready)
        made_by[source.item.remote()] = source
        yield ray.get(ready)


def timed(items: Iterator[object], setting: Setting, taken: int) -> Contestant:
    """Microseconds an item, the items that were made while others were measured left out."""

    def measured() -> float:
        deque(islice(items, setting.actors * setting.in_flight), maxlen=0)
        started = time.perf_counter()
        deque(islice(items, taken), maxlen=0)
        return (time.perf_counter() - started) / taken * 1e6

    return measured


def compare(setting: Setting, loops: int, quick: bool) -> Case:
    with ExitStack() as stack:
        streams = {
            PIPEFLOW: stack.enter_context(by_pipeflow(setting, loops)),
            BY_HAND: stack.enter_context(by_hand(setting, loops)),
            RAY_ITER: stack.enter_context(by_ray_iter(setting, loops)),
        }
        taken = ITEMS[setting.kind] // (4 if quick else 1)
        contestants = {who: timed(items, setting, taken) for who, items in streams.items()}
        figures = measure(contestants, 3 if quick else ROUNDS)
    return Case(setting.name, "µs an item", figures)


def settings(quick: bool) -> list[Setting]:
    kinds: tuple[Kind, ...] = ("trivial",) if quick else ("trivial", "1 ms", "1 MB")
    sizes = (1, 4) if quick else (1, 2, 4, 8)
    found: list[Setting] = []
    for kind in kinds:
        found += [Setting(kind, "sync", size) for size in sizes]
        flights = (1, 4, 32) if kind == "trivial" else (1, 4)
        found += [Setting(kind, "async", size, flight) for flight in flights for size in sizes]
    return found


def targets(cases: list[Case]) -> list[Target]:
    """The bounds, each shown for the worst of the cases that it holds for.

    Of so many trivial items in flight, pipeflow lets half travel together: with 4 two, with 32 sixteen.
    """
    trivial = [case for case in cases if case.name.startswith("trivial")]
    heavier = [case for case in cases if not case.name.startswith("trivial")]
    pairs = [case for case in trivial if "4 in flight" in case.name]
    many = [case for case in trivial if "32 in flight" in case.name]
    bounds = [
        ("a hand-written loop's time where 16 items travel together", many, BY_HAND, 0.3),
        ("a hand-written loop's time where 2 items travel together", pairs, BY_HAND, 0.3),
        ("a hand-written loop's time for trivial items", trivial, BY_HAND, 1.0),
        ("a hand-written loop's time for items of 1 ms and of 1 MB", heavier, BY_HAND, 1.02),
        ("ray.util.iter's time", cases, RAY_ITER, 0.75),
    ]
    found: list[Target] = []
    for text, among, peer, bound in bounds:
        if among:
            worst = max(among, key=lambda case: case.ratio(PIPEFLOW, peer))
            found.append(Target(f"× {text} ({worst.name})", worst.ratio(PIPEFLOW, peer), "at most", bound))
    return found


def main() -> None:
    chosen = options(__doc__)
    ray.init(
        address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
    )
    loops = loops_of(0.001)
    cases: list[Case] = []
    for setting in settings(chosen.quick):
        cases.append(compare(setting, loops, chosen.quick))
        print(setting.name, flush=True)
    ray.shutdown()
    result = Result("overhead", cases, targets(cases))
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
