"""DQN on CartPole-v1, the same work for both libraries: environment steps a second of the whole training loop.

    python benchmarks/bench_dqn_cartpole.py

The work: one update of 128 rows for every 10 environment steps, networks of 2 x 64 ReLU, Adam at 1e-3, plain
targets of one step, a new target network every 500 steps, 100,000 rows of replay, all as Stable-Baselines3 has it.
With 1 environment, and with 8 that are stepped as one: both libraries take 10 steps in each environment, and then
make 1 update, or 8. At last the learning curves of the work with 8 environments.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.curves import curve_of, sb3_curve_of
from benchmarks.harness import Case, Contestant, Json, Result, Target, measure, options, show, thinned, write
from pipeflow.algorithms.dqn import DQNConfig, dqn
from pipeflow.rl.replay_batches import TDReport

PIPEFLOW, SB3 = "pipeflow", "Stable-Baselines3"
STEPS_PER_UPDATE = 10
SEEDS = (1, 2, 3)
CURVE_STEPS = 50_000
POINTS = 50  # of a curve
SECONDS = 4.0  # that a contestant works for, about


def work(num_envs: int, seed: int = 0) -> DQNConfig:
    """The work with so many environments."""
    batch_size = 128
    return DQNConfig(
        num_envs=num_envs, fragment_length=10, minibatches=num_envs, intensity=batch_size / STEPS_PER_UPDATE,
        batch_size=batch_size, capacity=100_000, learning_starts=1000, n_step=1, double=False, lr=1e-3,
        target_every=500, epsilon_final=0.04, epsilon_steps=8_000, hidden=(64, 64), seed=seed,
    )  # fmt: skip


def ours(reports: Iterator[TDReport]) -> Contestant:
    """Steps a second of a run that goes on from round to round."""

    def measured() -> float:
        before = next(reports).lifetime_steps
        started = time.perf_counter()
        while True:
            report = next(reports)
            seconds = time.perf_counter() - started
            if seconds > SECONDS:
                return (report.lifetime_steps - before) / seconds

    return measured


def sb3_model(config: DQNConfig) -> DQN:
    """The work of a configuration, in the words of Stable-Baselines3."""
    updates = config.num_envs * config.fragment_length // STEPS_PER_UPDATE
    return DQN(
        "MlpPolicy", make_vec_env("CartPole-v1", config.num_envs, seed=config.seed), seed=config.seed,
        learning_rate=config.lr, buffer_size=config.capacity, learning_starts=config.learning_starts,
        batch_size=config.batch_size, gamma=config.gamma, train_freq=config.fragment_length,
        gradient_steps=updates, target_update_interval=config.target_every,
        exploration_fraction=config.epsilon_steps / CURVE_STEPS, exploration_final_eps=config.epsilon_final,
        max_grad_norm=10.0, policy_kwargs={"net_arch": list(config.hidden)}, device="cpu",
    )  # fmt: skip


def sb3(config: DQNConfig) -> Contestant:
    """Steps a second of a model that goes on from round to round."""
    model = sb3_model(config)

    def measured() -> float:
        steps = round(2_000 * SECONDS)
        started, before = time.perf_counter(), model.num_timesteps
        model.learn(steps, reset_num_timesteps=False)
        return (model.num_timesteps - before) / (time.perf_counter() - started)

    return measured


def main() -> None:
    """Measure, show and store."""
    chosen = options(__doc__)
    torch.set_num_threads(1)
    cases: list[Case] = []
    targets: list[Target] = []
    for num_envs in (1, 8):
        config = work(num_envs)
        with dqn(config).run("inline") as run:
            figures = measure({PIPEFLOW: ours(run), SB3: sb3(config)}, 2 if chosen.quick else 7)
        name = "1 environment" if num_envs == 1 else f"{num_envs} environments"
        case = Case(f"inline, {name}", "steps/s", figures)
        cases.append(case)
        text = f"times the rate of Stable-Baselines3, {name}"
        targets.append(Target(text, case.ratio(PIPEFLOW, SB3), "at least", 4.0))
    details: dict[str, Json] = {}
    if not chosen.quick:
        curves: dict[str, Json] = {
            PIPEFLOW: [thinned(curve_of(dqn(work(8, seed)), CURVE_STEPS), POINTS) for seed in SEEDS],
            SB3: [thinned(sb3_curve_of(sb3_model(work(8, seed)), CURVE_STEPS), POINTS) for seed in SEEDS],
        }
        details["curves of steps and mean return of 100 episodes, by seed"] = curves
    result = Result("dqn_cartpole", cases, targets, details)
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
