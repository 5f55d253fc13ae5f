"""Where the time goes in the work whose targets `docs/benchmarks.md` says are not reached.

    python benchmarks/bench_profile.py

Processor time of an item that a gather delivers, in the driver, in the actors and in Ray's services, beside that
of a hand-written loop; synchronous rounds of sleeping workers, beside the same; and the parts of a step of DQN,
beside those of Stable-Baselines3. Apart from the benchmarks with targets, which time without looking inside.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import ray
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_dqn_cartpole import PIPEFLOW, SB3, STEPS_PER_UPDATE, sb3_model, work
from benchmarks.bench_overhead import BY_HAND, Setting, by_hand, by_pipeflow, loops_of
from benchmarks.bench_scaling import FRAGMENT, STEP_SECONDS, SleepingWorker
from benchmarks.harness import Case, Result, options, show, write
from benchmarks.processes import cpu_seconds, descendants
from pipeflow import actors, gather_sync
from pipeflow.algorithms.dqn import dqn
from pipeflow.rl.replay_batches import TDReport

ITEMS = 2000
SETTINGS = (
    Setting("trivial", "async", 4),
    Setting("trivial", "sync", 4),
    Setting("1 ms", "async", 2),
    Setting("1 MB", "sync", 2),
)
WORKERS, ROUNDS = 16, 20
# In the command lines of Ray's own processes.
SERVICES = ("/gcs_server", "/raylet/raylet", "log_monitor", "monitor.py", "dashboard", "runtime_env")
DQN_STEPS = 8_000
MICRO = 1e6

# Of each contestant, by what was measured: one figure a round.
Figures = dict[str, dict[str, list[float]]]


def gathered(items: Iterator[object], taken: int) -> dict[str, float]:
    """Microseconds an item: on the clock, and of processors."""
    deque(islice(items, taken // 10), maxlen=0)
    below = descendants()
    # The title of an actor's process says what it does, and at first only that it is a worker.
    others = [pid for pid, command in below.items() if any(service in command for service in SERVICES)]
    working = [pid for pid in below if pid not in others]
    before = time.perf_counter(), time.process_time(), cpu_seconds(working), cpu_seconds(others)
    deque(islice(items, taken), maxlen=0)
    after = time.perf_counter(), time.process_time(), cpu_seconds(working), cpu_seconds(others)
    names = ("on the clock", "processor time of the driver", "of the actors", "of Ray's services")
    return {
        name: (end - start) / taken * MICRO for name, start, end in zip(names, before, after, strict=True)
    }


def gathers(repeats: int) -> list[Case]:
    """Every setting, one contestant after the other, so that each one's processes are its own."""
    loops = loops_of(0.001)
    cases: list[Case] = []
    for setting in SETTINGS:
        figures: Figures = {}
        for _ in range(repeats):
            for who, opened in ((PIPEFLOW, by_pipeflow), (BY_HAND, by_hand)):
                with opened(setting, loops) as items:
                    note(figures, who, gathered(items, ITEMS if setting.kind == "trivial" else ITEMS // 4))
        cases += cases_of(figures, setting.name, "µs an item")
    return cases


@contextmanager
def hand_written_rounds() -> Generator[Iterator[object]]:
    workers = [ray.remote(num_cpus=0)(SleepingWorker).remote() for _ in range(WORKERS)]

    def rounds() -> Iterator[object]:
        while True:
            yield from ray.get([worker.sample.remote() for worker in workers])

    yield rounds()
    for worker in workers:
        ray.kill(worker)


@contextmanager
def pipeflow_rounds() -> Generator[Iterator[object]]:
    workers = actors(SleepingWorker, WORKERS).resources(cpus=0)
    with (workers.produce(SleepingWorker.sample) | gather_sync()).run("ray") as run:
        yield run


def scaling(repeats: int) -> list[Case]:
    """What a round of sleeping workers takes beyond the sleep of one."""
    figures: Figures = {}
    for _ in range(repeats):
        for who, opened in ((PIPEFLOW, pipeflow_rounds), (BY_HAND, hand_written_rounds)):
            with opened() as items:
                deque(islice(items, WORKERS), maxlen=0)
                started = time.perf_counter()
                deque(islice(items, WORKERS * ROUNDS), maxlen=0)
                seconds = (time.perf_counter() - started) / ROUNDS
                note(figures, who, {"beyond the sleep": (seconds - FRAGMENT * STEP_SECONDS) * 1e3})
    return cases_of(figures, f"synchronous round, {WORKERS} workers", "ms a round")


def dqn_steps(num_envs: int, repeats: int) -> list[Case]:
    """What a step of each environment takes, by the part of the algorithm."""
    figures: Figures = {}
    for _ in range(repeats):
        note(figures, PIPEFLOW, our_parts(num_envs))
        note(figures, SB3, sb3_parts(num_envs))
    name = "1 environment" if num_envs == 1 else f"{num_envs} environments"
    return cases_of(figures, f"DQN, {name}", "µs a step")


def our_parts(num_envs: int) -> dict[str, float]:
    """The parts of a step, of the run's own statistics."""
    with dqn(work(num_envs)).run("inline") as run:
        first = up_to(2_000, run)
        before, started = run.stats(), time.perf_counter()
        steps = up_to(first + DQN_STEPS, run) - first
        seconds, after = time.perf_counter() - started, run.stats()
    busy = [
        end.busy_seconds - start.busy_seconds for start, end in zip(before.nodes, after.nodes, strict=True)
    ]
    sampling = sum(spent for spent, node in zip(busy, after.nodes, strict=True) if "Worker" in node.name)
    learning = sum(
        spent for spent, node in zip(busy, after.nodes, strict=True) if "Learner.stage" in node.name
    )
    parts = {
        "all": seconds,
        "acting and environments": sampling,
        "updates": learning,
        "replay and everything else": seconds - sampling - learning,
    }
    return {name: spent / steps * MICRO for name, spent in parts.items()}


def up_to(steps: int, reports: Iterator[TDReport]) -> int:
    """Let a run go on until it has made so many steps; returns how many it has."""
    return next(report.lifetime_steps for report in reports if report.lifetime_steps > steps)


def sb3_parts(num_envs: int) -> dict[str, float]:
    """The same parts of Stable-Baselines3: its two methods that do them are timed."""
    model = sb3_model(work(num_envs))
    model.learn(2_000)
    spent = {"sampling": 0.0, "learning": 0.0}
    collect, train = model.collect_rollouts, model.train

    def collected(*args: object, **kwargs: object) -> object:
        started = time.perf_counter()
        result = collect(*args, **kwargs)  # type: ignore[arg-type]  # passed on as it came
        spent["sampling"] += time.perf_counter() - started
        return result

    def trained(gradient_steps: int, batch_size: int = 100) -> None:
        started = time.perf_counter()
        train(gradient_steps, batch_size)
        spent["learning"] += time.perf_counter() - started

    model.collect_rollouts = collected  # type: ignore[method-assign,assignment]
    model.train = trained  # type: ignore[method-assign]
    first, started = model.num_timesteps, time.perf_counter()
    model.learn(DQN_STEPS, reset_num_timesteps=False)
    seconds, steps = time.perf_counter() - started, model.num_timesteps - first
    parts = {
        "all": seconds,
        "acting and environments": spent["sampling"],
        "updates": spent["learning"],
        "replay and everything else": seconds - spent["sampling"] - spent["learning"],
    }
    return {name: took / steps * MICRO for name, took in parts.items()}


def note(figures: Figures, who: str, measured: Mapping[str, float]) -> None:
    """Add what a round measured of a contestant."""
    for name, figure in measured.items():
        figures.setdefault(name, {}).setdefault(who, []).append(figure)


def cases_of(figures: Figures, name: str, unit: str) -> list[Case]:
    """A case for each thing that was measured."""
    return [Case(f"{name}: {part}", unit, by_contestant) for part, by_contestant in figures.items()]


def main() -> None:
    chosen = options(__doc__)
    torch.set_num_threads(1)
    repeats = 1 if chosen.quick else 5
    cases = [*dqn_steps(1, repeats), *dqn_steps(8, repeats)]
    ray.init(
        address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
    )
    cases += [*gathers(repeats), *scaling(repeats)]
    ray.shutdown()
    result = Result("profile", cases, details={"steps a DQN update": STEPS_PER_UPDATE})
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
