"""PPO on CartPole as a Spark streaming job, as in the paper, against the same parts as a plan on Ray.

    python benchmarks/bench_spark_streaming.py

Two workers each. CartPole-v1 stands for the paper's v0, which gymnasium has deprecated; the two differ only in
the number of steps at which an episode is cut off. Needs Java 17.
"""

from __future__ import annotations

import logging
import sys
import time
from itertools import islice
from pathlib import Path

import ray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Case, Contestant, Json, Result, Target, measure, options, show, subject, write
from benchmarks.peers.environments import python_of
from pipeflow.algorithms.ppo import PPOConfig, ppo

PIPEFLOW, SPARK = "pipeflow on Ray", "Spark streaming"
WORKERS = 2
ITERATIONS = 15

# Environments a worker and vector steps an iteration: as in the other benchmarks, and RLlib's at the paper's time.
WORKS = ((8, 128), (1, 200))


def by_pipeflow(num_envs: int, steps: int, breakdowns: list[dict[str, float]]) -> Contestant:
    """Environment steps a second; the plan's own account of an iteration goes to the list."""
    config = PPOConfig(
        workers=WORKERS, num_envs=num_envs, fragment_length=steps, epochs=4, lr=2.5e-4,
        minibatch_size=min(256, WORKERS * num_envs * steps),
    )  # fmt: skip

    def measured() -> float:
        with ppo(config).run("ray") as run:
            next(run)
            before = run.stats()
            started = time.perf_counter()
            for _ in islice(run, ITERATIONS):
                pass
            seconds = (time.perf_counter() - started) / ITERATIONS
            busy = {
                node.name: (node.busy_seconds - earlier.busy_seconds) / ITERATIONS
                for node, earlier in zip(run.stats().nodes, before.nodes, strict=True)
            }
        sampling = sum(value for name, value in busy.items() if "update" not in name) / WORKERS
        learning = sum(value for name, value in busy.items() if "update" in name)
        breakdowns.append({"seconds": seconds, "sampling": sampling, "learning": learning})
        return config.steps_per_update / seconds

    return measured


def by_spark(num_envs: int, steps: int, breakdowns: list[dict[str, float]]) -> Contestant:
    """Environment steps a second."""
    work = [str(number) for number in (ITERATIONS, WORKERS, num_envs, steps)]

    def measured() -> float:
        outcome = subject(python_of("spark"), "peers/spark_ppo.py", *work)
        breakdowns.append(outcome)
        return outcome["steps_per_second"]

    return measured


def main() -> None:
    chosen = options(__doc__)
    ray.init(
        address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
    )
    cases: list[Case] = []
    details: dict[str, Json] = {}
    for num_envs, steps in WORKS:
        name = f"{WORKERS} workers × {num_envs} × {steps} steps"
        ours: list[dict[str, float]] = []
        theirs: list[dict[str, float]] = []
        contestants = {PIPEFLOW: by_pipeflow(num_envs, steps, ours), SPARK: by_spark(num_envs, steps, theirs)}
        cases.append(Case(name, "steps/s", measure(contestants, 1 if chosen.quick else 3, warm_up=False)))
        details[name] = {PIPEFLOW: [dict(one) for one in ours], SPARK: [dict(one) for one in theirs]}
        print(name, ours[-1], theirs[-1], flush=True)
    ray.shutdown()
    targets = [
        Target(
            f"× the throughput of Spark streaming, {case.name}", case.ratio(PIPEFLOW, SPARK), "at least", 10.0
        )
        for case in cases
    ]
    result = Result("spark_streaming", cases, targets, details)
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
