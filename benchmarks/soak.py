"""IMPALA on CartPole on Ray for 20 minutes, while a worker's process is killed every half minute.

    python benchmarks/soak.py --minutes 20

It must keep learning, a kill may cost at most what the worker had in flight, nothing may grow after a warm-up, and
no process may be left. From 20 minutes on, what was found is stored, and shown in docs/reliability.md.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import logging
import os
import random
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np
import ray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.documents import replace_between, section
from benchmarks.harness import ROOT, Case, Json, Result, Target, read, show, thinned, write
from benchmarks.processes import descendants, private_mib
from pipeflow import Actors, Stream, actors, gather_async, sync_weights
from pipeflow.algorithms.impala import IMPALAConfig, batches_of, policy_of, targets_of, workers_of
from pipeflow.lowering.run import Run
from pipeflow.rl.batches import Report
from pipeflow.rl.learners.impala import IMPALALearner
from pipeflow.rl.rollouts import RolloutWorker

DOCUMENT = ROOT / "docs" / "reliability.md"
STORED_MINUTES = 20.0
CONFIG = IMPALAConfig(workers=2, lr=3e-4, anneal_steps=None)
RECENT_EPISODES = 100

# Before it, processes import their modules, and allocators find their sizes.
WARM_UP_SHARE = 0.25
# More would be a leak: a kilobyte an update, of which there are 50 a second, makes 40 MiB in 15 minutes.
GROWTH_MIB = 16.0
# The mean return of the last episodes; a random policy has 22, the best one 500. Short runs only begin to learn.
RETURN, EARLY_RETURN, LEARNT_MINUTES = 400.0, 30.0, 5.0
LEFT_SECONDS = 15.0
MEMORIES = {
    "the driver": "driver_mib",
    "the learner": "learner_mib",
    "Ray's services": "ray_mib",
    "the object store": "store_mib",
}
# Whatever is larger than 1 kB goes through the object store, so that it is put to the test as well. Ray's list of
# past calls is off: it keeps 100,000 of them, and fills for most of a run.
RAY_SETTINGS = {"RAY_max_direct_call_object_size": "1024", "RAY_task_events_report_interval_ms": "0"}
TOTALS = ("seconds", "updates", "steps", "kills", "restarts", "lost")
# What Ray calls a process in which an actor of a run lives.
HOST = "ray::RemoteHost"


@dataclass(frozen=True)
class Reading:
    """What was read at one time of a run.

    Attributes:
        seconds: since the first item.
        updates, steps: the learner's, so far.
        kills, restarts, lost: so far; lost are calls for a fragment.
        recent_return: mean of the last hundred training episodes.
        driver_mib, learner_mib, workers_mib, ray_mib: memory of processes; `ray_mib` is of Ray's services.
        store_mib: what is in Ray's object store.
        processes: below the driver.
        threads: of the driver.
    """

    seconds: float
    updates: int
    steps: int
    kills: int
    restarts: int
    lost: int
    recent_return: float
    driver_mib: float
    learner_mib: float
    workers_mib: float
    ray_mib: float
    store_mib: float
    processes: int
    threads: int


@dataclass(frozen=True)
class Soak:
    """The plan, and the actors that are asked and killed."""

    plan: Stream[Report]
    workers: Actors[RolloutWorker]
    learner: Actors[IMPALALearner]


def soaked(config: IMPALAConfig) -> Soak:
    """IMPALA's plan, with workers that may be started again as often as they die."""
    workers = workers_of(config).restarts(1_000_000)
    learner = actors(
        IMPALALearner, 1, policy_of(config), targets=targets_of(config), value_coef=config.value_coef,
        lr=config.lr, entropy_coef=config.entropy_coef, max_grad_norm=config.max_grad_norm, seed=config.seed,
    )  # fmt: skip
    plan = (
        batches_of(workers.produce(RolloutWorker.sample) | gather_async(config.in_flight), config)
        | learner.stage(IMPALALearner.update).max_in_flight(config.queue)
        | sync_weights(learner, workers, every=config.broadcast_every)
    )
    return Soak(plan, workers, learner)


class Observer:
    """Kills workers in turn, and takes readings. It asks the workers nothing, since a dead one does not answer."""

    def __init__(self, soak: Soak, run: Run[Report]) -> None:
        self._run = run
        self._learner = run.ask(soak.learner, process_of)
        self._kills = 0
        self._returns: deque[float] = deque(maxlen=RECENT_EPISODES)
        self.readings: list[Reading] = []

    def see(self, report: Report) -> None:
        """Take in what the plan delivered."""
        self._returns.extend(report.episodes.returns.tolist())

    def kill(self) -> None:
        """End the process of one worker, as the kernel does when memory runs out."""
        workers = self._workers(descendants())
        if workers:
            os.kill(workers[self._kills % len(workers)], signal.SIGKILL)
            self._kills += 1

    def read(self, seconds: float, report: Report) -> None:
        """Take a reading; what only waits for the garbage collector does not count."""
        gc.collect()
        stats = self._run.stats()
        below = descendants()
        services = [pid for pid, command in below.items() if is_service(command)]
        self.readings.append(
            Reading(
                seconds=round(seconds, 1),
                updates=report.version,
                steps=report.lifetime_steps,
                kills=self._kills,
                restarts=stats.restarts,
                lost=stats.lost,
                recent_return=round(fmean(self._returns), 1) if self._returns else 0.0,
                driver_mib=round(private_mib([os.getpid()]), 1),
                learner_mib=round(private_mib(self._learner), 1),
                workers_mib=round(private_mib(self._workers(below)), 1),
                ray_mib=round(private_mib(services), 1),
                store_mib=round(stored_mib(), 2),
                processes=len(below),
                threads=threading.active_count(),
            )
        )

    def _workers(self, processes: Mapping[int, str]) -> list[int]:
        """Those of the processes in which workers live, the oldest first."""
        hosts = [pid for pid, command in processes.items() if command.startswith(HOST)]
        return sorted(pid for pid in hosts if pid not in self._learner)


def observed(minutes: float, kill_seconds: float) -> list[Reading]:
    """Train for so long; the readings, 240 of them, but at most two a second."""
    soak = soaked(CONFIG)
    # At a time that no period of the plan can be in step with.
    jitter = random.Random(0)
    with soak.plan.run("ray") as run:
        observer = Observer(soak, run)
        report = next(run)
        started = time.monotonic()
        next_kill, next_reading = kill_seconds, 0.0
        while (seconds := time.monotonic() - started) < 60 * minutes:
            report = next(run)
            observer.see(report)
            if seconds >= next_kill:
                observer.kill()
                next_kill = seconds + kill_seconds * jitter.uniform(0.9, 1.1)
            if seconds >= next_reading:
                observer.read(seconds, report)
                next_reading = seconds + max(60 * minutes / 240, 0.5)
        observer.read(seconds, report)
    return observer.readings


def stored_mib() -> float:
    """MiB in Ray's object store, which tells them a moment late."""
    there, free = ray.cluster_resources(), ray.available_resources()
    used: float = there["object_store_memory"] - free.get("object_store_memory", 0.0)
    return used / 2**20


def process_of(_: object) -> int:
    """The process that an actor lives in; for `Run.ask`."""
    return os.getpid()


def is_service(command: str) -> bool:
    """Whether a process is one of Ray's own, rather than one that actors live in, or are to."""
    return "ray::" not in command and "default_worker.py" not in command


def left_over(seconds: float = LEFT_SECONDS) -> dict[int, str]:
    """The processes that are still there after so many seconds; it waits no longer than there are any."""
    deadline = time.monotonic() + seconds
    while (left := descendants()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def growth(readings: Sequence[Reading], of: str) -> float:
    """By how much a figure grew over the readings: the rise of the straight line that fits them best."""
    seconds = np.array([reading.seconds for reading in readings])
    figures = np.array([getattr(reading, of) for reading in readings], dtype=np.float64)
    slope = np.polyfit(seconds, figures, 1)[0]
    return float(slope * (seconds[-1] - seconds[0]))


def judged(readings: Sequence[Reading], left: int) -> Result:
    """What the readings show, and `left` processes."""
    last = readings[-1]
    warm = [reading for reading in readings if reading.seconds >= WARM_UP_SHARE * last.seconds]
    late = [reading for reading in readings if reading.seconds >= 0.75 * last.seconds]
    wanted = RETURN if last.seconds >= 60 * LEARNT_MINUTES else EARLY_RETURN
    kills = max(last.kills, 1)
    targets = [
        Target(
            "mean training return in the last quarter",
            median(r.recent_return for r in late),
            "at least",
            wanted,
        ),
        Target("restarts for each kill", last.restarts / kills, "at least", 1.0),
        Target("calls lost by each kill", last.lost / kills, "at most", CONFIG.in_flight),
        *(
            Target(f"MiB by which {what} grew after the warm-up", growth(warm, of), "at most", GROWTH_MIB)
            for what, of in MEMORIES.items()
        ),
        Target("threads that the driver has more at the end", last.threads - warm[0].threads, "at most", 0.0),
        Target("processes left", left, "at most", 0.0),
    ]
    part = max(len(warm) // 5, 1)
    cases = [
        Case(f"memory of {what}", "MiB", {"after the warm-up": first, "at the end": second})
        for what, of in MEMORIES.items()
        for first, second in [([getattr(r, of) for r in warm[:part]], [getattr(r, of) for r in warm[-part:]])]
    ]
    totals = asdict(last)
    details: dict[str, Json] = {
        "totals": {name: totals[name] for name in TOTALS},
        "readings": [dict(asdict(reading)) for reading in thinned(list(readings), 60)],
    }
    return Result("soak", cases, targets, details)


def shown(path: Path) -> str:
    """What a result's file says, as Markdown."""
    totals = read(path).details["totals"]
    assert isinstance(totals, dict)
    counts = ", ".join(f"{totals[name]:,.0f} {name}" for name in TOTALS)
    return f"{counts}.\n\n{section(path)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--minutes", type=float, default=STORED_MINUTES, help="how long to train")
    parser.add_argument("--kill-seconds", type=float, default=30.0, help="how often a worker is killed")
    parser.add_argument("--results", type=Path, help="where to store soak.json, however long it was")
    chosen = parser.parse_args(arguments)
    # A run that hangs is over, too, and says where.
    faulthandler.dump_traceback_later(60 * chosen.minutes + 120, exit=True)
    os.environ.update(RAY_SETTINGS)
    ray.init(
        address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
    )
    logging.getLogger("pipeflow.lowering.actors").setLevel(logging.ERROR)  # every kill is a warning
    readings = observed(chosen.minutes, chosen.kill_seconds)
    ray.shutdown()
    left = left_over()
    faulthandler.cancel_dump_traceback_later()
    result = judged(readings, len(left))
    print(f"{len(readings)} readings, the last: {readings[-1]}", *left.values(), sep="\n")
    show(result)
    if chosen.results is not None:
        write(result, chosen.results)
    elif chosen.minutes >= STORED_MINUTES:
        replace_between(DOCUMENT, "soak", shown(write(result)))
    return 0 if all(target.reached for target in result.targets) else 1


if __name__ == "__main__":
    sys.exit(main())
