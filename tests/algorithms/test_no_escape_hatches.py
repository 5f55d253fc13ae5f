"""Fault 25: what needed an escape hatch in RLlib Flow, or was never ported, is a plan of ordinary operators here.

A population: evolution strategies, of which the plan below is complete. Inner loops: MAML, in `test_maml`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from pipeflow import Stream, actors, current_shard, gather_rounds, sync_weights, take
from pipeflow.lowering.engines.sim import Sim
from pipeflow.rl.batches import Report, Weights
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.meta.point_navigation import POINT_NAVIGATION
from pipeflow.rl.seeding import derive_seed
from pipeflow.testing import check_laws, policy_lag_at_most

HORIZON = 10
ENV = EnvSpec(POINT_NAVIGATION, {"goal_x": 0.4, "goal_y": -0.3, "horizon": HORIZON})
SHAPE = (2, 3)  # a linear policy: two actions of a position and a constant
DEVIATION = 0.2


@dataclass(frozen=True, eq=False)
class Evaluated:
    """P perturbations, told by their seeds: what the weights with them, and less them, returned."""

    seeds: tuple[int, ...]
    returns: NDArray[np.float64]  # [P, 2]
    version: int

    @property
    def steps(self) -> int:
        return self.returns.size * HORIZON


def noise(seed: int) -> NDArray[np.float64]:
    """The perturbation of a seed: nobody has to send it."""
    return np.random.default_rng(seed).normal(size=SHAPE)


class Evaluator:
    """Plays one episode with each of a worker's share of the population."""

    def __init__(self, pairs: int, seed: int) -> None:
        self._pairs, self._seed = pairs, derive_seed(seed, "worker", current_shard())
        self._weights, self._version = np.zeros(SHAPE), 0

    def set_weights(self, weights: Weights, /) -> None:
        self._weights, self._version = weights.parameters["linear"].astype(np.float64), weights.version

    def evaluate(self) -> Evaluated:
        seeds = tuple(derive_seed(self._seed, self._version, pair) for pair in range(self._pairs))
        mirrored = [sign * DEVIATION * noise(seed) for seed in seeds for sign in (1.0, -1.0)]
        population = self._weights + np.array(mirrored)
        env = ENV.make(len(population), seed=0)
        positions, returns = env.reset(), np.zeros(len(population))
        running = np.ones(len(population), np.bool_)
        for _ in range(HORIZON):
            features = np.ones((len(population), SHAPE[1]))
            features[:, :2] = positions
            actions = (population @ features[:, :, None])[:, :, 0]
            step = env.step(actions.astype(np.float32))
            returns += np.where(running, step.rewards, 0.0)
            running &= ~(step.terminated | step.truncated)
            positions = step.observations
        return Evaluated(seeds, returns.reshape(-1, 2), self._version)


class Strategy:
    """The mean of the population (Salimans et al. 2017, algorithm 2), moved along the ranks of its returns."""

    def __init__(self, lr: float) -> None:
        self._lr, self._mean, self._version, self._lifetime_steps = lr, np.zeros(SHAPE), 0, 0

    def update(self, shares: list[Evaluated], /) -> Report:
        returns = np.concatenate([share.returns for share in shares])
        ranks = returns.ravel().argsort().argsort().reshape(returns.shape) / (returns.size - 1) - 0.5
        perturbations = np.array([noise(seed) for share in shares for seed in share.seeds])
        gradient = np.tensordot(ranks[:, 0] - ranks[:, 1], perturbations, 1) / (returns.size * DEVIATION)
        lag = self._version - min(share.version for share in shares)
        steps = sum(share.steps for share in shares)
        self._mean = self._mean + self._lr * gradient
        self._version += 1
        self._lifetime_steps += steps
        episodes = EpisodeStats(returns.ravel(), np.full(returns.size, HORIZON))
        return Report(self._version, steps, self._lifetime_steps, episodes, {"policy_lag": lag})

    def weights(self) -> Weights:
        return Weights(self._version, {"linear": self._mean})


def evolution_strategies(workers: int = 2, pairs: int = 8, lr: float = 0.3, seed: int = 0) -> Stream[Report]:
    population = actors(Evaluator, workers, pairs, seed)
    strategy = actors(Strategy, 1, lr)
    plan = (
        population.produce(Evaluator.evaluate)
        | gather_rounds()
        | strategy.stage(Strategy.update)
        | sync_weights(strategy, population)
    )
    assert_type(plan, Stream[Report])
    return plan


def test_fault_25_a_population_is_a_plan_whose_laws_hold() -> None:
    check_laws(evolution_strategies(), schedules=5, items=3, invariants=[policy_lag_at_most(0)])


def test_fault_25_a_population_learns() -> None:
    reports = list((evolution_strategies() | take(40)).run())
    returns = [report.episodes.mean_return for report in reports]
    # Standing still costs a quarter a step.
    assert returns[0] < -2.0
    assert returns[-1] > -1.0
    assert [report.metrics["policy_lag"] for report in reports] == [0.0] * 40
    assert reports[-1].lifetime_steps == 40 * 2 * 8 * 2 * HORIZON


def test_law_23_of_a_population_a_simulated_schedule_gives_identical_reports() -> None:
    inline, simulated = (
        list((evolution_strategies() | take(5)).run(engine)) for engine in ("inline", Sim(3))
    )
    for one, other in zip(inline, simulated, strict=True):
        np.testing.assert_array_equal(one.episodes.returns, other.episodes.returns)


def test_a_perturbation_follows_from_its_seed() -> None:
    np.testing.assert_array_equal(noise(1), noise(1))
    assert not np.array_equal(noise(1), noise(2))
