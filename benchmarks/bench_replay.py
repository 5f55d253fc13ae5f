"""Replay buffers: microseconds to store, to sample, and to sample by priority and report new ones.

    python benchmarks/bench_replay.py

Transitions of CartPole. Stable-Baselines3's buffer has no priorities. TorchRL's sum tree is compiled for another
release of torch than ours, so all of this runs in an environment of TorchRL's own, made by the first run.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer as SB3Buffer

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Case, Contestant, Result, Target, measure, options, show, write
from benchmarks.peers.environments import python_of
from pipeflow.rl.prioritised import Prioritisation
from pipeflow.rl.replay import ReplayBuffer
from pipeflow.rl.replay_batches import Priorities, Samples, Transitions

PIPEFLOW, SB3, TORCHRL = "pipeflow", "Stable-Baselines3", "TorchRL"
CAPACITIES = (100_000, 1_000_000)
BATCH_SIZES = (32, 256)
NUM_ENVS = 8  # whose step is stored at once
CHUNK = 50_000  # rows at once that a buffer is filled with
REPEATS = 300
ALPHA, BETA = 0.6, 0.4


def transitions(rows: int) -> Transitions:
    """So many rows as CartPole gives them."""
    generator = np.random.default_rng(0)
    return Transitions(
        observations=generator.random((rows, 4), np.float32),
        actions=generator.integers(0, 2, rows),
        rewards=np.ones(rows, np.float32),
        next_observations=generator.random((rows, 4), np.float32),
        terminated=generator.random(rows) < 0.01,
        discounts=np.full(rows, 0.99, np.float32),
        env_steps=rows,
    )


def timed(work: Callable[[], object]) -> Contestant:
    """Microseconds of a call."""

    def measured() -> float:
        started = time.perf_counter()
        for _ in range(REPEATS):
            work()
        return (time.perf_counter() - started) / REPEATS * 1e6

    return measured


def errors(batch_size: int) -> Callable[[], NDArray[np.float64]]:
    """What gives new errors of a batch at every call."""
    prepared: Iterator[NDArray[np.float64]] = cycle(np.random.default_rng(1).random((64, batch_size)))
    return lambda: next(prepared)


class Ours:
    """What is measured of pipeflow's buffer."""

    def __init__(self, capacity: int, batch_size: int, *, prioritised: bool) -> None:
        prioritisation = Prioritisation(ALPHA, BETA) if prioritised else None
        self.buffer = ReplayBuffer(
            capacity, batch_size=batch_size, learning_starts=1, prioritisation=prioritisation, index=0
        )
        for _ in range(capacity // CHUNK):
            self.buffer.add(transitions(CHUNK))
        self._step, self._errors = transitions(NUM_ENVS), errors(batch_size)

    def add(self) -> None:
        """Store a step of all environments."""
        self.buffer.add(self._step)

    def sample(self) -> Samples:
        """Draw a batch."""
        samples = self.buffer.sample()
        assert isinstance(samples, Samples)
        return samples

    def sample_and_update(self) -> None:
        """Draw a batch and report its errors."""
        samples = self.sample()
        self.buffer.update_priorities(Priorities(samples.indices, samples.generations, self._errors()))


class SB3s:
    """What is measured of Stable-Baselines3's."""

    def __init__(self, capacity: int, batch_size: int) -> None:
        space = spaces.Box(-1.0, 1.0, (4,), np.float32)
        self.buffer = SB3Buffer(capacity, space, spaces.Discrete(2), device="cpu", n_envs=NUM_ENVS)
        self._batch_size = batch_size
        self._step = transitions(NUM_ENVS)
        self._infos: list[dict[str, object]] = [{} for _ in range(NUM_ENVS)]
        for _ in range(capacity // NUM_ENVS):
            self.add()

    def add(self) -> None:
        """Store a step of all environments."""
        step = self._step
        self.buffer.add(
            step.observations,
            step.next_observations,
            step.actions,
            step.rewards,
            step.terminated,
            self._infos,
        )

    def sample(self) -> object:
        """Draw a batch."""
        return self.buffer.sample(self._batch_size)


def measured(capacity: int, batch_size: int, rounds: int) -> list[Case]:
    """All that is measured with buffers of one size."""
    from benchmarks.peers.torchrl_buffers import TorchRLs  # only its own environment has what it imports

    name = f"{capacity:,} rows"
    batch = f"{name}, batch of {batch_size}"
    unit = "us"
    filling, step = transitions(CHUNK), transitions(NUM_ENVS)

    def torchrls_of(*, prioritised: bool) -> TorchRLs:
        exponents = (ALPHA, BETA) if prioritised else None
        return TorchRLs(capacity, batch_size, exponents, filling, step, errors(batch_size))

    ours, torchrls = Ours(capacity, batch_size, prioritised=True), torchrls_of(prioritised=True)
    cycles = measure(
        {PIPEFLOW: timed(ours.sample_and_update), TORCHRL: timed(torchrls.sample_and_update)}, rounds
    )
    cases = [Case(f"prioritised sample and update, {batch}", unit, cycles)]
    if batch_size == BATCH_SIZES[0]:
        adds = measure({PIPEFLOW: timed(ours.add), TORCHRL: timed(torchrls.add)}, rounds)
        cases.append(Case(f"prioritised add of {NUM_ENVS} rows, {name}", unit, adds))
    ours, torchrls = Ours(capacity, batch_size, prioritised=False), torchrls_of(prioritised=False)
    sb3s = SB3s(capacity, batch_size)
    samples = {PIPEFLOW: timed(ours.sample), TORCHRL: timed(torchrls.sample), SB3: timed(sb3s.sample)}
    cases.append(Case(f"uniform sample, {batch}", unit, measure(samples, rounds)))
    if batch_size == BATCH_SIZES[0]:
        adds = measure(
            {PIPEFLOW: timed(ours.add), TORCHRL: timed(torchrls.add), SB3: timed(sb3s.add)}, rounds
        )
        cases.append(Case(f"uniform add of {NUM_ENVS} rows, {name}", unit, adds))
    return cases


def main() -> None:
    """Measure, show and store; in TorchRL's environment, whatever this was started in."""
    chosen = options(__doc__)
    if importlib.util.find_spec("torchrl") is None:
        python = str(python_of("torchrl"))
        # Neither OpenBLAS nor TorchRL's logger can be told later.
        quiet = {"OPENBLAS_NUM_THREADS": "1", "RL_LOGGING_LEVEL": "ERROR"}
        os.execve(python, [python, *sys.argv], {**os.environ, **quiet})
    torch.set_num_threads(1)
    cases: list[Case] = []
    for capacity in CAPACITIES[:1] if chosen.quick else CAPACITIES:
        for batch_size in BATCH_SIZES:
            cases += measured(capacity, batch_size, 3 if chosen.quick else 9)
    targets = [
        Target(f"times the speed of TorchRL: {case.name}", case.ratio(TORCHRL, PIPEFLOW), "at least", 2.0)
        for case in cases
        if case.name.startswith("prioritised sample")
    ]
    result = Result("replay", cases, targets)
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
